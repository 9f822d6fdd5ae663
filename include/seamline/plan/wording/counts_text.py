"""Producers' counts in lines: what is there now, what a certificate said, and records that are no statements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from seamline.model.protocol.audit import Finding, Wrong
from seamline.model.protocol.counts.comparison import SourceCounts
from seamline.model.protocol.counts.statement import TakenStatement
from seamline.model.protocol.counts.verdict import format_source_counts
from seamline.model.time.intervals import Interval

NAMED = 50
"""How many records that are no statements are listed."""


def format_counted_interval(
    name: str,
    interval: Interval,
    counts: SourceCounts,
    certified: SourceCounts | None,
    run: str,
    *,
    closed: bool,
) -> Iterator[str]:
    """Describe one interval; where its newest certificate says something else, that too."""
    of = f"{name}.{counts.source}" if counts.source else name
    state = "" if closed else " (open)"
    yield f"{of} {interval}{state}: {format_source_counts(counts)}"
    if certified is not None:
        yield f"  the certificate of run {run} says: {format_source_counts(certified)}"


def format_bad_statements(topic: str, bad: Iterable[TakenStatement]) -> Iterator[str]:
    """List records that are no statements, the newest first."""
    found = sorted(bad, key=lambda each: each.order, reverse=True)
    for each in found[:NAMED]:
        yield f"no statement: {topic}/{each.lane.partition}@{each.offset}: {each.reason}: {each.value}"
    if len(found) > NAMED:
        yield f"and {len(found) - NAMED} more that are no statements"


def list_count_findings(counts: SourceCounts) -> Iterator[Finding]:
    """List what contradicts what was read of an interval, as an audit names it."""
    for each in counts.counts:
        for gap in each.gaps:
            differ = gap.said - gap.read
            wrong = Wrong.MISSING if differ > 0 else Wrong.SURPLUS
            said = f"{gap.said} were sent by its statements, {gap.read} were read"
            yield Finding(wrong, f"producer {', '.join(each.producers)} {gap.window}", abs(differ), said)


def serialize_counted_interval(
    interval: Interval, counts: SourceCounts, certified: SourceCounts | None, run: str, *, closed: bool
) -> dict[str, Any]:
    """Return one interval as JSON."""
    return {
        "interval": str(interval),
        "closed": closed,
        "complete": counts.complete,
        "now": counts.to_row(),
        "certified": certified and certified.to_row(),
        "run": run,
    }
