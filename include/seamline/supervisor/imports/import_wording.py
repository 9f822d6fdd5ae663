"""What an import would do, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from seamline.lake.imports.import_options import ImportOptions
from seamline.model.time.intervals import format_utc_instant

if TYPE_CHECKING:
    from seamline.supervisor.imports.import_planning import DraftedImport

SAMPLE = 1_000
"""Rows that are validated before anything is asked for."""
SHOWN = 5
"""Reasons of refusals that are listed."""


def describe_border(event_id: Sequence[str], options: ImportOptions, actor: str) -> str:
    """Say how rows that the topic has too are told from the others."""
    said = []
    if options.border:
        parts = ", ".join(f"{partition}: {offset}" for partition, offset in options.border)
        said.append(f"by offset: rows below those from which the topic is read ({parts})")
    if options.until:
        said.append(
            f"by time: rows before {format_utc_instant(options.until)}; records of the topic before it that the "
            "files have too count twice"
        )
    if event_id:
        said.append(f"by event id {', '.join(event_id)}: of copies the first that was read counts")
    return "; ".join(said) or f"declared by {actor}: no row is in the topic too"


def describe_draft(drafted: DraftedImport) -> Iterator[str]:
    """Say in lines what an import would do."""
    plan, decision, sample = drafted.plan, drafted.decision, drafted.sample
    count = len({each.file.name for each in plan.files})
    yield f"{drafted.request.place}: {drafted.history.about}"
    files = f"{count} file{'' if count == 1 else 's'}"
    yield f"  {plan.rows} rows of {files}, {plan.size} bytes, as records of {decision.topic!r}"
    if drafted.skipped:
        yield f"  {drafted.skipped} rows were imported before, or are about to be, and are left out"
    yield from (f"  {note}" for note in drafted.notes)
    if not plan.rows:
        return
    times = str(decision.bounds) if decision.bounds else "any: no interval is certified until it is done"
    yield f"  event times: {times}"
    yield f"  what the topic has too: {decision.border}"
    if sample is None:
        yield "  what becomes of them is not tried: rules that come from a topic decide about them"
        return
    refused = sum(sample.refused.values())
    looked = min(SAMPLE, plan.rows)
    left = looked - sample.accepted - refused
    yield (
        f"  of the first {looked} rows {sample.accepted} are valid, {refused} are refused"
        + (f", {left} are left to the topic" if left else "")
    )
    for reason, rows in islice(sorted(sample.refused.items(), key=lambda each: -each[1]), SHOWN):
        yield f"    {rows} x {reason}"
    if sample.example:
        yield f"    for example {sample.example}" + (f" ({sample.detail})" if sample.detail else "")
