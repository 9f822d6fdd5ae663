"""What a run shall build: one answer for schedule, backfill, form, REST and command line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType

from seamline.model.errors import BadRange
from seamline.model.time.intervals import Interval, format_utc_instant, parse_moment

FIELDS = ("from", "to", "dirty", "reason")
MEANT = {
    "start": "from",
    "end": "to",
    "data_interval_start": "from",
    "data_interval_end": "to",
}
"""What bounds are called elsewhere, and here."""


@dataclass(frozen=True)
class RunRequest:
    """What one run is asked for: a span, the dirty intervals, or both."""

    asked: Interval | None
    """A span of event time; None for none."""
    dirty: bool
    """Whether the dirty intervals are built too."""
    reason: str
    """Why, recorded with the run; empty if nothing was said."""


def resolve_run_request(
    run_type: str,
    params: Mapping[str, object],
    data_interval_start: datetime | None = None,
    data_interval_end: datetime | None = None,
    partition: Interval | None = None,
    guessed: Callable[[Interval], bool] = lambda _: False,
) -> RunRequest:
    """Resolve a run; BadRange names the field that is wrong.

    The form's ``from`` and ``to`` win. A scheduled run has its data interval and the dirty ones, a backfill
    run exactly its own, a partitioned run its partition. A manual run that was given a data interval (REST)
    has that; any other run is asked for the dirty intervals only, though Airflow gives some of them a data
    interval too, which ``guessed`` distinguishes from one that was given. The form's ``dirty``, where it is set, says
    whether the dirty ones are taken too.
    """
    require_known_fields(params, FIELDS, MEANT)
    form, reason = form_span(params), str(params.get("reason") or "")
    span, dirty = (
        interval_of(data_interval_start, data_interval_end),
        parse_flag("dirty", params.get("dirty")),
    )
    if run_type == "backfill":
        if form or dirty:
            raise BadRange(
                f"from, to, dirty: a backfill run builds its own interval, not {form or 'the dirty ones'}.",
                hint="leave them out of the backfill's configuration, or trigger a run with them.",
            )
        if span is None:
            raise BadRange(
                "data_interval_start, data_interval_end: a backfill run has none.",
                hint="the DAG needs a CronDataIntervalTimetable.",
            )
        return RunRequest(span, False, reason or "backfill")
    if form:
        return RunRequest(form, bool(dirty), reason or "asked for")
    if partition:
        return RunRequest(partition, bool(dirty), reason or "partition")
    if run_type == "scheduled":
        return RunRequest(span, dirty is not False, reason or "scheduled")
    if run_type == "manual" and span and not guessed(span):
        return RunRequest(span, bool(dirty), reason or "asked for")
    if dirty is False:
        raise BadRange(
            "from, to, dirty: no interval is requested.", hint="set from and to, or leave dirty on."
        )
    return RunRequest(None, True, reason or "dirty intervals")


def require_known_fields(
    params: Mapping[str, object], fields: Iterable[str], meant: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Refuse what is nearly a field of a form: Airflow lets any configuration through, and it would not be seen.

    Other names are of those who put them there.
    """
    known = {name: name for name in fields}
    for name in params:
        if name not in known and (field := {**meant, **known}.get(name.lower())):
            raise BadRange(f"{name}: there is no such field.", hint=f'write "{field}".')


def before_the_clock(span: Interval, run_after: datetime, length: timedelta) -> bool:
    """Return whether a span is the last interval before a run was asked for: what Airflow guesses for a manual one."""
    return span.end - span.start == length and span.end <= run_after < span.end + length


def parse_flag(field: str, value: object) -> bool | None:
    """Parse a flag that may not be set."""
    if value is None or isinstance(value, bool):
        return value
    raise BadRange(
        f"{field}: {value!r} is neither true nor false.", hint="use true or false, or leave it out."
    )


def form_span(params: Mapping[str, object]) -> Interval | None:
    """Read ``from`` and ``to``: both or neither."""
    given = {field: value for field in ("from", "to") if (value := params.get(field)) not in (None, "")}
    if not given:
        return None
    for field in ("from", "to"):
        if field not in given:
            raise BadRange(f"{field}: it is missing beside {next(iter(given))}.", hint="set both or neither.")
    start, end = (parse_bound(field, given[field]) for field in ("from", "to"))
    if start >= end:
        raise BadRange(
            f"from, to: {format_utc_instant(start)} is not before {format_utc_instant(end)}.",
            hint="to is exclusive: one day is from D to D+1.",
        )
    return Interval(start, end)


def parse_bound(field: str, value: object) -> datetime:
    """Parse one bound, which names its zone, as a UTC instant: a form does not say which one it means."""
    try:
        found = parse_moment(str(value))
    except BadRange as wrong:
        raise BadRange(f"{field}: {wrong.message}", hint=wrong.hint) from None
    if datetime.fromisoformat(str(value).strip()).tzinfo is None:
        raise BadRange(
            f"{field}: {value!r} has no zone.", hint=f'write "{format_utc_instant(found)}" if UTC is meant.'
        )
    return found


def interval_of(start: datetime | None, end: datetime | None) -> Interval | None:
    """Return the data interval; None if it is empty or not set."""
    if start is None or end is None or start >= end:
        return None
    # Airflow's own date-times are pendulum's, whose differences cannot be divided as the grid divides.
    return Interval(parse_moment(start.isoformat()), parse_moment(end.isoformat()))
