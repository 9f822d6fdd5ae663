"""The driver's half of the index of event ids: parts are lost at any moment, and only those are made again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from tests.lives.frames import Frame
from tests.unit.records import pipeline

from seamline import Stream
from seamline.kernel.epoch_kernel import run
from seamline.kernel.hashed_ids import hash_ids
from seamline.kernel.id_index import IdIndex
from seamline.kernel.kernel_config import KernelConfig
from seamline.kernel.kernel_result import KernelResult
from seamline.kernel.marks import marks_schema
from seamline.kernel.validation import REPEATED
from seamline.lake.engine.duckdb_connections import open_duckdb
from seamline.lake.log.master import Master
from seamline.lake.storage.arrow_types import INSTANT
from seamline.lake.storage.layout import Layout
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.errors import SetupError, SparkFailed, StoreUnavailable
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.offsets import Lane, OffsetRange
from seamline.spark.stream import known_ids
from seamline.spark.stream.known_ids import KnownIds
from seamline.spark.tasks import id_parts
from seamline.testing.engine import RAW

AT = datetime(2024, 3, 1, 9, tzinfo=UTC)
PARTS = 3
GATE = compile_pipeline(
    pipeline("id BIGINT, at TIMESTAMP", event_id=["id"], dedup_within="1 hour", stream=Stream(parts=PARTS))
)
Harm = Callable[[Path], object]


def hashes(ids: Iterable[int]) -> dict[int, int]:
    """Hash ids as tasks do; give the half by which they go to parts."""
    rows = pa.table({"id": pa.array(list(ids), pa.int64())})
    rows = rows.append_column("_event_time", pa.array([AT] * rows.num_rows, INSTANT))
    with open_duckdb() as con:
        con.register("rows", rows)
        found = hash_ids(con, GATE, "rows", ["id"]).to_arrow_table()
    return dict(zip(found["id"].to_pylist(), found["high"].to_pylist(), strict=True))


WHERE = hashes(range(40))
"""The hash of each id that a test has."""


@dataclass
class Driver:
    """A driver's index beside a master of its own; each attempt at an epoch has another number."""

    folder: Path
    known: KnownIds
    epoch: int = -1
    offset: int = 0
    committed: set[int] = field(default_factory=set)
    tried: tuple[int, ...] = ()
    made: KernelResult = field(default_factory=KernelResult)

    def __post_init__(self) -> None:
        self.master = Master.ensure(self.known.layout, GATE)

    def survey(self, *ids: int, dry: bool = False, watermark: datetime | None = None) -> list[bool]:
        """Survey records of so many ids as an epoch; tell which are repeated, as any look at all ids must."""
        self.epoch += 1
        self.tried = ids
        values = [json.dumps({"id": id, "at": AT.isoformat()}).encode() for id in ids]
        rows = [
            {"value": value, "topic": "t", "partition": 0, "offset": self.offset + at, "timestamp": AT}
            for at, value in enumerate(values)
        ]
        raw = pa.Table.from_pylist(rows, RAW)
        config = KernelConfig(
            pipeline=GATE,
            topic_ids={"t": "T"},
            token=1,
            epoch=self.epoch,
            committed={},
            views=frozenset(),
            master=self.master.table.root,
            quarantine=self.folder / "quarantine",
            watermark=watermark,
            dry=dry,
        )
        found, _ = self.known.find_repeated(Frame(raw.slice(0, 1), raw.slice(1)), config)  # type: ignore[arg-type]
        marks = found.append_column(REPEATED, pa.repeat(pa.scalar(True), found.num_rows))
        self.made = run(raw.to_batches(), replace(config, marks=marks.cast(marks_schema(GATE))))
        places = set(found["_offset"].to_pylist())
        said = [self.offset + at in places for at in range(len(ids))]
        assert said == [id in self.committed or id in ids[:at] for at, id in enumerate(ids)]
        return said

    def land(self) -> None:
        """Let the last attempt be in the master, whether the driver is told of it or not."""
        ranges = (OffsetRange(Lane("T", 0), self.offset, self.offset + len(self.tried)),)
        row = Epoch(self.epoch, 1, AT, record_version=GATE.record_version, ranges=ranges)
        self.master.commit(row, self.made.master)
        self.offset += len(self.tried)
        self.committed |= {*self.tried}

    def commit(self, *ids: int) -> None:
        """Survey an epoch, and commit it."""
        self.survey(*ids)
        self.land()
        self.known.commit()

    def settle(self) -> None:
        """Read the master again, as after a failure."""
        self.known.settle(self.master.epoch)

    @property
    def asked(self) -> id_parts.IndexAsked:
        """The index."""
        assert self.known.asked
        return self.known.asked

    def lose(self, *parts: int, by: Harm = shutil.rmtree) -> None:
        """Spoil parts of the index."""
        for part in parts:
            by(self.asked.part_folder(part))

    def held(self, part: int) -> set[int]:
        """Return what a part has, as it stands where the driver says, by the half of a hash."""
        index = IdIndex.open(self.asked.part_folder(part), self.asked.names[part], str(self.asked.after))
        assert index
        return {int(each) for run in index.state.runs for each in index.files.column(run, "high")}

    def judge(self) -> None:
        """Compare every part with the ids of its own in committed epochs, no more and no fewer."""
        for part in range(PARTS):
            own = {WHERE[id] for id in self.committed if WHERE[id] % PARTS == part}
            assert self.held(part) == own, part


