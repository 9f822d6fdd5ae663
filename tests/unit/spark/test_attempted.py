"""Drivers that die of a record, one after another: what each leaves behind, and that the stream gets past it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seamline.kernel.kernel_result import KernelResult
from seamline.model.definition.layers import Stream
from seamline.model.errors import DefinitionError
from seamline.model.memory import parse_memory
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.offsets import Lane, OffsetRange
from seamline.spark.session.attempt_notes import DRY, JUDGED, KEPT, Attempted, Note
from seamline.spark.session.session import halved_driver_settings
from seamline.spark.stream import epoch_maker as epochs_module
from seamline.spark.stream import kernel_runs
from seamline.spark.stream.epoch_maker import Epochs
from seamline.spark.stream.epoch_sizing import EpochSize
from seamline.spark.stream.epoch_timing import EpochTiming
from seamline.spark.stream.progress import Progress
from seamline.spark.stream.read_topics import fetch_options
from seamline.spark.tasks.kernel_attempts import make_unread_record

A, B = Lane("t", 0), Lane("t", 1)


class Died(BaseException):
    """The machine has killed the driver: nothing of it runs any more."""


class Machine:
    """Runs drivers over ``sizes`` records a lane; a record of ``deadly`` kills in the stages that are named.

    ``held`` is what the master holds: the ranges of each epoch, and whether it was condemned.
    """

    def __init__(
        self, folder: Path, sizes: dict[Lane, int], deadly: dict[tuple[Lane, int], Sequence[str]]
    ) -> None:
        self.file, self.sizes, self.deadly = folder / "attempt.json", sizes, deadly
        self.vector = dict.fromkeys(sizes, 0)
        self.held: list[tuple[tuple[OffsetRange, ...], str]] = []
        self.deaths = 0

    def driver(self) -> Any:
        """Start a driver as Epochs does; Spark, Kafka and the tables are made up."""
        made: Any = object.__new__(Epochs)
        made.progress = Progress(dict(self.vector))
        made.size = EpochSize(Stream(max_offsets_per_epoch=1_000_000))
        made.attempted = Attempted(self.file)
        made.size.restore(made.attempted.read(), made.progress.vector)
        made.derived = SimpleNamespace(
            any=False, join=lambda *_: None, fold=lambda *_: None, commit=lambda _: None, forget=lambda: None
        )
        made.surveys, made.lookups = None, SimpleNamespace(current_versions=dict, topics=())
        made.registries = SimpleNamespace(
            current_schemas=lambda: None, forget_unknown=lambda: None, want=lambda _: False
        )
        made.writer = SimpleNamespace(
            take_number=lambda: 1, current=frozenset(), end_phase=lambda _: None, token=1
        )
        made.writer.timing = EpochTiming()
        made.topics = SimpleNamespace(
            assert_same=lambda: None, commit_group_offsets=lambda *_: None, ids={"t": "t"}
        )
        made.pipeline = SimpleNamespace(name="p")
        made.reload_log = list
        made.policy, made.retries = SimpleNamespace(is_due=lambda *_: False), 0
        made.size_batches = made.write_heartbeat = lambda *_: None
        made.draft_epoch = lambda number, *_: Epoch(number, 1, datetime.now(UTC), "v")
        made.add_lanes = lambda _: made.progress
        made.run_kernel = lambda *given, dry=False, parts=0: self.compute(made, given[-1], dry)

        def hold(after: Progress, epoch: Epoch, attempt: Any) -> None:
            made.progress, self.vector = after, dict(after.vector)
            self.held.append((epoch.ranges, made.said))

        made.commit_attempt = hold
        return made

    def compute(self, made: Any, condemned: str, dry: bool) -> KernelResult:
        """Run the kernel; the stage is what the note says, for a death leaves nothing else."""
        note = Attempted(self.file).read()
        assert note
        assert note.stage == (DRY if dry else KEPT if condemned else JUDGED)
        made.said = condemned
        if condemned and made.size.unread:
            return KernelResult()
        for part in note.ranges:
            if any(note.stage in self.deadly.get((part.lane, at), ()) for at in range(part.start, part.end)):
                raise Died
        return KernelResult()

    def run(self) -> None:
        """Start drivers until all is held; each reads as Spark would plan it."""
        while self.vector != self.sizes:
            made = self.driver()
            try:
                while self.vector != self.sizes:
                    made.process_batch(SimpleNamespace(), self.ends(made.size), stopping=False)
                    made.restart()
            except Died:
                self.deaths += 1
                assert self.deaths < 20, "the supervisor has given up"

    def ends(self, size: EpochSize) -> dict[Lane, int]:
        """Plan as Spark does: a share of the limit for each lane with a backlog, and one record at least."""
        lanes = [lane for lane in self.sizes if self.vector[lane] < self.sizes[lane]]
        if size.suspects:
            lanes = [size.suspects[0]] if size.suspects[0] in lanes else lanes[:1]
        share = max(size.limit // len(lanes), 1)
        ends = {lane: min(self.vector[lane] + share, self.sizes[lane]) for lane in lanes}
        return {**self.vector, **ends}


@pytest.fixture(autouse=True)
def whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """The frame is nobody's."""
    monkeypatch.setattr(epochs_module, "coalesce_small_epoch", lambda frame, _: frame)
    monkeypatch.setattr(kernel_runs, "is_frame_alive", lambda _: True)


