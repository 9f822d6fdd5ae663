"""Where a stream starts: what is passed over is exactly what lies between, and nothing is ever read twice."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamline.model.errors import BadRange
from seamline.model.protocol.holes import Gap
from seamline.model.protocol.offsets import Lane
from seamline.plan.stream.start_positions import (
    From,
    StartPlace,
    find_skipped_gaps,
    place_group,
    resolve_offsets,
)

ONE, TWO = Lane("t", 0), Lane("t", 1)


@given(
    held=st.none() | st.integers(0, 30),
    begins=st.integers(0, 30),
    length=st.integers(0, 30),
    wanted=st.integers(0, 70),
)
def test_a_start_passes_over_what_lies_between_or_is_refused(held, begins, length, wanted):
    """A lane with any history against any beginning and end that Kafka may have."""
    ends = begins + length
    at = begins if held is None else held
    vector = {} if held is None else {ONE: held}
    allowed = min(at, begins) <= wanted <= ends and not (held is not None and wanted < held)
    if not allowed:
        with pytest.raises(BadRange):
            find_skipped_gaps(vector, {ONE: begins}, {ONE: ends}, {ONE: wanted})
        return
    found = find_skipped_gaps(vector, {ONE: begins}, {ONE: ends}, {ONE: wanted})
    assert {offset for gap in found for offset in range(gap.start, gap.end)} == set(range(at, wanted))


def test_a_lane_that_is_not_named_goes_on():
    """Explicit offsets may be of one partition only."""
    assert find_skipped_gaps({ONE: 5}, {ONE: 0, TWO: 0}, {ONE: 9, TWO: 9}, {ONE: 7}) == (Gap(ONE, 5, 7),)
    with pytest.raises(BadRange, match="no partition 4"):
        find_skipped_gaps({}, {ONE: 0}, {ONE: 9}, {Lane("t", 4): 7})


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("ledger", StartPlace()),
        (" latest ", StartPlace(From.LATEST)),
        ("earliest", StartPlace(From.EARLIEST)),
        ("2026-03-01T06:00Z", StartPlace(From.TIMESTAMP, datetime(2026, 3, 1, 6, tzinfo=UTC))),
        ("0:1200,1:1180", StartPlace(From.OFFSETS, offsets={("", 0): 1200, ("", 1): 1180})),
        ("a.b/0:7, c/3:8", StartPlace(From.OFFSETS, offsets={("a.b", 0): 7, ("c", 3): 8})),
        (
            '{"a.b":{"0":7,"1":0},"c":{"3":8}}',
            StartPlace(From.OFFSETS, offsets={("a.b", 0): 7, ("a.b", 1): 0, ("c", 3): 8}),
        ),
        ("group:etl/v2: daily", StartPlace(From.GROUP, group="etl/v2: daily")),
    ],
)
def test_a_place_is_a_word_an_instant_or_offsets(text, place):
    """As it is typed on a command line or in a form."""
    assert StartPlace.parse(text) == place


@pytest.mark.parametrize(
    "text",
    [
        "", "newest", "0:x", "0:1;1:2", "0:1,zero:2", "2026-13-01", "group:", "group: ", "{", "{}", '{"a": {}}',
        '{"a": 7}', '{"a": {"0": "7"}}', '{"a": {"x": 7}}', '{"a": {"0": true}}', '{"a": {"0": -2, "1": 4}}',
        '{"a": {"0": 1, "0": 2}}', '{"a": {"0": 1, "00": 2}}', '{"a": {"-1": 1}}', '{"a": ' + "[" * 100_000,
    ],
)  # fmt: skip
def test_what_is_no_place_is_refused_with_what_is(text):
    """The message names the forms."""
    with pytest.raises(BadRange, match="write"):
        StartPlace.parse(text)


def test_offsets_name_their_topic_where_there_are_several():
    """A partition number alone could mean either."""
    assert resolve_offsets(StartPlace.parse("1:7"), {"a": "A"}) == {Lane("A", 1): 7}
    assert resolve_offsets(StartPlace.parse("b/1:7"), {"a": "A", "b": "B"}) == {Lane("B", 1): 7}
    with pytest.raises(BadRange, match="without its topic"):
        resolve_offsets(StartPlace.parse("1:7"), {"a": "A", "b": "B"})
    with pytest.raises(BadRange, match="not read topic 'c'"):
        resolve_offsets(StartPlace.parse("c/1:7"), {"a": "A"})


def test_a_group_goes_on_where_it_was_and_what_is_otherwise_is_said():
    """A partition that is new to the group, one that Kafka has cut, and those of which the log has read more."""
    names, begins = {"A": "a", "B": "b"}, {Lane("A", 0): 3, Lane("A", 1): 5, Lane("B", 0): 0}
    recorded = {Lane("A", 0): 7, Lane("A", 1): 2}
    found = place_group("etl", recorded, {}, begins, names)
    assert found.chosen == {Lane("A", 0): 7, Lane("A", 1): 5}
    deleted, unknown = found.notes
    assert deleted == "a/1: the group is at 2, and Kafka has nothing before 5 any more"
    assert unknown == "b/0: the group has recorded no offset; it is read from 0, the first there is"
    found = place_group("etl", recorded, {Lane("A", 0): 9, Lane("A", 1): 6, Lane("B", 0): 4}, begins, names)
    assert found.chosen == {Lane("A", 0): 9, Lane("A", 1): 6}
    assert found.notes == (
        "a/0: the group is at 7, and the log has been read to 9: it goes on there",
        "a/1: the group is at 2, and the log has been read to 6: it goes on there",
        "b/0: the group has recorded no offset; it is read on from 4",
    )
    with pytest.raises(BadRange, match="'etl' has recorded no offset of a or b") as refused:
        place_group("etl", {}, {}, begins, names)
    assert "CHECKPOINT/offsets" in refused.value.hint