@pytest.fixture
def driver(tmp_path: Path) -> Driver:
    return Driver(tmp_path, KnownIds(GATE, Layout(tmp_path, "gate"), tmp_path / "ids"))


def tear(folder: Path) -> None:
    """Cut the state off."""
    state = folder / "state.json"
    state.write_text(state.read_text()[:20])


def empty(folder: Path) -> None:
    """Cut a column of every run off."""
    for file in folder.glob("*.low"):
        file.write_bytes(b"")


def renamed(driver: Driver, before: tuple[str, ...]) -> list[int]:
    """List the parts that have another name than before."""
    return [part for part in range(PARTS) if driver.asked.names[part] != before[part]]


@pytest.mark.parametrize("harm", [shutil.rmtree, tear, empty])
@pytest.mark.parametrize("lost", [(1,), (0, 2), (0, 1, 2)])
def test_only_the_parts_that_are_lost_are_made_again(
    lost: tuple[int, ...], harm: Harm, driver: Driver
) -> None:
    """In the first survey after a commit: what was pending counts, in the parts that have it and in those made anew."""
    driver.commit(*range(20))
    driver.commit(*range(15, 30))
    before = driver.asked
    driver.lose(*lost, by=harm)
    assert True in driver.survey(*range(25, 35))
    assert renamed(driver, before.names) == [*lost]
    assert driver.asked.after == before.after == 1
    driver.judge()
    driver.land()
    driver.known.commit()
    driver.survey(*range(40))
    driver.judge()


def test_a_part_that_is_lost_before_any_commit_is_made_again(driver: Driver) -> None:
    """The master has nothing of it yet, and the attempt that is tried again has left what is pending."""
    driver.survey(*range(10))
    driver.settle()
    driver.lose(2)
    driver.survey(*range(10))
    driver.land()
    driver.known.commit()
    driver.survey(*range(20))
    driver.judge()


def test_what_a_failed_attempt_had_left_pending_is_in_no_part(driver: Driver) -> None:
    """The parts that were not lost drop it; that which is made again never had it."""
    driver.commit(*range(10))
    driver.survey(*range(5, 20))
    driver.settle()
    driver.lose(0)
    assert driver.survey(*range(5, 20)).count(True) == 5
    driver.judge()


def test_an_epoch_that_lands_late_is_in_no_part_of_an_index_before_it(driver: Driver) -> None:
    """A part that is made again stands where the others do; the driver learns of the epoch, and makes all again."""
    driver.commit(*range(10))
    driver.survey(*range(10, 20))
    driver.settle()
    made, number = driver.made, driver.epoch
    ends = (OffsetRange(Lane("T", 0), driver.offset, driver.offset + 10),)
    driver.master.commit(Epoch(number, 1, AT, record_version=GATE.record_version, ranges=ends), made.master)
    driver.lose(1)
    before = driver.asked.names
    assert not any(driver.survey(*range(10, 20)))
    assert renamed(driver, before) == [1]
    driver.judge()
    driver.settle()
    assert driver.known.asked is None
    driver.committed |= {*range(10, 20)}
    driver.survey(*range(5, 25))
    driver.judge()


def test_a_trial_of_an_epoch_makes_lost_parts_again_and_leaves_nothing_pending(driver: Driver) -> None:
    """What was pending before it was committed: both the parts that have it and those made again know of it."""
    driver.commit(*range(20))
    driver.lose(0)
    before = driver.asked.names
    driver.survey(*range(10, 30), dry=True)
    driver.settle()
    assert renamed(driver, before) == [0]
    driver.judge()
    assert driver.survey(*range(10, 30)).count(True) == 10
    driver.judge()


