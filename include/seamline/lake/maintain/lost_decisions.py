"""Decisions that the control table has lost, where something was made with them: it came back from a backup alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seamline.lake.storage.layout import Layout
from seamline.lake.tables.decided import list_restatements
from seamline.model.errors import OutOfStep
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.manifest import Manifest


def find_lost_restatement(layout: Layout, manifest: Manifest) -> str:
    """Find a generation that is served and made with restatements that the control table lacks; empty for none.

    The next one would have the number of one that is lost, and count as known to that generation. ``manifest`` was read
    before.
    """
    made = len(list_restatements(layout))
    for each in manifest.published.values():
        if each.restated > made:
            return (
                f"generation {each.generation} of {each.view} {each.interval} is served, made with {each.restated} "
                f"restatements, but the control table has {made}"
            )
    return ""


def find_unknown_restatement(layout: Layout, log: Sequence[Epoch]) -> str:
    """Find out whether epochs name more restatements than the control table has; empty if they do not.

    Slices of later epochs are made with those that are lost, and nobody can tell what they were.
    """
    named, made = log[-1].restated if log else 0, len(list_restatements(layout))
    return f"epochs name {named} restatements, but the control table has {made}" if named > made else ""


def list_lost_restatements(layout: Layout, manifest: Manifest, log: Sequence[Epoch]) -> Iterator[str]:
    """List what was made with restatements that the control table lacks; ``manifest`` and ``log`` were read before."""
    yield from filter(None, (find_unknown_restatement(layout, log), find_lost_restatement(layout, manifest)))


def require_named_restatements(layout: Layout, log: Sequence[Epoch]) -> None:
    """Raise OutOfStep if epochs name restatements that the control table lacks: no repair brings them back."""
    if why := find_unknown_restatement(layout, log):
        raise OutOfStep(
            f"The tables of {layout.pipeline} contradict each other: {why}.",
            hint="bring the control table back from a newer backup, or the whole folder from one.",
        )
