"""Gaps between the log and the topic: each offset that was never read is in one, and no other."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamline.model.errors import OffsetGap, TopicRecreated
from seamline.model.protocol.clusters.gap_errors import build_gap_error
from seamline.model.protocol.epoch import Epoch, EpochKind
from seamline.model.protocol.holes import (
    AcceptedGap,
    Gap,
    find_gaps,
    is_ledger_contiguous,
    list_end_offsets,
    list_fillable_ranges,
    list_missing_ranges,
    list_open_holes,
    list_undecided_gaps,
    to_register,
)
from seamline.model.protocol.offsets import Lane, OffsetRange

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
    lost = {
        (gap.lane.partition, at) for gap in find_gaps(ledger, beginnings) for at in range(gap.start, gap.end)
    }
    touched = {partition for partition, _ in reads}
    assert lost == {(part, at) for part in touched for at in range(ends[part], kept[part])}


@given(st.integers(1, 20), st.integers(1, 20))
def test_an_accepted_gap_is_gone_once_it_is_registered(end, more):
    """The position moves over it, in the order of epochs."""
    [gap] = find_gaps([read(0, OLD, 0, end)], {OLD: end + more})
    last = read(0, OLD, 0, end)
    hole = AcceptedGap(gap, "ada", "retention", NOW).epoch(1, 2, NOW, record_version="v", last=last)
    assert (hole.kind, hole.edge, hole.watermark) == (EpochKind.HOLE, True, last.watermark)
    assert find_gaps([last, hole], {OLD: end + more}) == ()
    assert list_end_offsets([last, hole]) == {OLD: end + more}


def test_a_topic_made_again_closes_its_lanes_for_ever():
    """Its new offsets mean other records, even where they are higher (C12)."""
    ledger = [read(0, OLD, 0, 7)]
    [gap] = find_gaps(ledger, {NEW: 0})
    assert gap == Gap(OLD, 7, None)
    ledger.append(
        AcceptedGap(gap, "ada", "made again", NOW).epoch(1, 2, NOW, record_version="v", last=ledger[-1])
    )
    assert find_gaps(ledger, {NEW: 0}) == ()
    ledger.append(read(2, NEW, 0, 9))
    assert list_end_offsets(ledger) == {NEW: 9}


def test_a_decision_holds_for_the_very_gap_that_was_shown():
    """Retention may have gone on since."""
    shown, now = Gap(OLD, 5, 9), Gap(OLD, 5, 12)
    accepted = [AcceptedGap(shown, "ada", "", NOW)]
    assert list_undecided_gaps([shown], accepted) == ()
    assert list_undecided_gaps([now], accepted) == (now,)


def hole(number: int, start: int, end: int) -> Epoch:
    gap = AcceptedGap(Gap(OLD, start, end), "ada", "skipped", NOW)
    return gap.epoch(number, 1, NOW, record_version="v")


def amend(number: int, start: int, end: int) -> Epoch:
    return Epoch(number, 1, NOW, "v", kind=EpochKind.AMEND, ranges=(OffsetRange(OLD, start, end),))


def test_a_gap_within_what_was_decided_is_decided():
    """Somebody passed over 5..20; Kafka has deleted the first half of it before the stream came to know."""
    accepted = [AcceptedGap(Gap(OLD, 5, 20), "ada", "latest", NOW)]
    assert list_undecided_gaps([Gap(OLD, 5, 12)], accepted) == ()
    assert list_undecided_gaps([Gap(NEW, 5, 12), Gap(OLD, 4, 12)], accepted) == (
        Gap(NEW, 5, 12),
        Gap(OLD, 4, 12),
    )


def test_a_decision_is_registered_from_where_the_lane_is_read_to():
    """The stream may have gone on between the word and the next start; what it read is not passed over."""
    accepted = [AcceptedGap(Gap(OLD, 5, 20), "ada", "latest", NOW)]
    assert to_register([read(0, OLD, 0, 5)], accepted) == accepted
    [later] = to_register([read(0, OLD, 0, 5), read(1, OLD, 5, 8)], accepted)
    assert later.gap == Gap(OLD, 8, 20)
    assert to_register([read(0, OLD, 0, 20)], accepted) == []
    assert to_register([], accepted) == accepted, "a stream that never ran begins there"
    assert to_register([hole(0, 5, 20)], accepted) == [], "registered once"


def test_a_decision_does_not_pass_over_what_is_there_below_it():
    """A master from a backup may have read nothing of a lane, and the control table know of a gap further on."""
    accepted = [AcceptedGap(Gap(OLD, 5, 20), "ada", "latest", NOW)]
    assert to_register([], accepted, {OLD: 0}) == []
    assert to_register([], accepted, {OLD: 5}) == to_register([], accepted, {OLD: 7}) == accepted
    assert to_register([read(0, OLD, 0, 5)], accepted, {OLD: 0}) == accepted


def test_of_decisions_that_overlap_the_lowest_is_registered_first() -> None:
    """An older one about what lies above, still there after a restore, hid offsets from the register for good."""
    older, newer, later, sooner = (
        AcceptedGap(Gap(OLD, start, end), "ada", "so", NOW) for start, end in ((1, 2), (0, 2), (8, 9), (5, 8))
    )
    assert to_register([], [older, newer], {OLD: 2}) == [newer]
    assert to_register([read(0, OLD, 0, 5)], [later, sooner]) == [sooner, later]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 8)), max_size=8), st.integers(0, 30))
def test_what_is_filled_is_no_longer_missing_and_is_filled_once(fills, begins):
    """Holes are sets of offsets, filling takes them out; Kafka has only what is at or above its beginning."""
    ledger = [hole(0, 3, 11), read(1, OLD, 11, 15), hole(2, 15, 30)]
    missing = set(range(3, 11)) | set(range(15, 30))
    for start, count in fills:
        wanted = set(range(start, start + count))
        pieces = list_fillable_ranges(ledger, [OffsetRange(OLD, start, start + count)], {OLD: begins})
        filled = [at for part in pieces for at in range(part.start, part.end)]
        assert set(filled) == {at for at in missing & wanted if at >= begins}
        assert len(filled) == len(set(filled))
        ledger += [amend(len(ledger) + at, part.start, part.end) for at, part in enumerate(pieces)]
        missing -= set(filled)
        assert is_ledger_contiguous(ledger)
    left = {
        at
        for parts in list_missing_ranges(ledger).values()
        for part in parts
        for at in range(part.start, part.end)
    }
    assert left == missing
    assert list_end_offsets(ledger) == {OLD: 30}, "an amend moves no end"


def test_an_amend_of_what_was_read_breaks_the_log():
    """The certificate would else call an event that is counted twice complete."""
    ledger = [read(0, OLD, 0, 5), hole(1, 5, 9)]
    assert is_ledger_contiguous([*ledger, amend(2, 5, 9)])
    assert not is_ledger_contiguous([*ledger, amend(2, 4, 6)])
    assert not is_ledger_contiguous([*ledger, amend(2, 5, 9), amend(3, 8, 9)])
    assert [each.number for each in list_open_holes(ledger)] == [1]
    assert list_open_holes([*ledger, amend(2, 5, 9)]) == []


@pytest.mark.parametrize(
    ("gap", "kind", "words"),
    [
        (Gap(OLD, 5, 9), OffsetGap, "partition 0 of topic id old: offsets 5..8"),
        (Gap(OLD, 5, None), TopicRecreated, "with id new.*everything from 5"),
    ],
)
def test_the_refusal_names_the_offsets_and_the_way_out(gap, kind, words):
    """An operator reads it in the supervisor's heartbeat."""
    found = build_gap_error("shop", {"orders": "new"}, [gap])
    assert isinstance(found, kind)
    with pytest.raises(kind, match=f"(?s){words}.*seamline holes accept shop"):
        raise found
