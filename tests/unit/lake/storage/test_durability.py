"""What is left after a power cut: what was acknowledged as synced, with all it names, and nothing half."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pytest
from tests.protocol.shipped import LANE, PIPELINE, START, VIEW, Stream

from seamline.lake.log.master import Master
from seamline.lake.maintain.upkeep import maintain_tables
from seamline.lake.publish.publishing import publish_run
from seamline.lake.storage import data_files, durability, log_store
from seamline.lake.storage.delta_table import EPOCH, Table
from seamline.lake.store import created_files
from seamline.lake.tables.control_table import ControlTable, Desired
from seamline.lake.tables.generations import Generations
from seamline.lake.tables.lookups.lookup_tables import write_lookup_version
from seamline.lake.tables.manifest_table import ManifestTable
from seamline.model.compile.compiled_pipeline import CompiledPipeline, compile_pipeline
from seamline.model.definition.layers import Stream as Settings

SCHEMA = pa.schema([("n", pa.int64())])


class Cut(Exception):
    """The power is gone."""


@dataclass
class Disk:
    """A disk that keeps what was synced: of a file its content at that moment, of a folder the names in it.

    The power is cut before the ``dies``-th sync.
    """

    home: Path
    contents: dict[int, bytes] = field(default_factory=dict)
    names: dict[Path, dict[str, int]] = field(default_factory=dict)
    syncs: list[str] = field(default_factory=list)
    dies: int = -1

    def flushed(self, path: Path, flags: int, sync: object) -> None:
        """Take the place of the real one."""
        if len(self.syncs) == self.dies:
            raise Cut
        name = getattr(sync, "__name__", "")
        self.syncs.append(f"{name} {path.relative_to(self.home)}")
        if sync is durability.file_system:
            for folder, _, inside in os.walk(self.home):
                self.keep_names(Path(folder))
                for each in inside:
                    self.keep(Path(folder) / each)
        elif flags & os.O_DIRECTORY:
            self.keep_names(path)
        else:
            self.keep(path)

    def keep(self, path: Path) -> None:
        self.contents[path.stat().st_ino] = path.read_bytes()

    def keep_names(self, path: Path) -> None:
        self.names[path] = {each.name: each.inode() for each in os.scandir(path)}

    def after_a_cut(self, place: Path) -> Path:
        """Lay out what is left at another place."""
        self.laid(self.home, place)
        return place

    def laid(self, source: Path, target: Path) -> None:
        target.mkdir(parents=True)
        for name, number in self.names.get(source, {}).items():
            if (source / name).is_dir():
                self.laid(source / name, target / name)
            else:
                (target / name).write_bytes(self.contents.get(number, b""))


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    home = tmp_path / "disk"
    home.mkdir()
    made = Disk(home)
    monkeypatch.setenv("SEAMLINE_FSYNC", "on")
    monkeypatch.setattr(durability, "sync_or_exit", made.flushed)
    return made


def add(table: Table, number: int, *, sync: bool | None = None) -> None:
    """Commit a row."""
    rows = pa.table({"n": [number]}, schema=SCHEMA)
    file = data_files.write_data_file(rows, table.root, f"{number}/{number}.parquet")
    table.append([file], txns={"a": number}, sync=sync)


def rows(root: Path) -> list[int]:
    """List the rows of a table."""
    return sorted(Table.open(root).read()["n"].to_pylist()) if Table.exists(root) else []


@pytest.mark.parametrize("name", [*sorted(durability.ALWAYS), "master"])
def test_what_is_acknowledged_is_on_disk(disk: Disk, tmp_path: Path, name: str) -> None:
    """In the tables that nothing upstream can give again; of the others nothing is synced."""
    table = Table.ensure(disk.home / "shop" / "a" / name, SCHEMA)
    add(table, 1)
    table.widen(pa.schema([("more", pa.int64())]))
    add(Table.open(table.root), 2)
    left = rows(disk.after_a_cut(tmp_path / "left") / "shop" / "a" / name)
    assert left == ([] if name == "master" else [1, 2])
    assert bool(disk.syncs) == (name != "master")


def test_a_cut_at_any_moment_leaves_what_was_acknowledged(disk: Disk, tmp_path: Path) -> None:
    """Whole commits up to some number, and all those of which somebody was told."""
    dies = 0
    while True:
        root = disk.home / str(dies) / "builds"
        trial = Disk(disk.home, dies=dies)
        told: list[int] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(durability, "sync_or_exit", trial.flushed)
            try:
                table = Table.ensure(root, SCHEMA)
                for number in range(3):
                    add(table, number)
                    told.append(number)
            except Cut:
                pass
        left = trial.after_a_cut(tmp_path / f"left {dies}")
        found = rows(left / str(dies) / "builds") if told else told
        assert found in (told, [*told, len(told)])
        if told == [0, 1, 2]:
            break
        dies += 1
    assert dies > 12


def test_the_steps_are_in_their_order(disk: Disk) -> None:
    """Files, their folders, the draft, the link, the log's folder: a name never comes before what it names."""
    table = Table.ensure(disk.home / "builds", SCHEMA)
    add(table, 1)
    disk.syncs.clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            created_files.os, "link", lambda *given, link=os.link: disk.syncs.append("link") or link(*given)
        )
        add(table, 2)
    steps = [step.replace(step[step.find("_commit_") : step.find(".json.tmp")], "") for step in disk.syncs]
    assert steps == [
        "fdatasync builds/2/2.parquet",
        "named builds/2",
        "named builds",
        "fdatasync builds/_delta_log/.json.tmp",
        "link",
        "named builds/_delta_log",
    ]


