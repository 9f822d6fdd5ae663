"""Power cuts on the shipped tables: any part of what was not synced is lost, and a plain start mends it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import combinations, product
from pathlib import Path
from shutil import copytree, rmtree

import pytest
from tests.protocol.powerless import (
    HOW,
    TABLES,
    copied,
    cut,
    is_right,
    reads_on,
    rebooted,
    right_so_far,
    root,
    start,
    versions,
)
from tests.protocol.shipped import DAY, PIPELINE, START, VIEW, Died, Stream

from seamline.lake.audit.recounted import recount_states
from seamline.lake.log.master import Master
from seamline.lake.maintain.repair import find_contradictions
from seamline.lake.maintain.upkeep import maintain_tables
from seamline.lake.publish.generation_history import roll_back_interval
from seamline.lake.publish.publishing import publish_run
from seamline.lake.read.merged_read import read_merged_answer
from seamline.lake.storage import durability, log_store, set_aside
from seamline.lake.storage.delta_table import Table
from seamline.lake.store.locations import Location
from seamline.lake.tables.committed_log import CommittedLog
from seamline.lake.tables.manifest_table import ManifestTable
from seamline.lake.tables.readiness import require_repaired
from seamline.model.errors import OutOfStep, PublishRefused, ReadUnstable, SeamlineError
from seamline.model.protocol.job_arguments import BuildJob
from seamline.model.protocol.seam import Status
from seamline.model.time.intervals import Interval
from seamline.plan.maintain.repair_steps import Acceptance
from seamline.plan.publish.publication import Decision
from seamline.spark.build.build import build_intervals
from seamline.supervisor.repairing import repair_pipeline

BACK = Decision("somebody", "it was right", rollback=True)


@pytest.fixture
def stream(warehouse: Location) -> Stream:
    """Three epochs of a record each, the second of which is refused, and one more record that waits."""
    found = Stream(warehouse)
    found.produce(0, None, 1, 0)
    return found


def ran(stream: Stream) -> tuple[dict[str, int], dict[str, int]]:
    """Hold the three epochs; give the tables' versions before the first of them and after the last."""
    writer = stream.start()
    before = versions(stream.layout)
    for end in (1, 2, 3):
        stream.epoch(writer, end)
    return before, versions(stream.layout)


def reaches(before: dict[str, int], after: dict[str, int]) -> Iterator[dict[str, int]]:
    """Return every way in which the tables may have kept some of what they committed."""
    some = [range(before[table], after[table] + 1) for table in TABLES]
    for kept in product(*some):
        yield dict(zip(TABLES, kept, strict=True))


def recovers(stream: Stream, patch: pytest.MonkeyPatch) -> None:
    """Start twice, as after two cuts, read on, and be right."""
    right_so_far(stream)
    for boot in (8, 9):
        writer = start(stream, boot=boot, patch=patch)
        right_so_far(stream)
    reads_on(stream, writer, patch.setattr)
    is_right(stream)


