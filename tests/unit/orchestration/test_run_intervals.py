"""One function decides what a run builds, whoever started it."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial

import pytest

from seamline.model.errors import BadRange
from seamline.model.time.intervals import Grid, Interval, parse_moment
from seamline.orchestration.run_intervals import RunRequest, before_the_clock, resolve_run_request

DAY = Interval.parse("2013-03-01/2013-03-02")
WEEK = Interval.parse("2013-03-01/2013-03-08")
FORM = {"from": "2013-03-01T00:00Z", "to": "2013-03-08T00:00:00+00:00", "reason": "fix"}
EMPTY = {"from": None, "to": None, "reason": ""}


def test_a_scheduled_run_takes_its_interval_and_what_is_dirty():
    """Late events are counted without anybody asking for it."""
    assert RunRequest(DAY, True, "scheduled") == resolve_run_request("scheduled", EMPTY, DAY.start, DAY.end)


def test_a_backfill_run_takes_exactly_its_interval():
    """A backfill of March must not rebuild May on the way."""
    assert RunRequest(DAY, False, "backfill") == resolve_run_request("backfill", EMPTY, DAY.start, DAY.end)


def test_a_backfill_keeps_its_reason():
    """The reason of `seamline backfill --reason` is found again in the certificates."""
    assert (
        resolve_run_request("backfill", {**EMPTY, "reason": "new rule"}, DAY.start, DAY.end).reason
        == "new rule"
    )


@pytest.mark.parametrize("kind", ["manual", "operator_triggered", "asset_materialization"])
def test_the_form_wins(kind):
    """One run may cover a range of days, by the form, REST and `airflow dags trigger --conf` alike."""
    assert RunRequest(WEEK, False, "fix") == resolve_run_request(kind, FORM, DAY.start, DAY.end)


def test_a_manual_run_does_not_take_the_interval_that_airflow_infers():
    """Airflow gives a manual run the last interval before the clock, which nobody asked for."""
    noon, length = DAY.end + timedelta(hours=12), timedelta(days=1)
    guessed = partial(before_the_clock, run_after=noon, length=length)
    dirty = RunRequest(None, True, "dirty intervals")
    assert resolve_run_request("manual", EMPTY, DAY.start, DAY.end, guessed=guessed) == dirty
    assert resolve_run_request("asset_triggered", EMPTY, WEEK.start, WEEK.end, guessed=guessed) == dirty


@pytest.mark.parametrize(
    "given", [Interval.parse("2013-02-27/2013-02-28"), Interval.parse("2013-02-27/2013-03-02")]
)
def test_a_manual_run_takes_the_interval_that_it_was_given(given):
    """REST's data_interval_start and data_interval_end, which Airflow would not have guessed."""
    noon, length = DAY.end + timedelta(hours=12), timedelta(days=1)
    guessed = partial(before_the_clock, run_after=noon, length=length)
    assert resolve_run_request("manual", EMPTY, given.start, given.end, guessed=guessed) == RunRequest(
        given, False, "asked for"
    )


@pytest.mark.parametrize("kind", ["manual", "asset_triggered"])
def test_a_run_without_any_interval_takes_what_is_dirty(kind):
    """Runs by REST with a null logical date have no data interval at all."""
    assert RunRequest(None, True, "dirty intervals") == resolve_run_request(kind, {})


def test_a_partitioned_run_takes_its_partition():
    """A partition names its span; the clock does not matter."""
    assert RunRequest(DAY, False, "partition") == resolve_run_request("asset_triggered", EMPTY, partition=DAY)


def test_airflows_own_date_times_become_plain_ones():
    """Pendulum's differences cannot be divided by a length, so the grid would fail on them."""
    pendulum = pytest.importorskip("pendulum")
    start, end = (pendulum.instance(bound) for bound in (DAY.start, DAY.end))
    asked = resolve_run_request("backfill", EMPTY, start, end).asked
    assert asked is not None
    assert list(Grid(timedelta(days=1), DAY.start).within(asked)) == [DAY]


