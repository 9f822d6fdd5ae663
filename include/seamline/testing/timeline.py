"""The time line of a scenario, drawn in ASCII: what a failing test shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

MARKS = {"epoch": "|", "crash": "X", "restart": "o", "define": "*", "restate": "~", "batch": "="}


@dataclass(frozen=True)
class Event:
    """One step of a scenario."""

    kind: str
    """A key of MARKS."""
    text: str
    """What happened."""


def draw_timeline(pipeline: str, events: Iterable[Event], cuts: Mapping[tuple[str, str], int]) -> str:
    """Draw the steps from top to bottom, and what is published at the end."""
    lines = [f"{pipeline}  (| epoch  X crash  o restart  * define  ~ restate  = batch)"]
    lines += [f"  {MARKS[event.kind]}  {event.kind:<8}{event.text}" for event in events]
    lines.append("  published")
    for view in sorted({view for view, _ in cuts}):
        mine = sorted((interval, cut) for (name, interval), cut in cuts.items() if name == view)
        lines.append(f"     {view}: " + ", ".join(f"{interval} to epoch {cut}" for interval, cut in mine))
    return "\n".join(lines if cuts else [*lines[:-1], "  nothing is published"])
