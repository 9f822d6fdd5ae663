"""A range of a sink's files that is sent again: whole folders are written anew, whatever is there."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from tests.unit.shop import DAY, START, Sale, Shop
from tests.unit.sinks.files.file_rows import Clock, read_changes, read_rows, spell
from tests.unit.sinks.sending_shop import refresh

from seamline import FileSink
from seamline.lake.read.sinks.shown_rows import StartRange
from seamline.lake.store.locations import Location, delete_files
from seamline.model.errors import SetupError
from seamline.model.protocol.sinks.ranges_again import RangeAgain
from seamline.model.time.intervals import format_utc_instant
from seamline.sinks.audit.audit_words import format_sink_audit
from seamline.sinks.audit.sink_audit import audit_sink
from seamline.sinks.files.folder_spans import find_folder_span, may_start_in
from seamline.sinks.files.reading import list_current_files
from seamline.sinks.files.target import FileTarget
from seamline.sinks.sink_list import ask_for_range
from seamline.sinks.sink_runner import SinkRunner

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("small_steps")]
IDENTITY = ["customer", "window_start", "window_end"]
FORMATS = ("parquet", "json")
HOUR = timedelta(hours=1)


@pytest.fixture
def clock() -> Clock:
    """The clock of who writes the files."""
    return Clock()


def make_runner(shop: Shop, sink: FileSink, clock: Clock, *, once: bool = True) -> SinkRunner:
    """Make what runs a sink."""
    opening: Callable[..., FileTarget] = lambda *_: FileTarget(sink, shop.view, clock)  # noqa: E731 - a factory
    return SinkRunner(shop.compiled, shop.layout, sink, threading.Event(), once=once, opening=opening)


def send(shop: Shop, sink: FileSink, clock: Clock) -> None:
    """Send what is new, or asked for."""
    runner = make_runner(shop, sink, clock)
    runner.run()
    assert runner.error is None, runner.error


def sell(shop: Shop, *sales: Sale) -> None:
    """Show one more epoch."""
    shop.epoch([*sales], watermark=START + DAY)
    refresh(shop)


def ask(shop: Shop, sink: FileSink, start: datetime, end: datetime | None = None) -> None:
    """Ask for a range, as the command does."""
    asked = RangeAgain(format_utc_instant(start), format_utc_instant(end) if end else "")
    compiled = replace(shop.compiled, definition=replace(shop.compiled.definition, sinks=(sink,)))
    ask_for_range(compiled, shop.layout, sink, asked)


def send_again(
    shop: Shop, sink: FileSink, clock: Clock, start: datetime, end: datetime | None = None
) -> None:
    """Ask for a range, and send it."""
    ask(shop, sink, start, end)
    send(shop, sink, clock)


def audit(shop: Shop, sink: FileSink, span: StartRange = StartRange()) -> list[str]:  # noqa: B008 - never changes
    """Audit the files; return what is said of what is wrong."""
    found = audit_sink(shop.compiled, shop.layout, sink, clock=lambda: START, span=span)
    return [] if found.passed else [*format_sink_audit(found)]


def list_places(sink: FileSink, warehouse: Location, folder: str = "") -> list[Location]:
    """List the files that count, of one folder."""
    found = [warehouse / each.removeprefix(f"{warehouse}/") for each in list_current_files(sink.path)]
    return [each for each in found if folder in str(each)]


def tear(place: Location) -> None:
    """Cut a file short."""
    place.write_bytes(place.read_bytes()[:-20])


def garble(place: Location) -> None:
    """Write other bytes into a file, as many."""
    place.write_bytes(bytes(255 - each for each in place.read_bytes()))


HARMS = {"torn": tear, "garbled": garble, "gone": lambda place: delete_files([place])}


@pytest.mark.parametrize("harm", HARMS.values(), ids=HARMS)
@pytest.mark.parametrize("form", FORMATS)
def test_a_range_mends_files_that_are_damaged(
    shop: Shop, clock: Clock, warehouse: Location, form: str, harm: Callable[[Location], None]
) -> None:
    """What the audit names, its remedy mends: the folder is written anew, and that of another day is not touched."""
    sink = FileSink("sales", path=str(warehouse / "out"), format=form)
    send(shop, sink, clock)
    sell(shop, Sale(3, "c"), Sale(25 * 60, "d"))
    send(shop, sink, clock)
    first, second = (list_places(sink, warehouse, f"in_window=2013-01-0{day}") for day in (1, 2))
    for place in first:
        harm(place)
    said = audit(shop, sink, StartRange(START, START + DAY))
    assert said[-1].endswith(
        "`seamline sinks resend shop sales_files --from 2013-01-01T00:00:00Z --to 2013-01-02T00:00:00Z` "
        "sends these windows again"
    )
    assert audit(shop, sink, StartRange(START + DAY)) == [], "damage of other windows is none of theirs"
    send_again(shop, sink, clock, START + 23 * HOUR, START + DAY)
    assert audit(shop, sink) == []
    assert list_places(sink, warehouse, "in_window=2013-01-02") == second
    assert not {*first} & {*list_places(sink, warehouse)}
    sell(shop, Sale(4, "c", 7))
    send(shop, sink, clock)
    assert audit(shop, sink) == []


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("buckets", [[], ["customer"], ["1 hour", "customer"]], ids=str)
def test_a_range_mends_rows_that_somebody_has_changed(
    shop: Shop, clock: Clock, warehouse: Location, form: str, buckets: list[str]
) -> None:
    """Another value, and a row of nobody, have the version that was there: one beside it would be no newer."""
    sink = FileSink("sales", path=str(warehouse / "out"), format=form, buckets=buckets)
    send(shop, sink, clock)
    rows = len(read_changes(warehouse))
    for place in list_places(sink, warehouse):
        if form == "json":
            place.write_bytes(
                place.read_bytes().replace(b'"total": 1', b'"total": 8').replace(b'"b"', b'"z"')
            )
        else:
            tear(place)
    assert "WRONG" in str(audit(shop, sink))
    send_again(shop, sink, clock, START)
    assert audit(shop, sink) == []
    assert len(read_changes(warehouse)) == rows


@pytest.mark.parametrize("form", FORMATS)
def test_earlier_values_that_can_be_read_stay(
    shop: Shop, clock: Clock, warehouse: Location, form: str
) -> None:
    """With history=True a folder keeps what it has told, but for what a damaged file alone had."""
    sink = FileSink("sales", path=str(warehouse / "out"), format=form, history=True)
    send(shop, sink, clock)
    for amount in (5, 6):
        sell(shop, Sale(1, "a", amount))
        send(shop, sink, clock)
    before = list_totals(warehouse)
    assert len(before) == 3
    tear(max(list_places(sink, warehouse), key=lambda each: each.name))
    send_again(shop, sink, clock, START)
    assert audit(shop, sink) == []
    assert list_totals(warehouse) == before


def list_totals(warehouse: Location) -> list[int]:
    """List what the files have told of the first hour of customer a, in order."""
    rows = sorted(read_changes(warehouse), key=lambda row: int(row["_version"]))
    return [row["total"] for row in rows if spell([row[name] for name in IDENTITY[:2]]) in FIRST]


FIRST_PLACES = [
    spell(["a", START, START + HOUR]),
    spell(["a", "2013-01-01T00:00:00Z", "2013-01-01T01:00:00Z"]),
]
FIRST = (spell(["a", START]), spell(["a", "2013-01-01T00:00:00Z"]))


@pytest.mark.parametrize("form", FORMATS)
def test_rows_that_are_gone_stay_gone(shop: Shop, clock: Clock, warehouse: Location, form: str) -> None:
    """The file that says so is damaged, and an earlier one has the row: it must not come back."""
    sink = FileSink("sales", path=str(warehouse / "out"), format=form, history=True)
    send(shop, sink, clock)
    earlier = {*list_places(sink, warehouse)}
    shop.events[0] = [each for each in shop.events[0] if each.customer != "b"]
    shop.build(0, 0, "without")
    refresh(shop)
    send(shop, sink, clock)
    held = read_rows(warehouse, IDENTITY).keys()
    assert any(row["_deleted"] for row in read_changes(warehouse))
    for place in {*list_places(sink, warehouse)} - earlier:
        tear(place)
    assert "WRONG" in str(audit(shop, sink))
    send_again(shop, sink, clock, START)
    assert audit(shop, sink) == []
    assert read_rows(warehouse, IDENTITY).keys() == held
    assert any(row["_deleted"] for row in read_changes(warehouse))


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("history", [False, True])
def test_a_last_value_that_is_not_sent_now_stays(
    shop: Shop, clock: Clock, warehouse: Location, form: str, history: bool
) -> None:
    """With when="certified" a late record makes a row provisional: the target keeps the certified value."""
    sink = FileSink("sales", path=str(warehouse / "out"), format=form, when="certified", history=history)
    shop.build(0, 0, "g")
    refresh(shop)
    send(shop, sink, clock)
    held = read_rows(warehouse, IDENTITY)
    sell(shop, Sale(1, "a", 50))
    send(shop, sink, clock)
    found = audit_sink(shop.compiled, shop.layout, sink, clock=lambda: START)
    assert held and found.unsent
    send_again(shop, sink, clock, START)
    assert audit(shop, sink) == []
    after = read_rows(warehouse, IDENTITY)
    [changed] = [key for key in held if key in FIRST_PLACES]
    assert after.keys() == held.keys()
    assert spell(after[changed]) == spell(held[changed])


@pytest.mark.everywhere
def test_a_writer_that_goes_on_in_the_middle(
    shop: Shop, clock: Clock, warehouse: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folders that are written are not written again, and a range without rows ends too."""
    monkeypatch.setattr("seamline.sinks.files.folders_again.AT_ONCE", 1)
    sink = FileSink("sales", path=str(warehouse / "out"), buckets=["1 hour"])
    send(shop, sink, clock)
    before = {*list_places(sink, warehouse)}
    ask(shop, sink, START)
    runner = make_runner(shop, sink, clock, once=False)
    runner.stop.set()
    assert runner.try_to_send()
    assert runner.sending
    assert runner.sending.position
    assert runner.sending.position.again
    runner.close()
    half = {*list_places(sink, warehouse)}
    assert half - before
    assert half & before
    send(shop, sink, clock)
    after = {*list_places(sink, warehouse)}
    assert half - before < after
    assert not after & before
    assert audit(shop, sink) == []
    send_again(shop, sink, clock, START + 900 * DAY)
    assert {*list_places(sink, warehouse)} == after
    with closing(FileTarget(sink, shop.view, clock)) as target:
        held = target.take_over()
    assert held
    assert held.settled