def test_a_zero_width_interval_is_none():
    """Cron timetables without data intervals give start = end; nothing may be built for that."""
    assert resolve_run_request("scheduled", EMPTY, DAY.start, DAY.start).asked is None


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"from": "2013-03-01T00:00Z"}, "to: it is missing beside from."),
        ({"to": "2013-03-01"}, "from: it is missing beside to."),
        ({"from": "yesterday", "to": "2013-03-01"}, "from: 'yesterday' is not a date or a time."),
        ({"from": "2013-03-01T00:00Z", "to": 7}, "to: '7' is not a date or a time."),
        (
            {"from": "2013-03-02T00:00Z", "to": "2013-03-01T00:00Z"},
            "from, to: 2013-03-02T00:00:00Z is not before",
        ),
        (
            {"from": "2013-03-02T00:00Z", "to": "2013-03-02T00:00Z"},
            "from, to: 2013-03-02T00:00:00Z is not before",
        ),
        ({"from": "2013-03-01", "to": "2013-03-02T00:00Z"}, "from: '2013-03-01' has no zone."),
        ({"from": "2013-03-01T00:00Z", "to": "2013-03-02T00:00"}, "to: '2013-03-02T00:00' has no zone."),
        ({"dirty": "yes"}, "dirty: 'yes' is neither true nor false."),
        ({"dirty": False}, "from, to, dirty: no interval is requested."),
    ],
)
def test_what_cannot_be_meant_is_refused_by_the_name_of_its_field(params, message):
    """The message goes straight under the form's field."""
    with pytest.raises(BadRange) as refused:
        resolve_run_request("manual", params)
    assert refused.value.message.startswith(message)


@pytest.mark.parametrize("params", [FORM, {"dirty": True}])
def test_a_backfill_with_a_form_is_refused(params):
    """Every one of its runs would build the same span."""
    with pytest.raises(BadRange, match="a backfill run builds its own interval"):
        resolve_run_request("backfill", params, DAY.start, DAY.end)


def test_the_flag_takes_the_dirty_ones_too_or_leaves_them():
    """A range and the dirty intervals in one run; a scheduled run that is to be quick."""
    assert RunRequest(WEEK, True, "fix") == resolve_run_request("manual", {**FORM, "dirty": True})
    assert RunRequest(DAY, False, "scheduled") == resolve_run_request(
        "scheduled", {"dirty": False}, DAY.start, DAY.end
    )


def test_a_bound_in_another_zone_is_the_same_instant():
    """The browser's form sends its own zone."""
    asked = resolve_run_request(
        "manual", {"from": "2013-02-28T19:00:00-05:00", "to": "2013-03-02T00:00Z"}
    ).asked
    assert asked is not None
    assert asked.start == parse_moment("2013-03-01")
    assert isinstance(asked.end, datetime)


@pytest.mark.parametrize(
    "given",
    [
        {"start": "2013-03-01T00:00Z", "end": "2013-03-02T00:00Z"},
        {"From": "2013-03-01T00:00Z", "To": "2013-03-02T00:00Z"},
        {"data_interval_start": "2013-03-01T00:00Z", "data_interval_end": "2013-03-02T00:00Z"},
        {"Dirty": True},
    ],
)
@pytest.mark.parametrize("kind", ["manual", "backfill", "asset_triggered"])
def test_a_field_that_is_nearly_one_is_refused(given, kind):
    """Airflow takes any configuration: a range under another name would build the dirty intervals in its place."""
    with pytest.raises(BadRange, match=f"{next(iter(given))}: there is no such field"):
        resolve_run_request(kind, {**EMPTY, **given}, DAY.start, DAY.end)


def test_what_others_put_beside_the_form_is_theirs():
    """A callback of the definition's may want a ticket's number."""
    asked = resolve_run_request("manual", {**FORM, "ticket": "OPS-7"})
    assert asked == RunRequest(WEEK, False, "fix")
