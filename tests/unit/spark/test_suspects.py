"""Runs that die of records which they judge again, one after another: what each leaves, and that one gets past them."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seamline.model.protocol.offsets import Lane, OffsetRange
from seamline.spark.tasks import deadly_suspects as module
from seamline.spark.tasks.deadly_suspects import (
    Piece,
    Suspects,
    is_within_ranges,
    split_piece,
    subtract_ranges,
)

A, B = Lane("t", 0), Lane("t", 1)
Place = tuple[Lane, int]


class Died(BaseException):
    """The machine has killed the run: nothing of it runs any more."""


def places(ranges: Sequence[OffsetRange]) -> list[Place]:
    return [(part.lane, at) for part in ranges for at in range(part.start, part.end)]


class Runs:
    """Runs over some ranges, with the note in a file; each judges as ``outlived`` does until a deadly record."""

    def __init__(self, folder: Path, ranges: Piece, deadly: set[Place]) -> None:
        self.file, self.ranges, self.deadly = folder / "attempt.json", ranges, deadly
        self.sizes: list[int] = []
        self.refused: list[Place] = []

    def run(self, how: str = "v 4g") -> None:
        """Judge every record once, or die."""
        suspects, judged = Suspects(self.file, how), []
        self.refused = places(suspects.condemned)
        for piece in suspects.partition(self.ranges):
            suspects.begin(piece)
            self.sizes.append(len(places(piece)))
            if not self.deadly.isdisjoint(set(places(piece)) - set(self.refused)):
                raise Died
            judged += places(piece)
            suspects.witness = True
        suspects.finish()
        assert sorted(judged) == sorted(places(self.ranges))
        suspects.finish(self.ranges)

    def deaths(self, most: int = 60) -> int:
        """Run until one gets through; give how many died."""
        for died in range(most):
            try:
                self.run()
            except Died:
                continue
            return died
        raise AssertionError("no run got through")


@pytest.fixture(autouse=True)
def gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each run is a process of its own, and that of before is gone."""
    names = iter(range(1_000_000))
    monkeypatch.setattr(module, "own_process_name", lambda: f"run {next(names)}")


def test_a_run_after_a_death_does_not_begin_at_full_size_again(tmp_path: Path) -> None:
    """Each died of the same, for ever."""
    runs = Runs(tmp_path, (OffsetRange(A, 0, 10_000),), {(A, 7_000)})
    assert runs.deaths() == 6
    assert runs.refused == [(A, 7_000)]
    # Once at first, and once without the record.
    assert [at for at, size in enumerate(runs.sizes) if size == 10_000] == [0, len(runs.sizes) - 1]
    assert not runs.file.exists()


@settings(max_examples=30)
@given(
    st.lists(st.integers(1, 300), min_size=2, max_size=3),
    st.sets(st.floats(0, 1, exclude_max=True), min_size=1, max_size=3),
)
def test_the_deadly_are_refused_and_no_other(sizes: list[int], deadly: set[float]) -> None:
    """However many there are, and wherever."""
    ranges = tuple(OffsetRange(Lane("t", at), 5, 5 + size) for at, size in enumerate(sizes))
    every = places(ranges)
    chosen = {every[int(share * len(every))] for share in deadly}
    with tempfile.TemporaryDirectory() as name:
        runs = Runs(Path(name), ranges, chosen if len(chosen) < len(every) else set())
        runs.deaths(60)
        assert set(runs.refused) == runs.deadly
        assert not runs.file.exists()


def test_a_machine_that_ends_every_run_condemns_nothing(tmp_path: Path) -> None:
    """It was no record: once there is memory again, each of them is judged."""
    runs = Runs(tmp_path, (OffsetRange(A, 0, 8), OffsetRange(B, 0, 8)), set(places((OffsetRange(A, 0, 8),))))
    runs.deadly |= set(places((OffsetRange(B, 0, 8),)))
    for _ in range(40):
        with pytest.raises(Died):
            runs.run()
    runs.deadly = set()
    runs.run()
    assert runs.refused == []


def test_what_was_learned_with_less_memory_is_learned_anew(tmp_path: Path) -> None:
    """A worker that may take more may well outlive the record."""
    runs = Runs(tmp_path, (OffsetRange(A, 0, 1000),), {(A, 7)})
    for _ in range(5):
        with pytest.raises(Died):
            runs.run()
    runs.deadly = set()
    runs.run("v 8g")
    assert runs.sizes[-1] == 1000
    assert runs.refused == []


def test_a_run_beside_a_living_one_leaves_its_note_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That it has not ended is no death."""
    ranges = (OffsetRange(A, 0, 1000),)
    first = Suspects(tmp_path / "attempt.json", "v")
    first.begin(ranges)
    text = first.attempted.file.read_text()
    monkeypatch.setattr(module, "life_of", lambda _: module.Life.ALIVE)
    beside = Suspects(tmp_path / "attempt.json", "v")
    assert beside.partition(ranges) == [ranges]
    beside.begin(ranges)
    beside.finish(ranges)
    assert first.attempted.file.read_text() == text


def test_a_run_that_fails_of_something_else_has_not_died(tmp_path: Path) -> None:
    """What it knows of others is kept."""
    ranges = (OffsetRange(A, 0, 64),)
    Suspects(tmp_path / "attempt.json", "v").begin(ranges)
    known = Suspects(tmp_path / "attempt.json", "v")
    pieces = known.partition(ranges)
    assert len(pieces) == 32
    known.begin(pieces[3])
    known.finish()
    assert Suspects(tmp_path / "attempt.json", "v").partition(ranges) == pieces


def test_ranges_are_cut_without_loss() -> None:
    """Or a record would be judged by nobody."""
    ranges = (OffsetRange(A, 0, 50), OffsetRange(B, 10, 17))
    found = split_piece(ranges)
    assert sorted(place for piece in found for place in places(piece)) == places(ranges)
    left = [*subtract_ranges(ranges, (OffsetRange(A, 0, 5), OffsetRange(A, 20, 30), OffsetRange(B, 10, 17)))]
    assert left == [OffsetRange(A, 5, 20), OffsetRange(A, 30, 50)]
    assert is_within_ranges((OffsetRange(A, 5, 50),), ranges)
    assert not is_within_ranges((OffsetRange(A, 5, 51),), ranges)