def test_what_was_not_synced_before_is_synced_with_what_is(disk: Disk, tmp_path: Path) -> None:
    """A decision of a table whose renewals are not: the log would end before it."""
    table = Table.ensure(disk.home / "control", SCHEMA)
    for number in range(3):
        add(table, number, sync=False)
    before = len(disk.syncs)
    other = Table.open(table.root)
    add(other, 3)
    assert rows(disk.after_a_cut(tmp_path / "left") / "control") == [0, 1, 2, 3]
    assert len(disk.syncs) - before > 12
    disk.syncs.clear()
    add(other, 4)
    assert len(disk.syncs) == 5


def test_a_checkpoint_is_on_disk_before_entries_go(disk: Disk, tmp_path: Path) -> None:
    """Of every table: those it stands for may be deleted. What it sums up is there before it."""
    table = Table.ensure(disk.home / "master", SCHEMA)
    for number in range(50):
        table.append([], txns={"a": number})
    *before, checkpoint, named = disk.syncs
    assert {f"fdatasync master/_delta_log/{at:020d}.json" for at in range(51)} <= {*before}
    assert before[-1] == named == "named master/_delta_log"
    assert checkpoint == "fdatasync master/_delta_log/00000000000000000050.checkpoint.parquet"


def test_an_error_of_a_sync_ends_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel may have forgotten what was to be written, and would call the next sync a success."""
    monkeypatch.setenv("SEAMLINE_FSYNC", "on")

    def fails(handle: int) -> None:
        raise OSError(5, "Input/output error")

    def end(code: int) -> None:
        raise SystemExit(code)

    monkeypatch.setattr(durability, "exit_process", end)
    table = Table.ensure(tmp_path / "builds", SCHEMA)
    monkeypatch.setattr(durability.os, "fdatasync", fails)
    with pytest.raises(SystemExit) as ended:
        add(table, 1)
    assert ended.value.code == durability.FAILED
    assert not log_store.entry_path(table.root, 1).exists()


def test_the_real_calls_work_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files, folders and the whole file system; many files at once."""
    monkeypatch.setenv("SEAMLINE_FSYNC", "on")
    table = Table.ensure(tmp_path / "builds", SCHEMA)
    table.append(
        [data_files.write_data_file(pa.table({"n": [at]}), table.root, f"{at}.parquet") for at in range(9)]
    )
    durability.sync_disk(tmp_path)
    assert rows(table.root) == list(range(9))


@pytest.fixture
def stream(disk: Disk) -> Stream:
    """Three records wait, one of which is refused."""
    found = Stream(disk.home)
    found.produce(0, None, 1)
    return found


def with_fsync() -> CompiledPipeline:
    """Return the pipeline that syncs each epoch."""
    return compile_pipeline(replace(PIPELINE.definition, stream=Settings(durability="fsync")))


