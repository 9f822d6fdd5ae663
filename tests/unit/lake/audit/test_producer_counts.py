"""What was read of an interval beside what producers say: real records, accepted, refused, repeated and late."""

from __future__ import annotations

from datetime import timedelta

from tests.unit.counts_world import DAY, FIRST, START, Orders, gaps, order, outcomes, says

from seamline import Counts
from seamline.lake.maintain.upkeep import maintain_tables
from seamline.lake.store.locations import Location
from seamline.model.protocol.counts.comparison import Read
from seamline.model.time.intervals import Interval

BY_SHOP = Counts("orders.counts", producer="shop")


def test_a_gap_has_the_name_of_its_producer_and_its_hour(warehouse: Location) -> None:
    """Of hourly statements, one is short: that hour is named, and no other; the next cut has what came late."""
    orders = Orders(warehouse, BY_SHOP)
    first = orders.read([order(1, "01:10"), order(2, "02:10"), order(3, "03:10", "us")])
    orders.state(
        says("eu", "00:00", "02:00", 1),
        says("eu", "02:00", "2026-01-02", 2),
        says("us", "00:00", "2026-01-02", 1),
    )
    found = orders.counted()
    assert outcomes(found) == {"eu": "missing", "us": "complete"}
    assert gaps(found) == [("eu", "02:00", 2, 1)]
    assert (found.said, found.read, found.complete) == (4, 3, False)
    orders.read([order(4, "02:59")])
    assert outcomes(orders.counted()) == {"eu": "complete", "us": "complete"}
    assert outcomes(orders.counted(cut=first))["eu"] == "missing"


def test_an_event_is_counted_once_and_a_copy_hides_no_loss(warehouse: Location) -> None:
    """Three sent, two read of which one twice: as many records as were sent, and still one is missing."""
    orders = Orders(warehouse, BY_SHOP)
    orders.read([order(1, "01:10"), order(1, "01:10"), order(2, "01:20")])
    orders.state(says("eu", "00:00", "2026-01-02", 3))
    found = orders.counted()
    assert gaps(found) == [("eu", "00:00", 3, 2)]
    assert found.counts[0].read.repeated == 1


def test_without_ids_every_record_counts(warehouse: Location) -> None:
    """Nothing tells a copy from a record."""
    orders = Orders(warehouse, BY_SHOP, event_id=())
    orders.read([order(1, "01:10"), order(1, "01:10")])
    orders.state(says("eu", "00:00", "2026-01-02", 2))
    assert orders.counted().complete


def test_a_refused_record_was_read_and_one_that_says_nothing_may_be_what_is_missing(
    warehouse: Location,
) -> None:
    """One that breaks a rule has a time and a producer; bytes that are no JSON have neither, and explain a gap."""
    orders = Orders(warehouse, BY_SHOP)
    orders.read(
        [order(1, "01:10"), order(2, "01:20", amount=0), b"{no json", b"", order(3, "02:00", None, 0)]
    )
    orders.state(says("eu", "00:00", "2026-01-02", 3))
    found = orders.counted()
    assert gaps(found) == [("eu", "00:00", 3, 2)]
    assert (found.counts[0].read.refused, found.unplaced) == (1, 3)
    orders.state(says("eu", "00:00", "2026-01-02", 2))
    assert orders.counted().complete


def test_a_refused_record_that_is_read_again_from_another_cluster_hides_no_loss(
    warehouse: Location,
) -> None:
    """Where there is no id by which it is known; two that are equal in one cluster are two."""
    shop = Orders(warehouse, BY_SHOP, event_id=())
    bad = order(2, "01:20", amount=0)
    shop.read([order(1, "01:10"), bad, bad])
    shop.state(says("eu", "2026-01-01", "2026-01-02", 4))
    shop.read([bad, bad], other="n")
    [found] = shop.counted().counts
    assert (found.read.refused, [(each.said, each.read) for each in found.gaps]) == (2, [(4, 3)])


def test_copies_of_a_refused_event_hide_no_loss(warehouse: Location) -> None:
    """Its bytes tell its id: read twice, and accepted once that it was corrected, it is one; without an id each is."""
    orders = Orders(warehouse, BY_SHOP)
    bad, mended, nameless = (order(2, "01:20", amount=0), order(3, "01:30"), order(4, "01:40", amount=0))
    nameless = nameless.replace(b'"id": 4, ', b"")
    orders.read([order(1, "01:10"), bad, bad, nameless, nameless, order(3, "01:30", amount=0)])
    orders.read([mended, bad])
    orders.state(says("eu", "00:00", "2026-01-02", 6))
    found = orders.counted()
    assert found.counts[0].read == Read(2, 0, 3)
    assert gaps(found) == [("eu", "00:00", 6, 5)]


