"""How near unread records are to their end in Kafka: by hand, and what is always so."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamline.plan.stream.topic_expiry import TopicExpiry, UnreadRange, find_topic_expiry

HOUR = 3600.0


def find(
    *unread: UnreadRange, age: float | None = None, seconds: float | None = None, bytes: int | None = None
) -> TopicExpiry:
    """Find it of partitions of 1,000 bytes each."""
    ranges = dict(enumerate(unread))
    return find_topic_expiry(ranges, age=age, seconds=seconds, bytes=bytes, sizes=dict.fromkeys(ranges, 1000))


@pytest.mark.parametrize(
    ("found", "time", "bytes"),
    [
        # begins      reads   ends
        # 0-----------75------100: a quarter of 1,000 bytes, of the 500 that are kept
        (find(UnreadRange(0, 75, 100), age=HOUR, seconds=4 * HOUR, bytes=500), 0.25, 0.5),
        (find(UnreadRange(0, 75, 100), UnreadRange(0, 10, 100), bytes=1000), None, 0.9),
        # What was to be read next is gone already.
        (find(UnreadRange(50, 10, 100), age=9 * HOUR, seconds=HOUR, bytes=1000), 9.0, 1.0),
        (find(UnreadRange(0, 100, 100), age=None, seconds=HOUR, bytes=500), 0.0, 0.0),
        (find(UnreadRange(0, 0, 0), seconds=HOUR), 0.0, None),
        (find(UnreadRange(0, 0, 9), age=HOUR), None, None),
        (find(UnreadRange(0, 0, 9), age=None, seconds=HOUR, bytes=0), None, 1.0),
    ],
)
def test_the_oldest_unread_record_has_used_up_a_share(
    found: TopicExpiry, time: float | None, bytes: float | None
) -> None:
    """Nothing unread has used up nothing; what is kept for ever, or is not known, has no share."""
    assert (found.time, found.bytes) == (time, bytes)


def test_sizes_that_nobody_may_see_are_not_guessed() -> None:
    """Without the right to describe the cluster there is no share of bytes, and no zero that calms people down."""
    unread = {0: UnreadRange(0, 5, 10)}
    assert find_topic_expiry(unread, age=None, seconds=None, bytes=100, sizes={}).bytes is None


@given(begins=st.integers(0, 50), reads=st.integers(0, 120), ends=st.integers(50, 100))
def test_a_share_of_offsets_is_one(begins: int, reads: int, ends: int) -> None:
    """Between nothing and all, wherever a topic was cut or made anew; reading on makes it no larger."""
    reads = min(reads, ends)
    here, later = UnreadRange(begins, reads, ends), UnreadRange(begins, min(reads + 1, ends), ends)
    assert 0.0 <= later.share <= here.share <= 1.0
