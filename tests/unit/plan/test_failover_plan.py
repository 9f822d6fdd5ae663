"""A failover planned: nothing of it is guessed, and what may be wrong is said with its event times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from seamline.model.errors import BadRange, RecordsReplaced
from seamline.model.protocol.clusters.failovers import By
from seamline.model.protocol.offsets import Lane
from seamline.model.time.intervals import Interval
from seamline.plan.stream.failover_doubt import Doubt, find_doubt, make_failover
from seamline.plan.stream.failover_plan import (
    FailoverRequest,
    LeftLane,
    OtherCluster,
    ReadAgain,
    find_instants,
    find_read_again,
    list_reordered_topics,
    place_by_offsets,
    place_by_times,
    require_known_ids,
    require_partitions,
)
from seamline.plan.wording.failover_text import describe_failover

AT = datetime(2026, 1, 5, 6, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
DAY = Interval(datetime(2026, 1, 5, tzinfo=UTC), datetime(2026, 1, 6, tzinfo=UTC))
HOUR = Interval(AT, AT + 60 * MINUTE)
LEFT = {
    Lane("old", 0): LeftLane("t", 100, AT, None),
    Lane("old", 1): LeftLane("t", 90, AT - MINUTE, None),
}
OTHER = OtherCluster(
    {"new": "t"},
    {Lane("new", 0): 7, Lane("new", 1): 0},
    {Lane("new", 0): 150, Lane("new", 1): 99},
)


def ask(by: By = By.OFFSETS, **more: object) -> FailoverRequest:
    """Ask for a failover."""
    return FailoverRequest("b", by, "ada", "fire", **more)  # type: ignore[arg-type]


def test_a_topic_with_fewer_partitions_is_no_replica() -> None:
    """Kafka can never lower their number: it is another topic, unless somebody says so."""
    one = OtherCluster({"new": "t"}, {Lane("new", 0): 0}, {Lane("new", 0): 9})
    with pytest.raises(BadRange, match="has 2 partitions, but 1 in the other cluster"):
        require_partitions(LEFT, one, fewer=False)
    require_partitions(LEFT, one, fewer=True)
    require_partitions(LEFT, OTHER, fewer=False)


@pytest.mark.parametrize(
    ("offsets", "words"),
    [
        ({("t", 0): 107}, "names no offset of t/1"),
        ({("t", 0): 107, ("t", 1): 90, ("t", 2): 0}, "There is no t/2"),
        ({("u", 0): 107, ("t", 0): 107, ("t", 1): 90}, "There is no u/0"),
        ({("t", 0): 6, ("t", 1): 90}, r"t/0: 6 is not in 7\.\.150"),
        ({("t", 0): 107, ("t", 1): 100}, r"t/1: 100 is not in 0\.\.99"),
    ],
)
def test_offsets_are_stated_for_all_partitions_and_within_what_is_there(
    offsets: dict[tuple[str, int], int], words: str
) -> None:
    """One that is left out would be read from its beginning, and all of it would count twice."""
    with pytest.raises(BadRange, match=words):
        place_by_offsets(ask(offsets=offsets), OTHER)
    good = {("t", 0): 107, ("", 1): 90}
    assert place_by_offsets(ask(offsets=good), OTHER) == {Lane("new", 0): 107, Lane("new", 1): 90}


def test_nothing_is_read_again_of_a_lane_that_was_read_before() -> None:
    """Who goes back finds the lanes again that he left; their coordinates are in the log."""
    back = OtherCluster(OTHER.names, OTHER.beginnings, OTHER.ends, {Lane("new", 0): 120})
    assert place_by_times({Lane("new", 0): 50, Lane("new", 1): 9}, back) == {
        Lane("new", 0): 120,
        Lane("new", 1): 9,
    }
    with pytest.raises(BadRange, match=r"t/0: 50 is not in 120\.\.150"):
        place_by_offsets(ask(offsets={("t", 0): 50, ("t", 1): 9}), back)
    lost = OtherCluster(OTHER.names, OTHER.beginnings, OTHER.ends, {Lane("new", 0): 151})
    with pytest.raises(RecordsReplaced, match="was read to 151 before, and ends at 150"):
        place_by_times({Lane("new", 0): 50}, lost)


def test_a_partition_goes_on_in_that_of_its_number_by_its_own_time() -> None:
    """One that is quiet would have all others read again since its last record."""
    found = find_instants(ask(By.TIMESTAMP), LEFT, OTHER)
    assert found == {Lane("new", 0): AT - 5 * MINUTE, Lane("new", 1): AT - 6 * MINUTE}
    assert find_read_again(found, LEFT, OTHER) == {
        Lane("old", 0): AT - 5 * MINUTE,
        Lane("old", 1): AT - 6 * MINUTE,
    }
    since = find_instants(ask(By.TIMESTAMP, since=AT - 60 * MINUTE), LEFT, OTHER)
    assert set(since.values()) == {AT - 60 * MINUTE}


def test_an_instant_after_the_last_record_passes_over_nothing() -> None:
    """What the other cluster has behind that record was read nowhere, and nobody would say that it is missing."""
    found = find_instants(ask(By.TIMESTAMP, since=AT + 60 * MINUTE), LEFT, OTHER)
    assert found == {Lane("new", 0): AT, Lane("new", 1): AT - MINUTE}


def test_a_margin_of_ages_begins_where_kafkas_time_does() -> None:
    """Before that its numbers are words: -1 is the end of a topic."""
    found = find_instants(ask(By.TIMESTAMP, margin=timedelta(days=3_650_000)), LEFT, OTHER)
    assert set(found.values()) == {datetime(1970, 1, 1, tzinfo=UTC)}


def test_a_topic_of_which_the_log_has_no_record_hides_no_time_of_another() -> None:
    """Its name is not known where the cluster that is left is silent, and it has a partition of the same number."""
    left = {**LEFT, Lane("quiet", 0): LeftLane("", 0, None, None)}
    found = find_instants(ask(By.TIMESTAMP), left, OTHER)
    assert found == {Lane("new", 0): AT - 5 * MINUTE, Lane("new", 1): AT - 6 * MINUTE}
    assert find_read_again(found, left, OTHER).keys() == LEFT.keys()


def test_with_another_number_of_partitions_all_are_read_from_the_least_time_on() -> None:
    """A record may be in any of them."""
    lanes = [Lane("new", part) for part in range(3)]
    three = OtherCluster({"new": "t"}, dict.fromkeys(lanes, 0), dict.fromkeys(lanes, 50))
    found = find_instants(ask(By.EVENT_ID, margin=MINUTE), LEFT, three)
    assert found == dict.fromkeys(lanes, AT - 2 * MINUTE)
    assert find_read_again(found, LEFT, three) == dict.fromkeys(LEFT, AT - 2 * MINUTE)
    assert (list_reordered_topics(LEFT, three), list_reordered_topics(LEFT, OTHER)) == (("t",), ())
    assert list_reordered_topics({}, OTHER) == ()


def test_a_lane_of_which_the_log_has_no_record_is_read_whole() -> None:
    """None of it can count twice."""
    left = {Lane("old", 0): LEFT[Lane("old", 0)], Lane("old", 1): LeftLane("t", 0, None, None)}
    found = find_instants(ask(By.TIMESTAMP), left, OTHER)
    assert found[Lane("new", 1)] is None
    assert Lane("old", 1) not in find_read_again(found, left, OTHER)


def test_event_ids_are_no_way_where_they_are_not_known_that_long() -> None:
    """The stream would count what it has forgotten."""
    again = ReadAgain(5, 0, HOUR)
    with pytest.raises(BadRange, match="Without event_id and dedup_within"):
        require_known_ids(again, AT, None)
    with pytest.raises(BadRange, match="are only kept from 2026-01-05T06:30:00Z on"):
        require_known_ids(again, AT + 90 * MINUTE, 60 * MINUTE)
    require_known_ids(again, AT + 60 * MINUTE, 60 * MINUTE)
    require_known_ids(again, None, 60 * MINUTE)


AGAIN = ReadAgain(5, 1, HOUR)
MIXED = ReadAgain(5, 1, HOUR, ("t",))


@pytest.mark.parametrize(
    ("request_", "unread", "again", "doubtful", "bounds", "words"),
    [
        (ask(), None, ReadAgain(), True, None, "an unknown number of offsets were not read"),
        (ask(lost=DAY), None, ReadAgain(), True, DAY, "an unknown number"),
        (
            ask(),
            3,
            ReadAgain(),
            True,
            None,
            "6 offsets were not read: records of them that the other cluster lacks",
        ),
        (ask(), 0, ReadAgain(), False, None, "nothing is missing: all records"),
        (ask(whole=True), None, ReadAgain(), False, None, "nothing is missing, as ada declares"),
        (ask(By.EVENT_ID, whole=True), None, AGAIN, False, None, "up to 5 accepted and 1 refused"),
        (ask(By.TIMESTAMP, whole=True), None, AGAIN, True, HOUR, "and may count twice"),
        (ask(By.TIMESTAMP, lost=DAY), None, AGAIN, True, DAY, "and may count twice"),
        (ask(By.TIMESTAMP), None, AGAIN, True, None, "and may count twice"),
        (ask(By.TIMESTAMP), 0, ReadAgain(), False, None, "no record is read again"),
        (ask(By.TIMESTAMP, whole=True), None, MIXED, True, HOUR, "t has another number of partitions there"),
    ],
)
def test_what_may_be_missing_or_count_twice_is_stated(
    request_: FailoverRequest,
    unread: int | None,
    again: ReadAgain,
    doubtful: bool,
    bounds: Interval | None,
    words: str,
) -> None:
    """Silence would be a claim: no certificate is given for what nobody has bounded."""
    left = {lane: LeftLane("t", each.end, each.last, unread) for lane, each in LEFT.items()}
    doubt = find_doubt(request_, left.values(), again)
    assert (doubt.doubtful, doubt.bounds) == (doubtful, bounds)
    assert words in doubt.said
    begun = {Lane("new", 0): 107, Lane("new", 1): 90}
    lines = describe_failover(make_failover(request_, "a", left, begun, doubt, AT), left, OTHER)
    assert lines[0].startswith("left: t/0 on a, read to 100; ")
    assert "begun: t/1 on b, read from 90; Kafka has 0 to 99" in lines
    assert ("a hole in the log" in lines[-1]) == doubtful


def test_a_bounded_doubt_names_its_intervals() -> None:
    """The person sees what will not be certified before it is so."""
    made = make_failover(ask(), "a", LEFT, {Lane("new", 0): 107}, Doubt(True, DAY, "said"), AT)
    assert describe_failover(made, LEFT, OTHER)[-1] == (
        f"a hole in the log: intervals that touch {DAY} are not certified"
    )
