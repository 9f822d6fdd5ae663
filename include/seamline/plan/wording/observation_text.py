"""An observation in words: the cells of a row, what must be said below it, and all of it as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from seamline.model.time.intervals import format_utc_instant
from seamline.plan.spelling import format_duration, format_quantity, last_line
from seamline.plan.stream.alerts import count_failures
from seamline.plan.stream.ask_counts import describe_silence
from seamline.plan.stream.observation import Lag, Observation
from seamline.plan.stream.sink_facts import format_sink_notes, serialize_sinks
from seamline.plan.stream.stream_state import Actual

UNKNOWN = "?"
RECONCILER = "seamline__reconcile"
"""The DAG that keeps up what should run, of all pipelines."""
FINE = (Actual.RUNNING, Actual.STOPPED)


def format_observation_row(found: Observation) -> dict[str, str]:
    """Return the cells of a row by the names of their columns; what is not known is a question mark."""
    lag = found.lag
    return {
        "pipeline": found.pipeline,
        "desired": found.desired,
        "actual": found.actual.value,
        "epoch": format_count(found.epoch),
        "committed": format_time_ago(found.epoch_age.total_seconds()) if found.epoch_age else UNKNOWN,
        "lag": format_count(lag.records) + (format_lag_age(lag, found.at) if not lag.asked else ""),
        "oldest unread": UNKNOWN if lag.seconds is None else format_duration(lag.seconds),
        "caught up in": catch_up(lag),
        "watermark": format_to_second(found.watermark),
        "behind by": format_duration(found.watermark_age.total_seconds()) if found.watermark_age else UNKNOWN,
        "rows/s": UNKNOWN if found.rows_per_second is None else f"{found.rows_per_second:,.0f}",
        "restarts": format_count(found.restarts),
    }


def format_observation_notes(found: Observation) -> Iterator[str]:
    """Say in lines what does not fit into a row: why, by whom, errors, and everything that is not as it should be."""
    if found.detail:
        yield found.detail
    if found.reason or (found.actor and found.actual not in FINE):
        yield f"{found.desired} by {found.actor}{f': {found.reason}' if found.reason else ''}"
    for alert in found.alerts:
        yield f"ALERT {alert}"
    if found.strikes:
        yield count_failures(found.strikes)
    if found.last_error and (found.strikes or found.actual not in FINE):
        yield f"last error: {last_line(found.last_error)}"
    yield from format_view_notes(found)
    yield from format_sink_notes(found.sinks or ())
    for hole in found.holes or ():
        yield f"hole, not decided: {hole}; see `seamline holes list {found.pipeline}`"
    for each in found.ageing or ():
        yield f"soon: {each}"
    if found.silenced and found.reconciled:
        yield f"not reconciled since {format_to_second(found.reconciled)}: is the DAG {RECONCILER} paused?"
    for each in found.unread:
        yield f"not known, {each}"


def format_view_notes(found: Observation) -> Iterator[str]:
    """Say in lines which views are behind or have a hot key, and how many rows joins and look-ups keep."""
    for view, behind in sorted(found.behind.items()):
        why = f": {behind.error}" if behind.error else ""
        yield f"view {view} is complete to epoch {behind.frontier} only{why}"
    for view, hot in sorted(found.hot.items()):
        yield f"view {view} has a hot key: {hot.key} is {hot.share:.0%} of the last epoch"
    for join, rows in sorted(found.indexed.items()):
        yield f"join {join} keeps {rows:,} rows in the driver's index"
    for lookup, rules in sorted((found.rules or {}).items()):
        waiting = f", {rules.waiting:,} wait for room" if rules.waiting else ""
        yield f"look-up {lookup} has {rules.in_force:,} rules in force{waiting}"
    for ask, count in sorted((found.asks or {}).items()):
        said = (
            f"ask {ask} has {format_quantity(count.waiting, 'row')} waiting",
            describe_silence(count, found.at),
        )
        yield "; ".join(filter(None, (*said, count.waits)))


def format_lag_age(lag: Lag, now: datetime) -> str:
    """Say how old a lag is that the broker did not report now."""
    return f" ({format_time_ago((now - lag.at).total_seconds())})" if lag.at else ""


def catch_up(lag: Lag) -> str:
    """Say when everything will be read."""
    if (seconds := lag.catch_up) is None:
        return UNKNOWN
    if seconds == math.inf:
        return "growing" if lag.growing else "never"
    return format_duration(seconds)


def format_count(value: int | None) -> str:
    """Write a count."""
    return UNKNOWN if value is None else f"{value:,}"


def format_to_second(moment: datetime | None) -> str:
    """Write an instant to the second."""
    return format_utc_instant(moment.replace(microsecond=0)) if moment else UNKNOWN


def format_time_ago(seconds: float) -> str:
    """Write how long ago something was."""
    return f"{format_duration(max(seconds, 0.0))} ago"


def serialize_observation(found: Observation) -> dict[str, Any]:
    """Return all of an observation as JSON has it; null is not known, instants are ISO, lengths are seconds."""
    lag = found.lag
    eta = lag.catch_up
    return {
        "pipeline": found.pipeline,
        "at": format_utc_instant(found.at),
        "desired": found.desired,
        "actor": found.actor,
        "reason": found.reason,
        "actual": found.actual.value,
        "detail": found.detail,
        "epoch": found.epoch,
        "committed_at": format_optional_instant(found.committed_at),
        "lag": {
            "records": lag.records,
            "seconds": lag.seconds,
            "at": format_optional_instant(lag.at),
            "asked": lag.asked,
            "partitions": {f"{topic}/{part}": count for (topic, part), count in sorted(lag.lanes.items())},
            "arriving_per_second": lag.arriving,
            "read_per_second": lag.drained,
            "catch_up_seconds": None if eta == math.inf else eta,
            "growing": None if eta is None else lag.growing,
        },
        "watermark": format_optional_instant(found.watermark),
        "watermark_age": found.watermark_age.total_seconds() if found.watermark_age else None,
        "rows_per_second": found.rows_per_second,
        "restarts": found.restarts,
        "strikes": found.strikes,
        "last_error": found.last_error,
        "behind": {
            view: {"frontier": each.frontier, "error": each.error} for view, each in found.behind.items()
        },
        "hot_keys": {view: {"key": each.key, "share": each.share} for view, each in found.hot.items()},
        "indexed_rows": dict(found.indexed),
        "rules": {name: vars(each) for name, each in (found.rules or {}).items()},
        "asks": {name: vars(each) for name, each in (found.asks or {}).items()},
        "sinks": None if found.sinks is None else serialize_sinks(found.sinks),
        "holes": None if found.holes is None else list(found.holes),
        "ageing": None if found.ageing is None else list(found.ageing),
        "reconciled_at": format_optional_instant(found.reconciled),
        "not_reconciled": found.silenced,
        "alerts": [
            {
                "alert": each.kind.value,
                "subject": each.subject,
                "message": each.message,
                "since": format_optional_instant(each.at),
            }
            for each in found.alerts
        ],
        "unknown": list(found.unread),
    }


def format_optional_instant(moment: datetime | None) -> str | None:
    """Write an instant that may not be known."""
    return format_utc_instant(moment) if moment else None
