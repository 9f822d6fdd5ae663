"""Gaps between the log and the topic: each offset that was never read is in one, and no other."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamline.model.epoch import Epoch, Kind
from seamline.model.errors import OffsetGap, TopicRecreated
from seamline.model.holes import AcceptedGap, Gap, gaps, positions, refusal, undecided
from seamline.model.offsets import Lane, OffsetRange

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OLD, NEW = Lane("old", 0), Lane("new", 0)


def read(number: int, lane: Lane, start: int, end: int) -> Epoch:
    return Epoch(number, 1, NOW, "v", ranges=(OffsetRange(lane, start, end),))


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 9)), max_size=12),
    st.lists(st.integers(0, 40), min_size=3),
)
def test_a_gap_is_exactly_what_lies_between_the_read_and_the_kept(reads, kept):
    """Any reads of three lanes against any beginnings that retention leaves."""
    ends, ledger = [0, 0, 0], []
    for number, (partition, count) in enumerate(reads):
        ledger.append(read(number, Lane("t", partition), ends[partition], ends[partition] + count))
        ends[partition] += count
    beginnings = {Lane("t", part): kept[part] for part in range(3)}
    lost = {(gap.lane.partition, at) for gap in gaps(ledger, beginnings) for at in range(gap.start, gap.end)}
    touched = {partition for partition, _ in reads}
    assert lost == {(part, at) for part in touched for at in range(ends[part], kept[part])}


@given(st.integers(1, 20), st.integers(1, 20))
def test_an_accepted_gap_is_gone_once_it_is_registered(end, more):
    """The position moves over it, in the order of epochs."""
    [gap] = gaps([read(0, OLD, 0, end)], {OLD: end + more})
    last = read(0, OLD, 0, end)
    hole = AcceptedGap(gap, "ada", "retention", NOW).epoch(1, 2, NOW, last)
    assert (hole.kind, hole.edge, hole.watermark) == (Kind.HOLE, True, last.watermark)
    assert gaps([last, hole], {OLD: end + more}) == ()
    assert positions([last, hole]) == {OLD: end + more}


def test_a_topic_made_again_closes_its_lanes_for_ever():
    """Its new offsets mean other records, even where they are higher (C12)."""
    ledger = [read(0, OLD, 0, 7)]
    [gap] = gaps(ledger, {NEW: 0})
    assert gap == Gap(OLD, 7, None)
    ledger.append(AcceptedGap(gap, "ada", "made again", NOW).epoch(1, 2, NOW, ledger[-1]))
    assert gaps(ledger, {NEW: 0}) == ()
    ledger.append(read(2, NEW, 0, 9))
    assert positions(ledger) == {NEW: 9}


def test_a_decision_holds_for_the_very_gap_that_was_shown():
    """Retention may have gone on since."""
    shown, now = Gap(OLD, 5, 9), Gap(OLD, 5, 12)
    accepted = [AcceptedGap(shown, "ada", "", NOW)]
    assert undecided([shown], accepted) == ()
    assert undecided([now], accepted) == (now,)


@pytest.mark.parametrize(
    ("gap", "kind", "words"),
    [
        (Gap(OLD, 5, 9), OffsetGap, "partition 0 of topic id old: offsets 5..8"),
        (Gap(OLD, 5, None), TopicRecreated, "with id new.*everything from 5"),
    ],
)
def test_the_refusal_names_the_offsets_and_the_way_out(gap, kind, words):
    """An operator reads it in the supervisor's heartbeat."""
    found = refusal("shop", {"orders": "new"}, [gap])
    assert isinstance(found, kind)
    with pytest.raises(kind, match=f"(?s){words}.*seamline holes accept shop"):
        raise found