@pytest.mark.parametrize("form", FORMATS)
def test_a_merge_that_meets_damage_says_what_mends_it(
    shop: Shop, clock: Clock, warehouse: Location, form: str
) -> None:
    """It goes on once that is done: nobody has to write everything anew."""
    sink = FileSink("sales", path=str(warehouse / "out"), format=form, buckets=[])
    send(shop, sink, clock)
    damaged = list_places(sink, warehouse)[0]
    garble(damaged)
    clock.now += 7200
    with closing(FileTarget(sink, shop.view, clock)) as target:
        target.take_over()
        with pytest.raises(SetupError, match=damaged.name) as told:
            target.tidy(lambda: False)
    assert "sinks resend PIPELINE SINK --from" in told.value.hint
    clock.now = Clock().now
    send_again(shop, sink, clock, START)
    clock.now += 7200
    with closing(FileTarget(sink, shop.view, clock)) as target:
        target.take_over()
        target.tidy(lambda: False)
    assert audit(shop, sink) == []


def test_folders_of_other_buckets_are_read_for_any_range(
    shop: Shop, clock: Clock, warehouse: Location
) -> None:
    """The definition was edited, and the sink has not written anew yet: a name is of a longer piece of time."""
    sink = FileSink("sales", path=str(warehouse / "out"), buckets=["6 hours"])
    send(shop, sink, clock)
    span = StartRange(START + HOUR, START + 2 * HOUR)
    assert audit(shop, replace(sink, buckets=["1 hour"]), span) == []


def test_which_windows_folders_have() -> None:
    """The folder of a window that starts in a range is one of those that are written."""
    span = StartRange(START + 5 * HOUR, START + 6 * HOUR)
    assert find_folder_span(span, ["shop", "1 day"]) == StartRange(START, START + DAY)
    assert find_folder_span(span, ["shop"]) == StartRange()
    assert find_folder_span(StartRange(START + HOUR), ["1 day"]) == StartRange(START)
    days = [f"in_shop=a/in_window=2013-01-0{day}" for day in (1, 2)]
    assert [may_start_in(each, ["shop", "1 day"], span) for each in days] == [True, False]
    hours = [f"in_window=2013-01-01-{hour:02}" for hour in (4, 5, 6)]
    assert [may_start_in(each, ["1 hour"], span) for each in hours] == [False, True, False]
    assert may_start_in("in_window=somebody's", ["1 hour"], span)
    assert may_start_in("", [], span)
