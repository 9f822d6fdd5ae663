"""What was passed over is read once, whatever happens to an epoch that fills it."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from seamline.model.errors import BadRange, KafkaUnavailable, SeamlineError, StoreUnavailable
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.holes import AcceptedGap, Gap, is_ledger_contiguous, list_missing_ranges
from seamline.model.protocol.offsets import Lane, OffsetRange
from seamline.spark.session.attempt_notes import DRY, JUDGED, KEPT, Attempted, Note
from seamline.spark.stream import hole_filling
from seamline.spark.stream.hole_filling import PIECE, Filler
from seamline.spark.stream.imports.amending import Amending

LANE = Lane("t", 0)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
HOLE = AcceptedGap(Gap(LANE, 0, 8), "ada", "latest", NOW).epoch(0, 1, NOW, record_version="v")
ALL = [OffsetRange(LANE, 0, 8)]


class Died(BaseException):
    """The machine has killed the driver: nothing of it runs any more."""


class Epochs:
    """Epochs that are held in a list, and may go wrong before or after that."""

    def __init__(self, *, most: int = PIECE) -> None:
        self.log = [HOLE]
        self.size = SimpleNamespace(most=most)
        self.topics = SimpleNamespace(
            ids={}, fetch_beginnings=lambda: {LANE: self.begins}, read_range=lambda spark, part: part
        )
        self.begins = 0
        self.wrong: list[str] = []
        self.poison = -1
        self.deadly: dict[str, int] = {}
        self.condemned: list[int] = []
        self.down = False

    def amend(
        self,
        frame: object,
        part: OffsetRange,
        noted: Attempted,
        amending: Amending,
        *,
        condemned: str,
        proved: bool,
        passing: Note | None,
    ) -> Epoch:
        """Hold a part, unless something is wrong with it."""
        wrong = self.wrong.pop(0) if self.wrong else ""
        if condemned and not proved:
            self.enter(DRY, part, noted)
            condemned = condemned if part.start <= self.poison < part.end else ""
        if not passing:
            self.enter(KEPT if condemned else JUDGED, part, noted)
        if wrong == "killed":
            raise Died
        noted.enter_stage("")
        if wrong == "killed at a commit":
            raise Died
        if wrong == "kafka":
            raise KafkaUnavailable("nobody answers")
        if wrong == "before" or (part.start <= self.poison < part.end and not condemned):
            raise RuntimeError("a record was poisonous")
        if condemned:
            self.condemned += range(part.start, part.end)
        self.log.append(Epoch(len(self.log), 1, NOW, "v", kind=amending.kind, ranges=(part,)))
        if wrong == "store":
            raise StoreUnavailable("the file of the ledger's row was not written")
        if wrong == "after":
            raise OSError("the share hangs: nobody knows whether it is there")
        return self.log[-1]

    def enter(self, stage: str, part: OffsetRange, noted: Attempted) -> None:
        """Go on to a stage, in which a record may be deadly."""
        noted.enter_stage(stage)
        if part.start <= self.deadly.get(stage, -1) < part.end:
            raise Died

    def reload_log(self) -> list[Epoch]:
        """Return the log as the master has it."""
        if self.down:
            raise KafkaUnavailable("nobody answers")
        return self.log


@pytest.fixture(autouse=True)
def there(monkeypatch: pytest.MonkeyPatch) -> None:
    """The session is nobody's."""
    monkeypatch.setattr(hole_filling, "is_session_alive", lambda _: True)


class Unnoted(Attempted):
    """A note that nobody keeps."""

    def __init__(self) -> None:
        super().__init__(Path(os.devnull) / "none")


def fill(epochs: Epochs, asked: list[OffsetRange] = ALL) -> Filler:
    """Fill until there is nothing to fill."""
    filler = Filler(epochs, epochs.log, Unnoted())  # type: ignore[arg-type]
    filler.request(asked)
    for _ in range(100):
        if filler.pending:
            filler.fill_step(None)  # type: ignore[arg-type]
    assert not filler.pending
    return filler


