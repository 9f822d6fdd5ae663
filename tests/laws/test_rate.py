"""The size of epochs: it comes to rest where an epoch takes its time, whatever the machine manages."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from seamline.model.definition.layers import Stream
from seamline.model.protocol.offsets import Lane, OffsetRange
from seamline.plan.stream.epoch_numbers import FEWEST, INTERVALS, next_size
from seamline.spark.stream.epoch_sizing import EpochSize

LANE = Lane("t", 0)


@given(per_second=st.integers(300, 1_000_000), overhead=st.floats(0, 1), most=st.integers(1000, 2_000_000))
def test_under_a_backlog_the_size_comes_to_rest_near_the_target(per_second, overhead, most):
    """Full epochs on a machine of any speed: within a few, and it stays there."""
    size = EpochSize(Stream(max_offsets_per_epoch=most, epoch_target="10 seconds"))
    seen = []
    for _ in range(40):
        size.record_commit(size.limit, size.limit / per_second + overhead)
        size.restart({})
        seen.append(size.limit)
    assert len(set(seen[-10:])) == 1
    assert FEWEST <= seen[-1] <= most
    seconds = seen[-1] / per_second + overhead
    assert seconds <= 15.001 or seen[-1] == FEWEST
    assert seconds >= 4.99 or seen[-1] == most


@given(size=st.integers(1000, 10**6), records=st.integers(0, 900), seconds=st.floats(0, 14))
def test_an_epoch_that_was_not_full_says_nothing_about_a_larger_one(size, records, seconds):
    """A quiet stream keeps its size: the next burst is read at once."""
    assert next_size(size, min(records, size * 8 // 10), seconds, target=10, most=10**6) == size


def test_one_slow_epoch_changes_nothing():
    """The first epoch of a driver is slow, and a new query costs half a second."""
    size = EpochSize(Stream(max_offsets_per_epoch=100_000, epoch_target="10 seconds"))
    size.record_commit(100_000, 40)
    size.record_commit(100_000, 9)
    size.record_commit(100_000, 40)
    assert (size.limit, size.turned) == (100_000, False)
    size.record_commit(100_000, 40)
    assert (size.limit, size.turned) == (25_000, True)


def test_a_poisonous_record_is_found_by_halving_and_the_rate_is_kept():
    """Rule 17 beside the rate control: failures halve, and full size comes back once the record is behind us."""
    size = EpochSize(Stream(max_offsets_per_epoch=8))
    ends, limits = {LANE: 8}, []
    while not size.condemned:
        size.record_failure("poison", ends, [OffsetRange(LANE, 0, size.limit)])
        limits.append(size.limit)
    assert limits == [8, 8, 4, 2, 1, 1, 1, 1]
    size.record_commit(1, 1)
    assert size.condemned == ""
    assert size.is_outdated({LANE: 1})
    size.restart({LANE: 8})
    assert size.limit == 8


@given(per_interval=st.floats(0.05, 50), most=st.sampled_from([1_000, 100_000, 1_000_000]))
def test_an_epoch_comes_to_rest_at_as_many_intervals_as_a_commit_should_name(per_interval, most):
    """A topic that few write to, read from long ago: the size falls to what its commits bear, and stays there."""
    size = EpochSize(Stream(max_offsets_per_epoch=most))
    seen = []
    for _ in range(40):
        intervals = max(int(size.limit / per_interval), 1)
        size.record_commit(size.limit, size.limit / 1_000_000, intervals)
        size.restart({})
        seen.append((size.limit, intervals))
    assert len({limit for limit, _ in seen[-10:]}) == 1
    assert seen[-1][1] <= 1.01 * INTERVALS or seen[-1][0] == FEWEST
