"""What a target holds against what is served: somebody's changes are named, also while the sink goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.unit.shop import DAY, START, Sale, Shop
from tests.unit.sinks.memory_target import MemoryTarget, Store
from tests.unit.sinks.sending_shop import SINK, held, refresh, send, shown

from seamline import RedisSink
from seamline.lake.read.sinks.shown_rows import StartRange
from seamline.model.definition.sinks.sink_base import Sink
from seamline.model.errors import ReadUnstable, SetupError
from seamline.model.protocol.sinks.positions import SinkPosition
from seamline.model.protocol.sinks.ranges_again import RangeAgain
from seamline.sinks.audit.sink_audit import SinkAudit, audit_sink
from seamline.sinks.sink_runner import SinkRunner

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("small_steps")]
NOW = datetime(2026, 11, 30, tzinfo=UTC)


def audit(shop: Shop, store: Store, sink: Sink = SINK, span: StartRange = StartRange()) -> SinkAudit:  # noqa: B008
    """Audit a store."""
    opening: Callable[[Any, Any], MemoryTarget] = lambda *_: MemoryTarget(store)  # noqa: E731 - a factory
    return audit_sink(shop.compiled, shop.layout, sink, clock=lambda: NOW, span=span, opening=opening)


def harm(store: Store) -> None:
    """Change a row, delete one, and add one."""
    changed, deleted, *_ = sorted(store.rows, key=lambda place: (place[1], str(place[0])))
    store.rows[changed] = {**store.rows[changed], "total": -7}
    row = store.rows.pop(deleted)
    store.rows["zoe", *deleted[1:]] = {**row, "customer": "zoe"}


def kinds(found: SinkAudit) -> list[str]:
    """Return what is wrong, by kind."""
    return [each.kind for each in found.examples]


def ask_again(store: Store, start: str = "2013-01-01T00:00:00Z", end: str = "") -> None:
    """Ask for a range again, as `seamline sinks resend --from` does."""
    target = MemoryTarget(store)
    position = target.take_over()
    assert position is not None
    target.write((), position.ask_again(RangeAgain(start, end)))


def test_a_target_that_is_as_served_passes(shop: Shop) -> None:
    """An alarm for nothing is read once."""
    store = Store()
    assert audit(shop, store).position is None
    send(shop, store)
    found = audit(shop, store)
    assert found.passed
    assert found.held == found.wanted == len(store.rows) > 3
    assert (found.unsent, found.moved) == (0, 0)


def test_what_somebody_has_changed_is_named_and_mended(shop: Shop) -> None:
    """One row changed, one deleted, one added: all three by name, and right once their range was sent again."""
    store = Store()
    send(shop, store)
    harm(store)
    found = audit(shop, store)
    assert kinds(found) == ["different", "extra", "missing"]
    assert found.found == {"missing": 1, "extra": 1, "different": 1}
    [different, extra, _] = found.examples
    assert different.columns["total"][0] == -7
    assert '"zoe"' in extra.place
    ask_again(store)
    assert send(shop, store).error is None
    assert held(store) == shown(shop)
    assert audit(shop, store).passed
    assert '"again"' not in str(store.position)


def test_what_expires_while_it_is_read_is_not_missing(shop: Shop) -> None:
    """The server lets go of it in the middle of an audit that takes minutes."""
    store, sink = Store(), RedisSink("sales", expire="1 hour")
    send(shop, store, sink)
    ended = START + timedelta(hours=1)
    times = iter([ended + timedelta(minutes=59), ended + timedelta(minutes=61)])

    for place in [each for each in store.rows if each[2] == ended]:
        del store.rows[place]
    found = audit_sink(
        shop.compiled,
        shop.layout,
        sink,
        clock=lambda: next(times),
        opening=lambda *_: MemoryTarget(store),
    )
    assert found.passed
    assert found.wanted == len(store.rows)


def test_only_a_range_is_compared_and_sent_again(shop: Shop) -> None:
    """Who reads a topic wants no more records than were lost."""
    store = Store()
    send(shop, store)
    harm(store)
    later = StartRange(START + timedelta(days=1))
    assert audit(shop, store, span=later).wanted == 2
    assert audit(shop, store, span=StartRange(None, START)).held == 0
    store.seen.clear()
    ask_again(store, "2013-01-02T00:00:00Z", "2013-01-03T00:00:00Z")
    send(shop, store)
    assert [place[1] for place, _ in store.seen] == [START + timedelta(hours=25)]


def test_rows_of_a_range_are_sent_once_whatever_fails(shop: Shop) -> None:
    """Replies that are lost, and a newer version meanwhile: the range comes first, and then the difference."""
    store = Store()
    send(shop, store)
    ask_again(store)
    asked = set(store.rows)
    shop.epoch([Sale(3, "b")], watermark=START + DAY)
    refresh(shop)
    store.seen.clear()
    store.fails = ["after", "before", "after"]
    for _ in range(4):
        send(shop, store)
    assert held(store) == shown(shop)
    places = [place for place, _ in store.seen]
    again, difference = places[: len(asked)], places[len(asked) :]
    assert set(again) == asked
    assert ("b", START, START + timedelta(hours=1)) in difference
    assert len(set(difference)) == len(difference)


def test_a_range_waits_for_the_end_of_the_way(shop: Shop) -> None:
    """On the way its rows are partly those of one version, partly of another: neither can be sent again then."""
    store = Store()
    send(shop, store)
    sales = [Sale(minute, customer) for minute in (1, 70, 25 * 60) for customer in "ab"]
    shop.epoch(sales, watermark=START + DAY)
    refresh(shop)
    store.fails = ["", "before"]
    send(shop, store)
    assert '"toward"' in str(store.position)
    ask_again(store)
    assert send(shop, store).error is None
    assert held(store) == shown(shop)
    assert '"again"' not in str(store.position)


def test_a_range_that_is_asked_for_twice_is_joined(shop: Shop) -> None:
    """The second one to ask must not take from the first what was not sent yet."""
    store = Store()
    send(shop, store)
    ask_again(store, "2013-01-02T00:00:00Z", "2013-01-03T00:00:00Z")
    ask_again(store, "2013-01-01T00:00:00Z", "2013-01-02T00:00:00Z")
    found = SinkPosition.from_json(str(store.position))
    assert found.again == RangeAgain("2013-01-01T00:00:00Z", "2013-01-03T00:00:00Z")


def test_a_sink_that_goes_on_meanwhile_is_no_finding(shop: Shop) -> None:
    """Half of the rows are read before a version, half after: what that version changed is not judged, the rest is."""
    store = Store()
    send(shop, store)
    harm(store)

    def move() -> None:
        shop.epoch([Sale(25 * 60), Sale(49 * 60), Sale(50 * 60)], watermark=START + DAY)
        refresh(shop)
        send(shop, store)

    store.reads = [move]
    found = audit(shop, store)
    assert kinds(found) == ["different", "extra", "missing"]
    assert found.moved == 3


def test_a_target_that_is_written_anew_meanwhile_is_not_judged(shop: Shop) -> None:
    """Rows that are not there yet would all be told as missing."""
    store = Store()
    send(shop, store)
    store.reads = [lambda: clear(store)]
    with pytest.raises(ReadUnstable):
        audit(shop, store)


def clear(store: Store) -> None:
    """Clear a store, as `seamline sinks resend` does."""
    target = MemoryTarget(store)
    target.take_over()
    target.clear()


def test_a_target_on_its_way_is_compared_with_the_part_that_it_has(shop: Shop) -> None:
    """A sink may be stopped on its way; what it has by then is what its position says."""
    store = Store(fails=["", "before"])
    send(shop, store)
    assert '"toward"' in str(store.position)
    found = audit(shop, store)
    assert (found.held, found.wanted, found.passed) == (2, 2, True)


def test_rows_that_are_not_certified_are_not_judged(shop: Shop) -> None:
    """Of a row that was certified once the target keeps an earlier value, or has none."""
    sink = replace(SINK, when="certified")
    store = Store()
    send(shop, store, sink)
    found = audit(shop, store, sink)
    assert (found.wanted, found.unsent > 3, found.passed) == (0, True, True)
    shop.build(0, 0, "g")
    refresh(shop)
    send(shop, store, sink)
    found = audit(shop, store, sink)
    assert found.wanted == found.held > 0
    assert found.passed


def test_a_target_that_cannot_be_read_back_says_so(shop: Shop) -> None:
    """No kind of target has to be readable."""

    class Mute:
        """A target that only takes."""

        def close(self) -> None:
            """Do nothing."""

    opening: Any = lambda *_: Mute()  # noqa: E731 - a factory
    send(shop, Store())
    with pytest.raises(SetupError, match="cannot be read back"):
        audit_sink(shop.compiled, shop.layout, SINK, clock=lambda: NOW, opening=opening)


def test_a_range_that_is_asked_for_waits_for_the_stop(shop: Shop) -> None:
    """A process that is to stop leaves the rest of a range to the next one."""
    store, stop = Store(), threading.Event()
    send(shop, store)
    ask_again(store)
    runner = SinkRunner(shop.compiled, shop.layout, SINK, stop, opening=lambda *_: MemoryTarget(store))
    stop.set()
    runner.send_all()
    assert '"done":2' in str(store.position)
