"""An audit for people and programs: lines, JSON, and the error that it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from seamline.model.errors import AuditFailed
from seamline.model.protocol.accuracy import Accuracy
from seamline.model.protocol.audit import Audit, Finding, LaneAudit, Stated, ViewAudit, Wrong
from seamline.model.protocol.offsets import Lane
from seamline.model.time.intervals import format_utc_instant, parse_moment
from seamline.plan.spelling import format_quantity

NAMED = 20
"""How many findings an error names."""


def format_audit(audit: Audit) -> Iterator[str]:
    """Return what was looked at, then what is wrong."""
    of = f" of {audit.span}" if audit.span else ""
    yield f"{audit.pipeline}: audited{of} to epoch {audit.epoch} in {audit.seconds:.1f} s"
    for lane in audit.lanes:
        yield f"  {lane.lane}: {', '.join(format_lane_counts(lane))}"
    accepted = sum(each.accepted for each in audit.intervals.values())
    rows = sum(each.rows for each in audit.intervals.values())
    late = sum(each.late + each.very_late for each in audit.intervals.values())
    yield (
        f"  {len(audit.intervals)} intervals: {accepted} rows accepted by the ledger, {rows} in the master, {late} late"
    )
    for reason, count in sorted(audit.reasons.items()):
        yield f"  refused: {reason}: {count}"
    for view in audit.views:
        yield (
            f"  view {view.view}: {view.states} states of slices made again up to epoch {view.until}, "
            f"{view.generations} published generations"
        )
    yield from (f"  {line}" for line in (*audit.producers, *audit.sinks))
    for finding in audit.findings:
        yield f"  {finding}"
    yield "  nothing is wrong" if audit.passed else f"  {format_quantity(len(audit.findings), 'finding')}"


def format_lane_counts(lane: LaneAudit) -> Iterator[str]:
    """Describe a lane in numbers; what there is none of is left out."""
    kept = (
        "an import"
        if lane.lane.imported
        else "gone from Kafka"
        if lane.first is None
        else f"Kafka has {lane.first}..{lane.end} (the end is not in)"
    )
    yield kept
    yield f"read to {lane.read_to}"
    yield f"{lane.records} records"
    for count, what in (
        (lane.waiting, "not read yet"),
        (lane.blank, "offsets without a record"),
        (lane.untold, "offsets that Kafka no longer knows"),
        (lane.holes, "in holes"),
    ):
        if count:
            yield f"{count} {what}"


def require_sound(audit: Audit) -> None:
    """Raise AuditFailed that names what is wrong."""
    if audit.passed:
        return
    named = "\n".join(map(str, audit.findings[:NAMED]))
    more = f"\nand {len(audit.findings) - NAMED} more" if len(audit.findings) > NAMED else ""
    raise AuditFailed(
        f"The audit of {audit.pipeline} found {format_quantity(len(audit.findings), 'problem')}:\n{named}{more}",
        hint=f"`seamline audit {audit.pipeline}` lists all of them.",
    )


def serialize_audit(audit: Audit) -> dict[str, Any]:
    """Return an audit as JSON."""
    return {
        **asdict(audit),
        "at": format_utc_instant(audit.at),
        "lanes": [{**asdict(each), "lane": str(each.lane)} for each in audit.lanes],
        "findings": [{**asdict(each), "wrong": each.wrong.value} for each in audit.findings],
        "passed": audit.passed,
        "accuracy": {
            view: [{**asdict(each), "age": each.age.total_seconds()} for each in measured]
            for view, measured in audit.accuracy.items()
        },
    }


def audit_of(row: Mapping[str, Any]) -> Audit:
    """Read what ``serialize_audit`` wrote."""
    return Audit(
        pipeline=row["pipeline"],
        at=parse_moment(row["at"]),
        seconds=row["seconds"],
        actor=row["actor"],
        epoch=row["epoch"],
        lanes=tuple(LaneAudit(**{**each, "lane": Lane.parse(each["lane"])}) for each in row["lanes"]),
        intervals={id: Stated(**each) for id, each in row["intervals"].items()},
        reasons=row["reasons"],
        views=tuple(ViewAudit(**each) for each in row["views"]),
        findings=tuple(Finding(**{**each, "wrong": Wrong(each["wrong"])}) for each in row["findings"]),
        span=row.get("span", ""),
        producers=tuple(row.get("producers", ())),
        accuracy={
            view: tuple(Accuracy(**{**each, "age": timedelta(seconds=each["age"])}) for each in measured)
            for view, measured in row.get("accuracy", {}).items()
        },
        sinks=tuple(row.get("sinks", ())),
    )
