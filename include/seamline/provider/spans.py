"""Which event times a task is about: what it was given, its run's partition, or the run's data interval."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from seamline.model.errors import BadRange
from seamline.model.time.intervals import Grid, Interval, parse_moment, parse_named_moment
from seamline.orchestration.run_intervals import interval_of

Bound = str | datetime
DATE = len("2026-03-01")
GIVE = 'give start and end, for example end="{{ data_interval_end }}".'


def span_of(context: Mapping[str, Any], start: Bound, end: Bound, grid: Grid) -> Interval:
    """Resolve a task's span; BadRange where nothing says which it is. A bound without a zone is in UTC."""
    if start:
        first = parse_bound("start", start)
        return Interval(first, parse_bound("end", end)) if end else grid.of(first)
    if end:
        raise BadRange("end: start is missing beside it.", hint="give both, or start alone for its interval.")
    if key := context.get("partition_key"):
        return span_of_partition(str(key), grid)
    if span := interval_of(context.get("data_interval_start"), context.get("data_interval_end")):
        return span
    raise BadRange("start, end: the run has neither a data interval nor a partition.", hint=GIVE)


def span_of_partition(key: str, grid: Grid) -> Interval:
    """Return what a partition's key means: the interval that begins there, or all of a day that is named as a date."""
    try:
        first = parse_moment(key)
    except BadRange:
        raise BadRange(f"The run's partition {key!r} is not an instant.", hint=GIVE) from None
    own = grid.of(first)
    day = timedelta(days=1)
    return Interval(first, first + day) if len(key) == DATE and grid.length < day else own


def parse_bound(name: str, value: Bound) -> datetime:
    """Parse a bound, which may be a date-time of Airflow's."""
    return parse_named_moment(name, value.isoformat() if isinstance(value, datetime) else str(value))