@pytest.mark.parametrize(
    "wrong", [[], ["before"], ["after"], ["after", "after"], ["before", "after", "before"]]
)
@pytest.mark.parametrize("most", [3, PIECE])
def test_each_offset_is_read_once(wrong: list[str], most: int) -> None:
    """An epoch may have landed though its commit failed: the master is asked before anything is read again."""
    epochs = Epochs(most=most)
    epochs.wrong = list(wrong)
    fill(epochs)
    assert list_missing_ranges(epochs.log) == {}
    assert is_ledger_contiguous(epochs.log)
    assert sum(len(part) for epoch in epochs.log[1:] for part in epoch.ranges) == 8
    assert epochs.condemned == []


@pytest.mark.parametrize("most", [1, PIECE])
def test_a_store_that_goes_once_a_part_is_committed_has_nothing_read_twice(most: int) -> None:
    """The master has the part, and the ledger's row has failed: to the driver that is a store that is away."""
    epochs = Epochs(most=most)
    filler = Filler(epochs, epochs.log, Unnoted())  # type: ignore[arg-type]
    filler.request(ALL)
    for _ in range(3):
        epochs.wrong = ["store"]
        if filler.pending:
            with suppress(StoreUnavailable):
                filler.fill_step(None)  # type: ignore[arg-type]
    epochs.wrong = []
    while filler.pending:
        filler.fill_step(None)  # type: ignore[arg-type]
    assert sum(len(part) for epoch in epochs.log[1:] for part in epoch.ranges) == 8
    assert (list_missing_ranges(epochs.log), epochs.condemned) == ({}, [])


def test_a_record_that_fails_alone_is_refused_and_no_other() -> None:
    """As in a live epoch (rule 17)."""
    epochs = Epochs()
    epochs.poison = 5
    fill(epochs)
    assert epochs.condemned == [5]
    assert list_missing_ranges(epochs.log) == {}


def test_what_kafka_has_lost_meanwhile_stays_missing() -> None:
    """Retention goes on while a hole is filled."""
    epochs = Epochs(most=3)
    epochs.wrong = ["", "before"]
    filler = Filler(epochs, epochs.log, Unnoted())  # type: ignore[arg-type]
    filler.request(ALL)
    filler.fill_step(None)  # type: ignore[arg-type]
    epochs.begins = 6
    while filler.pending:
        filler.fill_step(None)  # type: ignore[arg-type]
    assert list_missing_ranges(epochs.log) == {0: (OffsetRange(LANE, 3, 6),)}


@pytest.mark.parametrize("down", [False, True])
def test_a_broker_that_is_away_is_no_failure_of_a_record(down: bool) -> None:
    """However often it does not answer, nothing is condemned for it."""
    epochs = Epochs(most=1)
    filler = Filler(epochs, epochs.log, Unnoted())  # type: ignore[arg-type]
    filler.request(ALL)
    epochs.down = down
    for _ in range(10):
        epochs.wrong = ["before" if down else "kafka"]
        with pytest.raises(KafkaUnavailable):
            filler.fill_step(None)  # type: ignore[arg-type]
    epochs.down, epochs.wrong = False, []
    while filler.pending:
        filler.fill_step(None)  # type: ignore[arg-type]
    assert epochs.condemned == []
    assert list_missing_ranges(epochs.log) == {}


@pytest.mark.parametrize("stages", [["judged", "dry"], ["judged", "dry", "kept"]])
@pytest.mark.parametrize("size", [8, 1000])
def test_a_record_that_kills_the_driver_each_time_is_refused_alone(
    tmp_path: Path, stages: list[str], size: int
) -> None:
    """Each start filled in full size again, died of it, and the live stream with it: for good."""
    epochs, deaths = Epochs(), 0
    gap = Gap(LANE, 0, size)
    epochs.log = [AcceptedGap(gap, "ada", "latest", NOW).epoch(0, 1, NOW, record_version="v")]
    epochs.deadly = dict.fromkeys(stages, 5)
    while list_missing_ranges(epochs.log):
        filler = Filler(epochs, epochs.log, Attempted(tmp_path / "fill.json"))  # type: ignore[arg-type]
        try:
            while filler.pending or not filler.asked:
                filler.request([OffsetRange(LANE, 0, size)])
                filler.fill_step(None)  # type: ignore[arg-type]
        except Died:
            deaths += 1
            assert deaths < 20, "the supervisor has given up"
    assert epochs.condemned == [5]
    assert sum(len(part) for epoch in epochs.log[1:] for part in epoch.ranges) == size
    assert not (tmp_path / "fill.json").exists()