def test_slices_that_the_master_relies_on_and_that_are_lost_are_not_claimed(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their newest commit is empty: the answer was of fewer rows, and said that it was complete."""
    ran(stream)
    cut(stream, {"slices": versions(stream.layout)["slices"] - 1}, "empty")
    found = read_merged_answer(PIPELINE, VIEW, stream.layout)
    assert found.table["id"].to_pylist() == [0]
    assert found.until == 0
    recovers(stream, monkeypatch)


def test_what_only_the_master_has_lost_counts_once(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its range is read again under another number; the slices and the ledger's row of the lost one stayed."""
    ran(stream)
    cut(stream, {"master": versions(stream.layout)["master"] - 1}, "gone")
    assert read_merged_answer(PIPELINE, VIEW, stream.layout).table["id"].to_pylist() == [0]
    writer = start(stream, boot=8, patch=monkeypatch)
    assert stream.position(writer) == 2
    reads_on(stream, writer, monkeypatch.setattr)
    is_right(stream)
    assert Master.open(stream.layout).epoch > 1_000_000


@pytest.mark.parametrize(
    ("table", "how"), [*(("all", how) for how in HOW), *product(TABLES, ("gone", "short file"))]
)
def test_a_start_mends_what_a_table_has_lost(
    stream: Stream, table: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of its last commits, one table or every one: nothing is counted twice, and nothing is left out."""
    before, after = ran(stream)
    cut(stream, before if table == "all" else {**after, table: before[table]}, how)
    recovers(stream, monkeypatch)


@pytest.mark.parametrize(
    ("table", "whole"),
    [
        pytest.param(*each, marks=[] if each in (("master", True), ("all", False)) else pytest.mark.faults)
        for each in product([*TABLES, "all"], (True, False))
    ],
)
def test_a_checkpoint_does_not_stand_for_entries_that_the_disk_has_lost(
    stream: Stream, table: str, whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reached the disk before what it sums up, with its files or without: nobody tells what was read."""
    before, after = ran(stream)
    hit = TABLES if table == "all" else (table,)
    for each in hit:
        Table.open(root(stream.layout, each)).handle.create_checkpoint()
        for version in range(before[each] + 1, after[each] + 1) if not whole else ():
            commit = log_store.read_commit(root(stream.layout, each), version)
            for add in commit.adds if commit else ():
                (root(stream.layout, each) / add["path"]).unlink()
    cut(stream, {**after, **{each: before[each] for each in hit}}, "empty")
    recovers(stream, monkeypatch)


def test_what_a_checkpoint_sums_up_is_on_disk_before_it(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Entries may be let go for it, and whoever syncs the table later goes by it."""
    monkeypatch.setenv("SEAMLINE_FSYNC", "on")
    done: list[Path] = []
    monkeypatch.setattr(durability, "sync_or_exit", lambda path, *_: done.append(path))
    ran(stream)
    master = Table.open(root(stream.layout, "master"))
    master._checkpoint_every = 1
    master.append([], sync=False)
    names = [path.name for path in done]
    entries = [f"{version:020d}.json" for version in range(master.version + 1)]
    checkpoint = names.index(f"{master.version:020d}.checkpoint.parquet")
    assert set(entries) <= set(names[:checkpoint])


@pytest.mark.faults
@pytest.mark.parametrize("how", HOW)
def test_a_start_mends_whatever_the_tables_have_kept(
    stream: Stream, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every part of its last commits for each table, beside every part for the others."""
    before, after = ran(stream)
    for at, kept in enumerate(reaches(before, after)):
        other = copied(stream, tmp_path / str(at))
        cut(other, kept, how)
        recovers(other, monkeypatch)


def test_upkeep_leaves_what_was_set_aside_for_a_week(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody may want to look at it: its entries are kept, named, and so are the files that they add."""
    before, _ = ran(stream)
    folder = root(stream.layout, "slices")
    cut(stream, {"slices": before["slices"]}, "empty")
    [lost] = [path for path in folder.glob("*.parquet") if "000000000002" in path.name]
    [why] = maintain_tables(PIPELINE, stream.layout).refused
    assert "the master relies on it up to 2" in why
    writer = start(stream, boot=8, patch=monkeypatch)
    [place] = (folder / set_aside.FOLDER).iterdir()
    assert {path.name for path in place.glob("*.json")} == {
        f"{version:020d}.json" for version in range(before["slices"] + 1, before["slices"] + 3)
    }
    reads_on(stream, writer, monkeypatch.setattr)
    maintain_tables(PIPELINE, stream.layout)
    assert place.exists() and lost.exists() == (lost.name in set_aside.list_aside_files(folder))
    set_aside.delete_expired_aside(folder, now=datetime.now(UTC) + set_aside.KEPT + timedelta(days=1))
    assert not place.exists()
    is_right(stream)


def test_upkeep_waits_for_a_start(stream: Stream) -> None:
    """It would take the ledger's word for what is held, and merge slices of epochs that the master has lost."""
    ran(stream)
    cut(stream, {"master": versions(stream.layout)["master"] - 1}, "gone")
    [why] = maintain_tables(PIPELINE, stream.layout).refused
    assert "the ledger has epoch 2, but the master ends at 1" in why


def test_nothing_is_built_or_published_before_a_start_has_repaired(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start takes the epochs out of the master whose refused records are lost: a generation would have them twice."""
    before, after = ran(stream)
    cut(stream, {**after, "quarantine": before["quarantine"]}, "gone")
    stream.build(0, 2, "g")
    with pytest.raises(OutOfStep, match="must be repaired first: quarantine ends at epoch -1"):
        publish_run(PIPELINE, stream.layout, "g")
    span = Interval(START, START + DAY)
    with pytest.raises(OutOfStep, match="(?s)the master relies on it up to 1.*start the stream"):
        build_intervals(None, PIPELINE, stream.layout, BuildJob("shop", "g", 2, (span,), ""))  # type: ignore[arg-type]
    [why] = maintain_tables(PIPELINE, stream.layout).refused
    assert "quarantine ends at epoch -1" in why
    recovers(stream, monkeypatch)
    with pytest.raises(PublishRefused, match="up to epoch 2, which the log has since lost"):
        publish_run(PIPELINE, stream.layout, "g")
    is_right(stream)


@pytest.mark.parametrize("back", [False, True], ids=["publish", "rollback"])
def test_a_generation_of_epochs_that_the_log_has_lost_is_not_served(
    stream: Stream, back: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A master from a backup reads their records again, under numbers that are not in the generation's cut."""
    writer = stream.start()
    stream.epoch(writer, 1)
    before = versions(stream.layout)
    stream.build(0, 0, "old")
    publish_run(PIPELINE, stream.layout, "old")
    stream.epoch(writer, 2)
    stream.epoch(writer, 4)
    stream.build(0, 2, "new")
    if back:
        publish_run(PIPELINE, stream.layout, "new")
        roll_back_interval(PIPELINE, stream.layout, VIEW.name, Interval(START, START + DAY), decision=BACK)
    cut(stream, {"master": before["master"]}, "gone")
    reads_on(stream, start(stream, boot=8, patch=monkeypatch), monkeypatch.setattr)
    is_right(stream)
    day = Interval(START, START + DAY)
    again = partial(roll_back_interval, PIPELINE, stream.layout, VIEW.name, day, to="new", decision=BACK)
    with pytest.raises(PublishRefused, match="up to epoch 2, which the log has since lost"):
        (again if back else partial(publish_run, PIPELINE, stream.layout, "new"))()
    is_right(stream)


def test_a_generation_that_has_seen_more_than_the_master_stops_a_start(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A master from a backup: what it would read again is in the generation already."""
    before, _ = ran(stream)
    stream.build(0, 2, "g")
    publish_run(PIPELINE, stream.layout, "g")
    cut(stream, {"master": before["master"]}, "gone")
    with pytest.raises(OutOfStep, match="served at epoch 2, but the master ends at -1"):
        start(stream, boot=8, patch=monkeypatch)


def test_a_ledger_from_a_backup_is_not_believed(
    stream: Stream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has rows of epochs that the master lost since: answers wait for a start, which takes them out."""
    ran(stream)
    cut(stream, {"master": versions(stream.layout)["master"] - 1}, "gone")
    copytree(root(stream.layout, "ledger"), tmp_path / "backup")
    reads_on(stream, start(stream, boot=8, patch=monkeypatch), monkeypatch.setattr)
    is_right(stream)
    rmtree(root(stream.layout, "ledger"))
    copytree(tmp_path / "backup", root(stream.layout, "ledger"))
    rebooted()
    with pytest.raises(OutOfStep, match="the ledger is not of the master's line"):
        stream.answered()
    start(stream, boot=8, patch=monkeypatch)
    is_right(stream)


FROM_BACKUP = (*TABLES, "manifest", "built")
BOOTS = {7: "same boot", 8: "other boot"}
FEW = [(("master", "ledger"), 8), (("slices",), 7)]
ALL = [
    pytest.param(
        back,
        boot,
        marks=[] if (back, boot) in FEW else pytest.mark.faults,
        id=f"{'-'.join(back)}-{BOOTS[boot]}",
    )
    for size in range(1, len(FROM_BACKUP) + 1)
    for back in combinations(FROM_BACKUP, size)
    for boot in BOOTS
]


def folders(stream: Stream, table: str) -> list[Path]:
    """Return the folders of a table, or of all that tells of what was built."""
    if table != "built":
        return [root(stream.layout, table)]
    return [
        stream.layout.table("builds"),
        stream.layout.table("certificates"),
        stream.layout.generations(VIEW),
    ]


@pytest.mark.parametrize(("back", "boot"), ALL)
def test_whatever_comes_back_from_a_backup_is_right_or_refused(
    back: tuple[str, ...], boot: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any of the tables older, the others as they were: slices were merged since, a run published, another built."""
    stream = Stream(tmp_path / "home", topic=[0, None, 0, 0, 1])
    writer = start(stream, boot=7, patch=monkeypatch)
    stream.epoch(writer, 2, edge=False)
    stream.build(0, 0, "f")
    ManifestTable.ensure(stream.layout)
    for folder in (each for table in FROM_BACKUP for each in folders(stream, table)):
        copytree(folder, tmp_path / "backup" / folder.relative_to(stream.home))
    stream.epoch(writer, 3)
    maintain_tables(PIPELINE, stream.layout)
    stream.build(1, 1, "g")
    publish_run(PIPELINE, stream.layout, "g")
    stream.epoch(writer, 4)
    stream.build(0, 2, "h")
    for folder in (each for table in back for each in folders(stream, table)):
        rmtree(folder)
        copytree(tmp_path / "backup" / folder.relative_to(stream.home), folder)
    stopped: list[str] = []
    with refusing(stopped):
        writer = start(stream, boot=boot, patch=monkeypatch)
        reads_on(stream, writer, monkeypatch.setattr)
        is_right(stream)
        assert not maintain_tables(PIPELINE, stream.layout).refused
    later: list[str] = []
    for run in ("g", "h"):
        with refusing(later):
            publish_run(PIPELINE, stream.layout, run)
    if not stopped:
        is_right(stream)
        return
    with refusing(later):
        assert max(stream.answered().values()) == 1
    assert all([*stopped, *later])
    accepted(stream, boot, monkeypatch)


@pytest.mark.parametrize("boot", BOOTS)
def test_slices_that_were_merged_beyond_the_end_alone_do_not_count(
    boot: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The records of all their epochs are read again, and counted twice: nothing of them reaches over the end."""
    stream = Stream(tmp_path / "home", topic=[0, 0, 0, 0])
    writer = start(stream, boot=7, patch=monkeypatch)
    stream.epoch(writer, 1)
    for name in ("master", "ledger"):
        copytree(root(stream.layout, name), tmp_path / "backup" / name)
    stream.epoch(writer, 2, edge=False)
    stream.epoch(writer, 3)
    stream.epoch(writer, 4, edge=False)
    assert maintain_tables(PIPELINE, stream.layout).merged == 1
    for name in ("master", "ledger"):
        rmtree(root(stream.layout, name))
        copytree(tmp_path / "backup" / name, root(stream.layout, name))
    writer = start(stream, boot=boot, patch=monkeypatch)
    assert Master.open(stream.layout).epoch == 0
    assert set(stream.answered()) == {0}
    reads_on(stream, writer, monkeypatch.setattr)
    is_right(stream)
    log = CommittedLog.pin(PIPELINE, stream.layout)
    assert recount_states(PIPELINE, VIEW, stream.layout, log).findings == ()
    assert not maintain_tables(PIPELINE, stream.layout).refused
    is_right(stream)


def require_told(stream: Stream) -> None:
    """Days that wait for a build say so, and of all others each record counts once that the answer says it counts."""
    found = read_merged_answer(PIPELINE, VIEW, stream.layout)
    counts = dict(zip(found.table["id"].to_pylist(), found.table["n"].to_pylist(), strict=True))
    manifest = ManifestTable.ensure(stream.layout).read()
    waiting = {day for _, day in manifest.floors if manifest.is_building(VIEW.id, day)}
    assert {day for day, each in found.intervals.items() if each.status is Status.BUILDING} == waiting
    assert not waiting or not found.final
    rows = Table.open(root(stream.layout, "master")).read(["_epoch", "_offset", "_event_time"]).to_pylist()
    days = ((PIPELINE.grid.of(row["_event_time"]).id, row) for row in rows)
    assert counts == {
        row["_offset"]: 1
        for day, row in days
        if day not in waiting
        and row["_epoch"] <= (found.intervals[day].complete_to if day in found.intervals else found.until)
    }


def test_a_quarantine_from_a_backup_takes_nothing_out_of_the_master(
    stream: Stream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is published of was on disk, refused records too: no power cut, and the right quarantine is right again."""
    writer = stream.start()
    stream.epoch(writer, 1)
    copytree(root(stream.layout, "quarantine"), tmp_path / "old")
    stream.epoch(writer, 2)
    stream.epoch(writer, 3)
    stream.build(0, 2, "g")
    publish_run(PIPELINE, stream.layout, "g")
    copytree(root(stream.layout, "quarantine"), tmp_path / "right")
    restored(stream, "quarantine", tmp_path / "old")
    with pytest.raises(OutOfStep, match="the quarantine ends at epoch -1, but the master relies on later"):
        start(stream, boot=8, patch=monkeypatch)
    assert list(find_contradictions(stream.layout, [VIEW.id]))
    restored(stream, "quarantine", tmp_path / "right")
    recovers(stream, monkeypatch)


def test_a_manifest_from_before_an_acceptance_is_not_believed(
    stream: Stream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It serves a generation of epochs that were read again under other numbers since."""
    writer = stream.start()
    stream.epoch(writer, 1)
    copytree(root(stream.layout, "master"), tmp_path / "master")
    stream.epoch(writer, 3)
    stream.build(0, 1, "g")
    publish_run(PIPELINE, stream.layout, "g")
    copytree(root(stream.layout, "manifest"), tmp_path / "manifest")
    restored(stream, "master", tmp_path / "master")
    accepted(stream, 7, monkeypatch)
    restored(stream, "manifest", tmp_path / "manifest")
    told = "generation g is served up to epoch 1, which the log"
    assert [why for why in find_contradictions(stream.layout, [VIEW.id]) if told in why]
    with pytest.raises(OutOfStep, match=told):
        stream.answered()
    with pytest.raises(OutOfStep, match=told):
        start(stream, boot=7, patch=monkeypatch)
    accepted(stream, 7, monkeypatch)


def test_a_generation_whose_table_came_back_without_it_is_told_of_and_withdrawn(
    stream: Stream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reads were refused for ever: every table was of one history, it was said, and no build would replace it."""
    writer = stream.start()
    stream.epoch(writer, 1)
    stream.build(0, 0, "f")
    copytree(stream.layout.generations(VIEW), tmp_path / "generations")
    stream.epoch(writer, 4)
    stream.build(0, 1, "g")
    publish_run(PIPELINE, stream.layout, "g")
    rmtree(stream.layout.generations(VIEW))
    copytree(tmp_path / "generations", stream.layout.generations(VIEW))
    rebooted()
    with pytest.raises(ReadUnstable, match="generations contain 0 of"):
        stream.answered()
    [why] = find_contradictions(stream.layout, [VIEW.id])
    assert why == f"generation g of {VIEW.id} 2024-01-01T00:00:00Z is served, and its table lacks rows of it"
    accepted(stream, 7, monkeypatch)


def test_slices_of_a_version_that_nobody_knows_any_more_keep_nobody_waiting(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The manifest came back from before their birth: no start brings them to its line, and builds waited for one."""
    ran(stream)
    copytree(root(stream.layout, "slices"), stream.layout.slices_of("forgotten/0123456789ab"))
    start(stream, boot=8, patch=monkeypatch)
    require_repaired(stream.layout)
    assert not maintain_tables(PIPELINE, stream.layout).refused


def test_an_acceptance_that_dies_is_done_again(
    stream: Stream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slices that have not been brought to the new line yet are not of a later one: no answer is taken away."""
    writer = stream.start()
    stream.epoch(writer, 1)
    copytree(root(stream.layout, "master"), tmp_path / "master")
    stream.epoch(writer, 3)
    stream.build(0, 1, "g")
    publish_run(PIPELINE, stream.layout, "g")
    restored(stream, "master", tmp_path / "master")
    yes = Acceptance("somebody", "it is gone")
    with monkeypatch.context() as patch:
        patch.setattr("seamline.lake.maintain.repair.trim_ledger", raising)
        with pytest.raises(Died):
            start(stream, boot=7, patch=monkeypatch, acceptance=yes)
    start(stream, boot=7, patch=monkeypatch, acceptance=yes)
    assert not ManifestTable.ensure(stream.layout).read().floors
    assert stream.answered() == {0: 1}


def test_a_person_s_repair_leaves_an_edge_to_build_at(stream: Stream, tmp_path: Path) -> None:
    """Where nothing more comes no epoch would, and what waits for a build would wait for ever."""
    writer = stream.start()
    stream.epoch(writer, 1)
    copytree(root(stream.layout, "master"), tmp_path / "master")
    stream.epoch(writer, 3)
    maintain_tables(PIPELINE, stream.layout)
    stream.build(0, 1, "g")
    publish_run(PIPELINE, stream.layout, "g")
    restored(stream, "master", tmp_path / "master")
    lines = repair_pipeline(PIPELINE, stream.layout, Acceptance("somebody", "it is gone"))
    assert lines[0].startswith(f"withdrawn: {VIEW.id} 2024-01-01")
    manifest, edge = ManifestTable.ensure(stream.layout).read(), Master.open(stream.layout).epoch
    assert edge > max(manifest.floors.values(), default=0)
    assert lines[-1] == f"shop: the tables are of one history, which ends at epoch {edge}."
    rebooted()
    assert not list(find_contradictions(stream.layout, [VIEW.id]))


def raising(*_: object, **__: object) -> None:
    """Die."""
    raise Died


def restored(stream: Stream, table: str, backup: Path) -> None:
    """Bring a table back from a backup."""
    rmtree(root(stream.layout, table))
    copytree(backup, root(stream.layout, table))
    rebooted()


def test_slices_of_a_later_line_are_not_believed_of_what_it_read_again(
    stream: Stream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They lost an epoch in a power cut, which a line read again; then the master of before comes back."""
    before, after = ran(stream)
    copytree(root(stream.layout, "master"), tmp_path / "backup")
    cut(stream, {**before, "quarantine": after["quarantine"]}, "gone")
    reads_on(stream, start(stream, boot=8, patch=monkeypatch), monkeypatch.setattr)
    is_right(stream)
    rmtree(root(stream.layout, "master"))
    copytree(tmp_path / "backup", root(stream.layout, "master"))
    rebooted()
    with pytest.raises(OutOfStep, match="of line 2, but the master of line 1"):
        start(stream, boot=8, patch=monkeypatch)
    accepted(stream, 8, monkeypatch)


def test_slices_of_a_version_that_the_manifest_has_forgotten_are_told_of(
    stream: Stream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The definition has it, so a start opens them: `seamline repair` said that nothing contradicts anything."""
    manifest = ManifestTable.ensure(stream.layout).table.root
    copytree(manifest, tmp_path / "manifest")
    before, after = ran(stream)
    copytree(root(stream.layout, "master"), tmp_path / "master")
    cut(stream, {**before, "quarantine": after["quarantine"]}, "gone")
    reads_on(stream, start(stream, boot=8, patch=monkeypatch), monkeypatch.setattr)
    restored(stream, "master", tmp_path / "master")
    restored(stream, "manifest", tmp_path / "manifest")
    told = f"{VIEW.id} is of line 2, but the master of line 1"
    assert told in [*find_contradictions(stream.layout, [VIEW.id])]
    with pytest.raises(OutOfStep, match="is of line 2, but the master of line 1"):
        start(stream, boot=8, patch=monkeypatch)
    accepted(stream, 8, monkeypatch)


def accepted(stream: Stream, boot: int, patch: pytest.MonkeyPatch) -> None:
    """A person lets the master stand: nothing is counted twice meanwhile, and once it is built nothing is left out."""
    assert list(find_contradictions(stream.layout, [VIEW.id]))
    start(stream, boot=boot, patch=patch, acceptance=Acceptance("somebody", "the backup is what there is"))
    assert not list(find_contradictions(stream.layout, [VIEW.id]))
    require_told(stream)
    writer = start(stream, boot=boot, patch=patch)
    reads_on(stream, writer, patch.setattr)
    require_told(stream)
    assert not maintain_tables(PIPELINE, stream.layout).refused
    if Master.open(stream.layout).epoch < writer.number:
        stream.epoch(writer)
    edge = Master.open(stream.layout).epoch
    for day in (0, 1):
        stream.build(day, edge, f"again-{day}")
        publish_run(PIPELINE, stream.layout, f"again-{day}")
    is_right(stream)
    assert not maintain_tables(PIPELINE, stream.layout).refused
    is_right(stream)


@contextmanager
def refusing(told: list[str]) -> Iterator[None]:
    """Let what is done be refused with a sentence, which is kept."""
    try:
        yield
    except SeamlineError as error:
        told.append(error.hint)


@pytest.mark.parametrize("more", [1, 2])
def test_a_start_that_takes_epochs_out_of_the_master_begins_a_line(
    stream: Stream, more: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine was never off: those who have read what the master had read on, and answer what it has."""
    stream.produce(1)
    writer = start(stream, boot=7, patch=monkeypatch)
    stream.epoch(writer, 1)
    for table in ("quarantine", "ledger"):
        copytree(root(stream.layout, table), tmp_path / table)
    stream.epoch(writer, 2)
    stream.epoch(writer, 3)
    assert stream.answered() == {0: 1, 2: 1}
    for table in ("quarantine", "ledger"):
        rmtree(root(stream.layout, table))
        copytree(tmp_path / table, root(stream.layout, table))
    writer = stream.start()
    assert (stream.position(writer), Master.open(stream.layout).epoch) == (1, 0)
    for end in range(len(stream.topic) - more + 1, len(stream.topic) + 1):
        stream.epoch(writer, end)
    is_right(stream)
    assert Master.open(stream.layout).missing(0)[0].number > 1_000_000
