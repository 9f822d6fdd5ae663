"""Laws of judging again: every foreign epoch once, no other, and the log adds up to the same records."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.manifest import Act, Manifest, Statement, fold_statements
from seamline.model.time.intervals import Grid
from seamline.plan.batch.reprocessing_plan import (
    Verdict,
    apply_verdicts,
    list_foreign_epochs,
    list_outdated_epochs,
    plan_raised_floors,
    records_of,
    split_epochs,
)

NOW = datetime(2024, 1, 1, tzinfo=UTC)
GRID = Grid(timedelta(days=1), datetime(2024, 1, 1, tzinfo=UTC))
DAYS = [f"2024-01-0{day}T00:00:00Z" for day in range(1, 6)]
COUNTS = st.dictionaries(st.sampled_from(DAYS), st.integers(1, 9), max_size=3)
REASONS = st.dictionaries(st.sampled_from(["rule", "null"]), st.integers(1, 9), max_size=2)
VERSIONS = st.sampled_from(["a", "a+x INT", "b", "c"])


@st.composite
def logs(draw: st.DrawFn) -> list[Epoch]:
    """Epochs with gaps in their numbers, read by several definitions."""
    numbers = sorted(draw(st.sets(st.integers(0, 30), max_size=12)))
    return [
        Epoch(number, 1, NOW, draw(VERSIONS), accepted=draw(COUNTS), refused=draw(REASONS))
        for number in numbers
    ]


@st.composite
def judged(draw: st.DrawFn) -> tuple[list[Epoch], dict[int, Verdict]]:
    """A log, and verdicts on some of its epochs that account for each record."""
    log = draw(logs())
    verdicts = {}
    for epoch in log:
        if draw(st.booleans()):
            accepted = draw(st.integers(0, records_of(epoch)))
            day, left = draw(st.sampled_from(DAYS)), records_of(epoch) - accepted
            verdicts[epoch.number] = Verdict(
                epoch.number,
                "attempt",
                {day: accepted} if accepted else {},
                {"rule": left} if left else {},
            )
    return log, verdicts


@given(logs(), VERSIONS)
def test_all_that_is_foreign_is_judged_and_nothing_else(log: list[Epoch], version: str) -> None:
    """A version goes on from another, or it is foreign: no epoch is both, or neither."""
    theirs = {each.number for each in list_foreign_epochs(log, version)}
    for each in log:
        same = each.record_version.split("+")[0] == version.split("+", maxsplit=1)[0]
        assert (each.number in theirs) == (bool(records_of(each)) and not same)


@given(judged(), VERSIONS)
def test_the_log_as_judged_has_the_same_records_at_the_same_places(
    made: tuple[list[Epoch], dict[int, Verdict]], version: str
) -> None:
    """Judging again moves records between rows and refusals; it neither makes nor loses one."""
    log, verdicts = made
    found = list(apply_verdicts(log, version, verdicts))
    assert [(each.number, each.ranges, each.edge) for each in found] == [
        (each.number, each.ranges, each.edge) for each in log
    ]
    assert Counter(map(records_of, found)) == Counter(map(records_of, log))
    waiting = list_outdated_epochs(log, version, verdicts)
    assert list(list_foreign_epochs(found, version)) == waiting
    assert list(apply_verdicts(found, version, verdicts)) == found


@given(logs(), st.integers(1, 40))
def test_blocks_have_every_epoch_once_and_are_no_larger_than_they_must(log: list[Epoch], size: int) -> None:
    """What a killed job loses is bounded, unless one epoch alone is more."""
    found = split_epochs(log, size)
    assert [epoch for block in found for epoch in block] == log
    for block in found:
        assert len(block) == 1 or sum(map(records_of, block)) <= size


@given(judged(), st.integers(0, 30), st.sampled_from(["", *DAYS]))
def test_an_interval_with_rows_of_before_the_birth_has_its_floor_there(
    made: tuple[list[Epoch], dict[int, Verdict]], birth: int, filled: str
) -> None:
    """What the birth took for empty and is not must be built first; nothing else is asked for."""
    _, verdicts = made
    statements = [Statement(Act.BIRTH, "v/1", epoch=birth, interval=filled, definition="{}", seq=0)]
    manifest = fold_statements(statements, 0)
    raised = plan_raised_floors(manifest, ["v/1"], verdicts, GRID, now=NOW)
    after = fold_statements([*statements, *(replace(each, seq=1) for each in raised)], 1)
    for day in DAYS:
        before = any(number < birth and day in each.accepted for number, each in verdicts.items())
        known = manifest.floor("v/1", day)
        assert after.floor("v/1", day) == (max(known, birth - 1) if before else known)
    assert not plan_raised_floors(after, ["v/1"], verdicts, GRID, now=NOW)


def test_a_version_that_was_never_born_has_no_floor() -> None:
    """It has no slices that could be taken for all there is."""
    assert plan_raised_floors(Manifest(), ["v/1"], {3: Verdict(3, "a", {DAYS[0]: 1})}, GRID, now=NOW) == []