def test_a_part_made_again_has_the_horizon_of_the_survey(driver: Driver) -> None:
    """What is beyond it the other parts have forgotten as well."""
    driver.commit(*range(20))
    driver.lose(1)
    driver.committed = set()
    driver.survey(*range(20), watermark=AT + timedelta(hours=1, microseconds=1))
    assert driver.held(1) == set()


def test_only_the_ids_of_lost_parts_are_sent(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are read from every file of the master, once."""
    driver.commit(*range(20))
    driver.commit(*range(20, 30))
    sent: list[tuple[int, int]] = []
    split = id_parts.split_into_pieces

    def note(part: int, kind: str, share: pa.Table) -> Iterable[id_parts.Piece]:
        sent.append((part, share.num_rows))
        return split(part, kind, share)

    shares: list[list[str]] = []
    read = known_ids.read_master_ids

    def list_shares(*given: object) -> object:
        monkeypatch.setattr(id_parts, "split_into_pieces", note)
        shares.extend(given[1])  # type: ignore[arg-type]
        return read(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(known_ids, "read_master_ids", list_shares)
    driver.lose(2)
    driver.known.asked = driver.known.make_parts_again(Frame().sparkSession, driver.asked, [2], None)  # type: ignore[arg-type]
    own = [id for id in range(30) if WHERE[id] % PARTS == 2]
    assert {part for part, _ in sent} == {2} and sum(count for _, count in sent) == len(own)
    paths = [path for share in shares for path in share]
    assert len(paths) == len({*paths}) == 2


@pytest.mark.parametrize("dry", [False, True])
def test_a_part_that_cannot_be_made_stays_lost(
    dry: bool, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No record is to blame, which a trial would condemn; the next survey makes it, and the others stay as they are."""
    driver.commit(*range(20))
    before = driver.asked
    driver.lose(1)
    load = IdIndex.load

    def fail(folder: Path, index: str, after: str, ids: Iterable[pa.Table]) -> IdIndex:
        load(folder, index, after, ids)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(IdIndex, "load", fail)
    with pytest.raises(SparkFailed, match="cannot be made: .*No space left"):
        driver.survey(*range(30), dry=dry)
    assert driver.asked.names == before.names
    assert len([*driver.known.folder.rglob("state.json")]) == PARTS - 1
    monkeypatch.undo()
    driver.settle()
    driver.survey(*range(30))
    assert renamed(driver, before.names) == [1]
    driver.judge()


def test_a_store_that_is_away_while_an_index_is_made_is_waited_for(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As anywhere else."""

    def fail(*_: object) -> IdIndex:
        raise OSError("Generic S3 error: timed out")

    monkeypatch.setattr(IdIndex, "load", fail)
    with pytest.raises(StoreUnavailable):
        driver.survey(1)


def test_a_task_of_before_cannot_write_to_a_part_made_again(driver: Driver) -> None:
    """An executor that is given up for lost may go on: what it writes has the name that the part had."""
    driver.commit(*range(20))
    before = driver.asked
    late = IdIndex.open(before.part_folder(1), before.names[1], str(before.after))
    assert late
    driver.lose(1)
    driver.survey(*range(10, 30))
    late.save()
    driver.judge()


def test_a_folder_that_keeps_nothing_is_an_error(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers on other machines do not see it."""
    monkeypatch.setattr(IdIndex, "open", lambda *_: None)
    with pytest.raises(SetupError, match="does not keep what is written"):
        driver.survey(1)


@pytest.mark.parametrize("seed", range(6))
def test_whatever_is_lost_the_index_has_what_is_committed(seed: int, driver: Driver) -> None:
    """Compared with a look at every id, while parts are lost and epochs fail, land, and land late."""
    chance = Random(seed)
    for _ in range(8):
        if driver.known.asked and chance.random() < 0.6:
            harm = chance.choice([shutil.rmtree, tear, empty])
            driver.lose(*chance.sample(range(PARTS), chance.randrange(1, PARTS + 1)), by=harm)
        ids = [chance.randrange(40) for _ in range(chance.randrange(1, 12))]
        driver.survey(*ids, dry=chance.random() < 0.2)
        driver.judge()
        match chance.choice(["commit", "commit", "fail", "land"]) if driver.known.attempt else "fail":
            case "commit":
                driver.land()
                driver.known.commit()
            case "land":
                driver.land()
                driver.settle()
            case _:
                driver.settle()