def test_a_driver_that_is_killed_once_fills_the_same_as_before(tmp_path: Path) -> None:
    """The power may have gone, or a person may have killed it: no record is to blame."""
    epochs = Epochs()
    filler = Filler(epochs, epochs.log, Attempted(tmp_path / "fill.json"))  # type: ignore[arg-type]
    filler.request(ALL)
    epochs.deadly = {"judged": 5}
    with pytest.raises(Died):
        filler.fill_step(None)  # type: ignore[arg-type]
    epochs.deadly = {}
    filler = Filler(epochs, epochs.log, Attempted(tmp_path / "fill.json"))  # type: ignore[arg-type]
    filler.request(ALL)
    while filler.pending:
        filler.fill_step(None)  # type: ignore[arg-type]
    assert (epochs.condemned, list_missing_ranges(epochs.log)) == ([], {})


@pytest.mark.parametrize("killed", ["killed", "killed at a commit"])
def test_a_driver_that_is_killed_often_condemns_nothing(tmp_path: Path, killed: str) -> None:
    """What a person kills at one record is tried once more, as in a live epoch: it was refused after three deaths."""
    epochs = Epochs(most=1)
    epochs.wrong = [killed] * 9
    while list_missing_ranges(epochs.log):
        filler = Filler(epochs, epochs.log, Attempted(tmp_path / "fill.json"))  # type: ignore[arg-type]
        with suppress(Died):
            while filler.pending or not filler.asked:
                filler.request(ALL)
                filler.fill_step(None)  # type: ignore[arg-type]
    assert epochs.wrong == []
    assert epochs.condemned == []


def test_deaths_at_commits_are_not_counted_against_a_record(tmp_path: Path) -> None:
    """What was learned before is kept, and no more is added to it."""
    epochs = Epochs()
    epochs.wrong = ["killed", "killed at a commit", "killed at a commit"]
    for _ in range(3):
        filler = Filler(epochs, epochs.log, Attempted(tmp_path / "fill.json"))  # type: ignore[arg-type]
        filler.request(ALL)
        with pytest.raises(Died):
            filler.fill_step(None)  # type: ignore[arg-type]
    filler = Filler(epochs, epochs.log, Attempted(tmp_path / "fill.json"))  # type: ignore[arg-type]
    filler.request(ALL)
    assert (filler.size, filler.failures) == (1, 0)


def test_a_file_that_cannot_be_read_is_laid_to_no_record() -> None:
    """Its rows would be condemned one by one; the part is read once the file is mended."""
    epochs = Epochs()
    supply = hole_filling.TopicSupply(epochs.topics)  # type: ignore[arg-type]

    class Files:
        """Rows of a file that is damaged for a while."""

        damaged = True

        def __getattr__(self, name: str) -> object:
            return getattr(supply, name)

        def find_fault(self, error: Exception) -> SeamlineError | None:
            """Say that it is the file's."""
            return BadRange("the file is damaged", hint="mend it") if self.damaged else None

    files = Files()
    filler = Filler(epochs, epochs.log, Unnoted(), files)  # type: ignore[arg-type]
    filler.request(ALL)
    for _ in range(9):
        epochs.wrong = ["before"]
        with pytest.raises(BadRange, match="damaged"):
            filler.fill_step(None)  # type: ignore[arg-type]
    files.damaged, epochs.wrong = False, []
    while filler.pending:
        filler.fill_step(None)  # type: ignore[arg-type]
    assert (list_missing_ranges(epochs.log), epochs.condemned) == ({}, [])
