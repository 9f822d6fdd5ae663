"""What a run has built and waits for a person: handed from one task to the next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seamline.lake.publish.publishing import Publication
    from seamline.lake.storage.layout import Layout

WAITS, CHANGES = "waits", "changes"
"""The XComs of ``publish``: whether anything waits, and what it changes."""
SHOWN = 20
"""So many intervals are shown to who decides."""


def hand_on_changes(ti: Any, layout: Layout, run: str, done: Publication) -> None:
    """Say to the next task whether a run has intervals that wait, and what they change."""
    ti.xcom_push(key=WAITS, value=bool(done.waiting))
    ti.xcom_push(key=CHANGES, value="\n".join(format_waiting_changes(layout, run, done)))


def format_waiting_changes(layout: Layout, run: str, done: Publication) -> Iterator[str]:
    """Describe the intervals that wait, as Markdown."""
    from seamline.lake.tables.builds_table import Builds
    from seamline.lake.tables.comparisons_table import Comparisons
    from seamline.plan.batch.attribution import format_comparison

    shown = done.waiting[:SHOWN]
    for interval in shown:
        yield f"- {interval}: {done.held_back[interval]}"
    if len(done.waiting) > SHOWN:
        yield f"- and {len(done.waiting) - SHOWN} more"
    mine = {row.generation for row in Builds.ensure(layout).of(run) if row.interval in shown}
    compared = Comparisons.ensure(layout).of_generations(mine)
    lines = [line for each in compared if each.interval in shown for line in format_comparison(each)]
    yield from ["", "```", *lines, "```"] if lines else []