def test_refused_records_of_another_time_are_not_looked_at(warehouse: Location) -> None:
    """However long the quarantine is: those count that Kafka got at about the time of the interval."""
    orders = Orders(warehouse, BY_SHOP)
    orders.read([b"{late", order(1, "01:20", amount=0)], at=START + 10 * DAY)
    orders.state(says("eu", "00:00", "2026-01-02", 0))
    found = orders.counted()
    assert (found.complete, found.unplaced) == (True, 0)


def test_refused_records_of_a_replay_are(warehouse: Location) -> None:
    """Kafka got all of them long after; they came with rows of the interval."""
    orders = Orders(warehouse, BY_SHOP)
    orders.read([b"{late", order(1, "01:20", amount=0), order(2, "01:30")], at=START + 10 * DAY)
    orders.state(says("eu", "00:00", "2026-01-02", 2))
    found = orders.counted()
    assert (found.complete, found.unplaced) == (True, 1)


def test_who_has_made_statements_is_expected_to_make_more_for_a_time(warehouse: Location) -> None:
    """A producer that falls silent is named; one that has gone is forgotten."""
    orders = Orders(warehouse, BY_SHOP)
    orders.read([])
    orders.state(says("eu", "00:00", "2026-01-02", 0))
    days = [Interval(START + at * DAY, START + (at + 1) * DAY) for at in (1, 7, 8)]
    assert [outcomes(orders.counted(day)) for day in days] == [{"eu": "not stated"}, {"eu": "not stated"}, {}]
    assert not orders.counted(days[2]).complete


def test_declared_producers_are_expected_from_the_beginning(warehouse: Location) -> None:
    """Or one that never said anything would never be missed."""
    orders = Orders(warehouse, Counts("orders.counts", producer="shop", producers=["eu", "us"]))
    orders.read([order(1, "01:10")])
    orders.state(says("eu", "00:00", "12:00", 1))
    found = orders.counted()
    assert outcomes(found) == {"eu": "not stated", "us": "not stated"}
    assert [str(one.window)[11:16] for one in found.counts[0].unstated] == ["12:00"]


def test_records_of_nobody_who_is_expected_are_told(warehouse: Location) -> None:
    """A producer that makes no statements is no surplus of another one."""
    orders = Orders(warehouse, BY_SHOP)
    orders.read([order(1, "01:10"), order(2, "01:20", "mars"), order(3, "01:30", None)])
    orders.state(says("eu", "00:00", "2026-01-02", 1))
    found = orders.counted()
    assert (found.complete, found.others) == (True, 2)


def test_without_a_column_all_are_compared_with_all(warehouse: Location) -> None:
    """Spans that all producers tell of, however each cuts its day."""
    orders = Orders(warehouse, Counts("orders.counts"))
    orders.read([order(1, "01:10"), order(2, "13:00", "us"), order(3, "14:00", "mars")])
    orders.state(
        says("a", "00:00", "12:00", 1), says("a", "12:00", "2026-01-02", 1), says("b", "00:00", "06:00", 0),
        says("b", "06:00", "12:00", 0), says("b", "12:00", "2026-01-02", 2),
    )  # fmt: skip
    found = orders.counted()
    assert (outcomes(found), gaps(found)) == ({"a, b": "missing"}, [("a", "12:00", 3, 2)])
    orders.state(says("b", "12:00", "2026-01-02", 1))
    assert orders.counted().complete


def test_upkeep_packs_statements_and_nothing_of_them_changes(warehouse: Location) -> None:
    """A file for each look at the topic, for ever, would grow with history."""
    orders = Orders(warehouse, BY_SHOP)
    orders.read([order(1, "01:10"), order(2, "02:10")])
    for hour in range(20):
        orders.state(says("eu", f"{hour:02}:00", f"{hour + 1:02}:00", 1))
    before = orders.counted()
    done = maintain_tables(orders.compiled, orders.layout)
    assert done.packed["counts"] == 20
    orders.state(says("eu", "20:00", "2026-01-02", 0))
    assert gaps(orders.counted()) == gaps(before)
    assert orders.counted(Interval(FIRST.end, FIRST.end + timedelta(days=1))).counts[0].unstated
