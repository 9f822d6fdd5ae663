"""A plan in words: the lines of the command line and of the task's log, and a table for pages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from seamline.model.protocol.seam import NOTHING
from seamline.model.time.intervals import format_utc_instant
from seamline.plan.batch.batch_plan import BatchPlan, Build
from seamline.plan.batch.build_causes import Cause, Kind

SHOWN = 20


def format_plan(plan: BatchPlan, *, why: bool = False, shown: int | None = SHOWN) -> Iterator[str]:
    """Say what a plan does and what it costs; ``why`` adds every cause of every interval."""
    if plan.cut == NOTHING:
        yield "The log has no edge yet: nothing can be built."
        return
    yield f"cut {plan.cut}, watermark {format_watermark(plan.watermark)}"
    if plan.again:
        yield f"  first, {plan.again} earlier records are reprocessed: the definition has changed what they mean"
    shown = None if why else shown
    for build in plan.builds[:shown]:
        yield f"  build {build.interval.id}  {build.rows} rows  {format_bytes(build.bytes)}  {build.reason}"
        if why:
            yield from (f"    {format_cause(cause, build)}" for cause in build.causes)
    yield from format_remainder(len(plan.builds), shown)
    left = group_left_out(plan)[:shown]
    yield from (f"  leave {each.intervals}  {each.reason}" for each in left)
    yield from format_remainder(len(plan.left_out) + plan.unnamed, sum(each.count for each in left))
    if plan.builds:
        yield f"  {format_plan_total(plan)}"
    elif not plan.left_out:
        yield "  nothing to do"


def format_plan_total(plan: BatchPlan) -> str:
    """Sum up what is read, and how long that may take."""
    count = len(plan.builds)
    took = "no past run shows how long" if plan.seconds is None else f"about {plan.seconds:.0f} s of building"
    return f"{count} interval{'s' * (count > 1)}, {plan.rows} rows, at most {format_bytes(plan.bytes)} to read, {took}"


def format_cause(cause: Cause, build: Build) -> str:
    """Say one cause with what is known of it."""
    if cause.kind is Kind.ASKED:
        return "asked for"
    known = f"cut {cause.cut}" if cause.cut > NOTHING else "nothing published"
    since = f"since epoch {cause.since}"
    match cause.kind:
        case Kind.LATE:
            said = f"{cause.rows} late row{'s' * (cause.rows > 1)} {since}"
        case Kind.JOINED:
            changes = f"{cause.rows} change{'s' * (cause.rows > 1)} of derived rows"
            said = f"{changes} {since}, by records of this interval or of one in reach"
        case Kind.CLOSED:
            said = "closed since it was published"
        case Kind.RESTATED:
            said = f"restated: {', '.join(cause.names)}, {since}"
        case Kind.CHANGED:
            said, known = f"definition changed {since}", "this version has nothing published"
        case Kind.RAISED:
            said = "what is published does not reach the interval's floor"
        case _:
            said = f"never built, {build.rows} rows {since}"
    return f"{cause.view}: {said}; {known}"


def format_plan_table(plan: BatchPlan, *, shown: int = SHOWN) -> str:
    """Write a plan as a Markdown table, for the pages of Airflow."""
    rows = [
        f"| {each.interval.id} | {each.rows} | {format_bytes(each.bytes)} | {each.reason} |"
        for each in plan.builds
    ]
    text = [f"{format_plan_total(plan)}; cut {plan.cut}, watermark {format_watermark(plan.watermark)}", ""]
    text += ["| interval | rows | to read | why |", "| --- | ---: | ---: | --- |", *rows[:shown]]
    text += [f"| ... | | | and {len(rows) - shown} more |"] if len(rows) > shown else []
    if plan.left_out:
        groups = group_left_out(plan)
        named = "; ".join(f"{each.intervals} {each.reason}" for each in groups[:shown])
        text += [
            "",
            f"{len(plan.left_out) + plan.unnamed} left out: {named}{' ...' * (len(groups) > shown)}",
        ]
    return "\n".join(text)


@dataclass(frozen=True)
class LeftGroup:
    """Intervals in a row that are left out for the same reason."""

    intervals: str
    """The interval, or the first and the last with their number."""
    count: int
    """How many there are."""
    reason: str
    """Why they are not built."""


def group_left_out(plan: BatchPlan) -> list[LeftGroup]:
    """List what is left out; an interval has its line only where the one before has another reason."""
    found = []
    for reason, group in groupby(plan.left_out, key=lambda each: each.reason):
        ids = [each.interval.id for each in group]
        name = f"{ids[0]} to {ids[-1]} ({len(ids)} intervals)" if ids[1:] else ids[0]
        found.append(LeftGroup(name, len(ids), reason))
    return found


def format_remainder(count: int, shown: int | None) -> Iterator[str]:
    """Say how many are not shown."""
    if shown is not None and count > shown:
        yield f"  ... and {count - shown} more"


def format_watermark(moment: datetime | None) -> str:
    """Write an instant that may not be known."""
    return format_utc_instant(moment) if moment else "unknown"


def format_bytes(count: int) -> str:
    """Write bytes in units of 1000."""
    number = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} TB"


def serialize_plan(plan: BatchPlan) -> dict[str, Any]:
    """Return a plan as JSON has it; sizes are bytes, ``seconds`` an estimate, null where it is unknown."""
    return {
        "cut": plan.cut,
        "watermark": format_utc_instant(plan.watermark) if plan.watermark else None,
        "builds": [
            {
                "interval": each.interval.id,
                "end": format_utc_instant(each.interval.end),
                "rows": each.rows,
                "late": each.late,
                "bytes": each.bytes,
                "reason": each.reason,
            }
            for each in plan.builds
        ],
        "left_out": [{"interval": each.interval.id, "reason": each.reason} for each in plan.left_out],
        "unnamed": plan.unnamed,
        "rows": plan.rows,
        "bytes": plan.bytes,
        "seconds": plan.seconds,
        "judged_again": plan.again,
    }