def counted(machine: Machine) -> list[tuple[Lane, int]]:
    """List the places that were condemned, and assert that every record was held once."""
    places = [
        (part.lane, at) for parts, _ in machine.held for part in parts for at in range(part.start, part.end)
    ]
    assert sorted(places) == sorted((lane, at) for lane, size in machine.sizes.items() for at in range(size))
    return [
        (part.lane, at)
        for parts, why in machine.held
        if why
        for part in parts
        for at in range(part.start, part.end)
    ]


@pytest.mark.parametrize("deadly", [(JUDGED, DRY), (JUDGED, DRY, KEPT)], ids=["to judge", "to read"])
@pytest.mark.parametrize("at", [0, 17_803, 29_999])
def test_a_record_that_kills_the_driver_each_time_is_found_and_passed(
    tmp_path: Path, at: int, deadly: tuple[str, ...]
) -> None:
    """A start after an out-of-memory kill does not begin at full size again; it is forgotten once held."""
    machine = Machine(tmp_path, {A: 30_000, B: 9_000}, {(A, at): deadly})
    machine.run()
    assert counted(machine) == [(A, at)]
    assert not machine.file.exists()


@settings(max_examples=20)
@given(
    dead=st.sets(st.tuples(st.sampled_from([A, B]), st.integers(0, 2_999)), max_size=1),
    sizes=st.tuples(st.integers(3_000, 9_000), st.integers(3_000, 9_000)),
)
def test_nothing_else_is_condemned(tmp_path_factory: pytest.TempPathFactory, dead: Any, sizes: Any) -> None:
    """Whatever lies beside it, in whichever lane."""
    machine = Machine(
        tmp_path_factory.mktemp("machine"),
        dict(zip([A, B], sizes, strict=True)),
        dict.fromkeys(dead, (JUDGED, DRY)),
    )
    machine.run()
    assert counted(machine) == sorted(dead)


def test_a_driver_that_somebody_kills_condemns_nothing(tmp_path: Path) -> None:
    """Where the trial of the record that is left comes to an end, it is not to blame."""
    machine = Machine(tmp_path, {A: 1_000}, {})
    for _ in range(7):
        made = machine.driver()
        note = Note((OffsetRange(A, 0, 1),), JUDGED, made.size.to_json())
        made.attempted.begin(note)
    machine.run()
    assert counted(machine) == []


def test_a_death_outside_of_the_kernel_is_no_failure_of_a_record(tmp_path: Path) -> None:
    """Between the kernel and the master's commit there is nothing that a record could be blamed for."""
    attempted, size = Attempted(tmp_path / "attempt.json"), EpochSize(Stream())
    attempted.begin(Note((OffsetRange(A, 5, 9),), JUDGED))
    attempted.finish({A: 5}, size.to_json())
    assert not size.restore(attempted.read(), {A: 5})
    assert (size.failures, size.limit) == (0, size.most)


def test_what_fills_a_hole_leaves_the_note_of_the_stream_alone(tmp_path: Path) -> None:
    """Its deaths are not those of the epoch that the stream reads next."""
    attempted = Attempted(tmp_path / "attempt.json")
    attempted.finish({A: 5}, {"limit": 3})
    before = attempted.file.read_text()
    attempted.enter_stage(KEPT)
    assert attempted.file.read_text() == before
    assert not attempted.kept


def test_a_note_that_nobody_can_read_is_none(tmp_path: Path) -> None:
    """Half a file, or another release's, begins at full size; a full disk stops nothing."""
    (tmp_path / "attempt.json").write_text('{"start": {}')
    assert Attempted(tmp_path / "attempt.json").read() is None
    full = Attempted(Path("/dev/full/attempt.json"))
    full.begin(Note((OffsetRange(A, 0, 1),)))
    full.finish({A: 1}, {})


def test_what_cannot_be_read_has_its_place_in_the_quarantine() -> None:
    """Its bytes are Kafka's alone."""
    made = make_unread_record(Note((OffsetRange(B, 7, 8),)), {"orders": "t"})
    assert pa.Table.from_batches([made]).drop_columns("timestamp").to_pylist() == [
        {"key": None, "value": None, "headers": None, "topic": "orders", "partition": 1, "offset": 7}
    ]


def test_memory_is_spelled_as_spark_spells_it() -> None:
    """A plain number would be bytes to one reader and megabytes to the other."""
    assert [parse_memory(each) for each in ("512m", "4g", "2GB")] == [512 << 20, 4 << 30, 2 << 30]
    for wrong in ("4", "0g", "g", "4 g", "1k"):
        with pytest.raises(DefinitionError):
            parse_memory(wrong)


def test_an_epoch_that_was_halved_is_not_given_the_records_beside_its_own() -> None:
    """One poll gave 5,000 of a batch, all in the heap: an epoch of one record died of those that came with it."""
    polled = [fetch_options(records)["kafka.max.poll.records"] for records in (1, 9, 300, 1_000_000, 0)]
    assert polled == ["1", "9", "300", "5000", "1"]


def test_a_driver_that_knows_of_trouble_keeps_nothing_that_consumers_have_fetched(tmp_path: Path) -> None:
    """Those of the query before kept 130 MB for five minutes, and each record of a huge batch cost a driver."""
    file = tmp_path / "attempt.json"
    assert halved_driver_settings(file) == {}
    Attempted(file).begin(Note((OffsetRange(A, 0, 9),), JUDGED))
    # Killed once, by whatever it was.
    assert halved_driver_settings(file) == {}
    Attempted(file).begin(Note((OffsetRange(A, 0, 9),), JUDGED, {"failures": 1}))
    assert halved_driver_settings(file)["spark.kafka.consumer.cache.timeout"] == "1s"
