"""The audit of a sink in words, and as JSON has it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from seamline.model.time.intervals import format_utc_instant
from seamline.plan.spelling import format_quantity
from seamline.sinks.audit.sink_audit import DAMAGED, DIFFERENT, EXTRA, MISSING, RowFinding, SinkAudit

SAID = {
    MISSING: ("is served and not there", "are served and not there"),
    EXTRA: ("is there and not served", "are there and not served"),
    DIFFERENT: ("is another than is served", "are others than are served"),
    DAMAGED: ("is not as it was written", "are not as they were written"),
}
LONGEST = 120
"""Letters of a value that a line shows."""


def format_sink_audit(found: SinkAudit) -> Iterator[str]:
    """Say what a target holds against what is served, a line each."""
    position = found.position
    if position is None:
        yield f"{found.sink}: nothing has been sent yet to {found.target}"
        return
    version = "no version" if position.version < 0 else f"version {position.version}"
    underway = "" if position.toward is None else f", {position.rows} changes on the way to {position.toward}"
    yield f"{found.sink}: {found.target} shows {version}{underway}"
    yield f"  {format_quantity(found.held, 'row')} held, {found.wanted:,} to be there as served"
    if found.unsent:
        yield f"  {found.unsent:,} more are served and not sent now; what the target has of them is not judged"
    if found.moved:
        yield f"  {found.moved:,} changed while they were read, and are not judged"
    for kind, count in found.found.items():
        if count:
            yield f"  WRONG {format_quantity(count, 'file' if kind == DAMAGED else 'row')} {SAID[kind][count != 1]}"
    for each in found.examples:
        yield f"    {format_example(each)}"
    if found.passed:
        yield "  nothing is wrong"
    else:
        yield f"  {format_remedy(found)}"


def format_remedy(found: SinkAudit) -> str:
    """Say how the windows that were compared are sent again."""
    command = f"seamline sinks resend {found.pipeline} {found.sink} --from"
    end = f" --to {format_utc_instant(found.span.end)}" if found.span.end else ""
    if found.span.start is None:
        return f"`{command} TIME{end}` sends windows from then on again"
    return f"`{command} {format_utc_instant(found.span.start)}{end}` sends these windows again"


def format_example(found: RowFinding) -> str:
    """Say of one row, or file, what is wrong with it."""
    return f"{found.kind} {found.place}{format_columns(found)}{found.note and f': {found.note}'}"


def format_columns(found: RowFinding) -> str:
    """Say in which columns a row differs."""
    said = (
        f"{name} {shorten(held)}, served {shorten(served)}" for name, (held, served) in found.columns.items()
    )
    joined = "; ".join(said)
    return f": {joined}" if joined else ""


def shorten(value: Any) -> str:
    """Write a value, of a long one the beginning."""
    text = repr(value) if isinstance(value, str) else "NULL" if value is None else str(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def serialize_sink_audit(found: SinkAudit) -> Mapping[str, Any]:
    """Return all of an audit as JSON has it."""
    position = found.position
    bounds = (found.span.start, found.span.end)
    start, end = (None if each is None else format_utc_instant(each) for each in bounds)
    return {
        "pipeline": found.pipeline,
        "sink": found.sink,
        "target": found.target,
        "at": format_utc_instant(found.at),
        "from": start,
        "to": end,
        "version": None if position is None or position.version < 0 else position.version,
        "toward": None if position is None else position.toward,
        "held": found.held,
        "wanted": found.wanted,
        "not_sent_now": found.unsent,
        "changed_meanwhile": found.moved,
        "passed": found.passed,
        "found": dict(found.found),
        "examples": [
            {
                "kind": each.kind,
                "place": each.place,
                "columns": {
                    name: {"held": held, "served": served} for name, (held, served) in each.columns.items()
                },
                "note": each.note,
            }
            for each in found.examples
        ],
    }