def after(disk: Disk, place: Path) -> Stream:
    """Return the stream as a cut leaves it."""
    return Stream(disk.after_a_cut(place))


def test_by_default_a_cut_takes_epochs_and_no_decision(stream: Stream, disk: Disk, tmp_path: Path) -> None:
    """They are in Kafka; what people have said is nowhere else."""
    control = ControlTable.ensure(stream.layout)
    control.want(Desired.PAUSED, actor="ann", reason="x", now=START)
    lease = control.take("me", now=START)
    control.renew(lease, now=START)
    stream.epoch(stream.start())
    left = after(disk, tmp_path / "left")
    assert not Master.exists(left.layout) or Master.open(left.layout).epoch == -1
    found = ControlTable.ensure(left.layout).read()
    assert (found.desired, found.actor) == (Desired.PAUSED, "ann")
    assert found.lease == lease
    assert ManifestTable.ensure(left.layout).read().births


@pytest.mark.parametrize("dies", range(0, 40, 3))
def test_with_fsync_no_epoch_that_is_held_is_lost(
    stream: Stream, disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dies: int
) -> None:
    """And the quarantine of each is there, wherever the cut falls."""
    stream.pipeline = with_fsync()
    writer = stream.start()
    disk.dies = len(disk.syncs) + dies
    told = -1
    for end in (1, 2, 3):
        try:
            stream.epoch(writer, end)
        except Cut:
            break
        told = writer.master.epoch
    left = after(disk, tmp_path / "left")
    master = Master.open(left.layout)
    assert master.epoch in (told, told + 1)
    quarantine = Table.open(left.layout.table("quarantine"))
    assert (quarantine.txn(EPOCH) == 1) or master.epoch < 1
    assert master.table.synced
    offsets = sorted(master.table.read(["_offset"])["_offset"].to_pylist())
    assert offsets == [at for at in (0, 2) if at < master.position([LANE]).get(LANE, 0)]


def test_the_setting_is_stated_once_and_taken_back(stream: Stream, disk: Disk) -> None:
    """It is the table's word that counts: upkeep, a fill and a fork go by it."""
    writer = stream.start()
    before = writer.master.table.version
    assert not writer.master.table.synced
    stream.pipeline = with_fsync()
    writer = stream.start()
    assert writer.master.table.version == before + 2
    assert [Table.open(each.root).synced for each in (writer.master.table, writer.quarantine)] == [True, True]
    writer = stream.start()
    assert writer.master.table.version == before + 3
    stream.pipeline = PIPELINE
    writer = stream.start()
    assert not Table.open(writer.master.table.root).synced


def test_a_published_generation_is_of_epochs_that_are_on_disk(
    stream: Stream, disk: Disk, tmp_path: Path
) -> None:
    """Those of a power cut come again under other numbers: a cut above them would count them twice."""
    writer = stream.start()
    epoch = stream.epoch(writer)
    assert epoch
    stream.build(0, epoch.number, "g")
    publish_run(PIPELINE, stream.layout, "g")
    stream.produce(1)
    stream.epoch(writer)
    left = after(disk, tmp_path / "left")
    [[published]] = ManifestTable.ensure(left.layout).read().history.values()
    assert Master.open(left.layout).epoch == published.epoch == epoch.number
    assert Generations.ensure(left.layout, VIEW).read("g").num_rows == published.rows == 1


def test_upkeep_merges_epochs_that_are_on_disk(stream: Stream, disk: Disk, tmp_path: Path) -> None:
    """And what it put in the place of others is there before those go."""
    writer = stream.start()
    for end in (1, 2, 3):
        stream.epoch(writer, end, edge=end == 3)
    maintain_tables(PIPELINE, stream.layout)
    left = after(disk, tmp_path / "left")
    assert Master.open(left.layout).epoch == writer.master.epoch


def test_a_version_of_a_look_up_is_on_disk_before_it_is_named(disk: Disk, tmp_path: Path) -> None:
    """An epoch that names it may be."""
    path = disk.home / "shop" / "lookups" / "airlines" / "abc.parquet"
    write_lookup_version(pa.table({"n": [1]}), path)
    durability.sync_folder(disk.home)
    left = disk.after_a_cut(tmp_path / "left") / path.relative_to(disk.home)
    assert left.read_bytes() == path.read_bytes()
