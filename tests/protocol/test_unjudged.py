"""Judging again beside what the log, or its quarantine, has lost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from shutil import copytree, rmtree
from unittest.mock import patch

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from tests.protocol.powerless import HOW, TABLES, cut, is_right, lose, reads_on, start, versions
from tests.protocol.shipped import DAY, PIPELINE, START, Stream

from seamline.lake.log.master import Master
from seamline.lake.log.record_files import Sink, fill_missing_columns
from seamline.lake.maintain import reprocessing_attempts
from seamline.lake.maintain.upkeep import maintain_tables
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.table_cache import Files
from seamline.lake.tables.reprocessed import ATTEMPT, Reprocessed, rows_schema
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.definition.sources import Rule
from seamline.model.errors import Conflict, OutOfStep, ProtocolError
from seamline.model.protocol.epoch import Epoch
from seamline.model.time.intervals import Interval
from seamline.plan.batch.reprocessing_plan import Verdict
from seamline.plan.maintain.repair_steps import Acceptance
from seamline.spark.build import reprocessing
from seamline.spark.build.fast_path import list_touched_files
from seamline.spark.build.reprocessing_task import ReprocessedRows

EDITED = compile_pipeline(replace(PIPELINE.definition, rules=(Rule("positive", "id >= 0"),)))
SPAN = Interval(START, START + DAY)


class Attempt:
    """What a build under the edited definition writes of some epochs, up to its verdicts."""

    def __init__(self, stream: Stream, name: str, *epochs: int) -> None:
        self.rejudged = Reprocessed(EDITED, stream.layout)
        root = self.rejudged.begin(name, epochs)
        rows = Master.open(stream.layout).table.read()
        rows = rows.filter(pc.is_in(rows["_epoch"], pa.array(epochs, pa.int64())))
        sink = Sink(root, f"{ATTEMPT}={name}/0.parquet", rows_schema(EDITED), partition={ATTEMPT: name})
        sink.write(fill_missing_columns(rows, sink.schema))
        self.files = sink.close()
        counts = {number: pc.sum(pc.equal(rows["_epoch"], number)).as_py() for number in epochs}
        interval = EDITED.grid.of(START).id
        self.verdicts = [Verdict(number, name, {interval: rows}) for number, rows in counts.items()]

    def commit(self) -> None:
        """Let it count."""
        self.rejudged.commit(self.files, self.verdicts)


def built_of(stream: Stream) -> int:
    """Count the rows of which a build of all that is held is made."""
    master, end = Master.open(stream.layout), Master.open(stream.layout).epoch
    found = [Files.of(master.table), Reprocessed(EDITED, stream.layout).files()]
    return sum(each.rows for files in found for each in list_touched_files(EDITED, files, [SPAN], end))


@pytest.fixture
def stream(tmp_path: Path) -> Stream:
    """Three records."""
    return Stream(tmp_path / "home", topic=[0, 0, 0])


def test_records_judged_again_of_lost_epochs_do_not_count(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are read again under another number, and a build took them from both."""
    writer = start(stream, boot=7, patch=monkeypatch)
    stream.epoch(writer, 1)
    before = versions(stream.layout)
    stream.epoch(writer, 2)
    Attempt(stream, "first", 0).commit()
    Attempt(stream, "second", 1).commit()
    cut(stream, {name: before[name] for name in ("master", "ledger", "slices")}, "gone")
    writer = start(stream, boot=7, patch=monkeypatch)
    reads_on(stream, writer, monkeypatch.setattr)
    is_right(stream)
    assert Master.open(stream.layout).epoch == 2
    assert Reprocessed(EDITED, stream.layout).verdicts().keys() == {0}
    # The rows of the master are of another record version: a task leaves them out.
    assert built_of(stream) == 3 + 1
    monkeypatch.setattr(reprocessing_attempts, "PINNED_HOURS", 0)
    maintain_tables(PIPELINE, stream.layout)
    left = Reprocessed(EDITED, stream.layout).rows()
    assert left.read([ATTEMPT])[ATTEMPT].to_pylist() == ["first"]
    assert not (left.root / f"{ATTEMPT}=second").exists()


def test_what_an_attempt_has_judged_beside_lost_epochs_is_judged_again(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files do not tell its epochs apart; another attempt at those that are held is not refused."""
    writer = start(stream, boot=7, patch=monkeypatch)
    stream.epoch(writer, 1)
    before = versions(stream.layout)
    stream.epoch(writer, 2)
    Attempt(stream, "both", 0, 1).commit()
    cut(stream, {name: before[name] for name in ("master", "ledger")}, "gone")
    reads_on(stream, start(stream, boot=7, patch=monkeypatch), monkeypatch.setattr)
    assert not Reprocessed(EDITED, stream.layout).verdicts()
    Attempt(stream, "again", 0).commit()
    assert Reprocessed(EDITED, stream.layout).verdicts().keys() == {0}
    assert built_of(stream) == 3 + 1


def test_an_attempt_that_wakes_when_its_epochs_are_lost_is_told(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No start would look at its verdicts any more."""
    writer = start(stream, boot=7, patch=monkeypatch)
    stream.epoch(writer, 1)
    before = versions(stream.layout)
    stream.epoch(writer, 2)
    asleep = Attempt(stream, "asleep", 1)
    cut(stream, {name: before[name] for name in ("master", "ledger")}, "gone")
    reads_on(stream, start(stream, boot=7, patch=monkeypatch), monkeypatch.setattr)
    with pytest.raises(Conflict, match="Epoch 1 was lost in the meantime"):
        asleep.commit()


@pytest.mark.parametrize("how", [*HOW, "all of them"])
def test_verdicts_whose_rows_are_lost_do_not_count(
    how: str, stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody syncs either: a build lacked rows that were counted, and its certificate was red for ever."""
    writer = start(stream, boot=7, patch=monkeypatch)
    stream.epoch(writer, 1)
    stream.epoch(writer, 2)
    Attempt(stream, "kept", 0).commit()
    held = Reprocessed(EDITED, stream.layout)
    rows, kept = held.rows().root, held.rows().version
    Attempt(stream, "lost", 1).commit()
    if how == "all of them":
        rmtree(rows)
    else:
        lose(rows, kept, how)
    writer = start(stream, boot=8, patch=monkeypatch)
    reads_on(stream, writer, monkeypatch.setattr)
    left = {0: "kept"} if how != "all of them" else {}
    assert {number: each.attempt for number, each in held.verdicts().items()} == left
    for number in {0, 1} - left.keys():
        Attempt(stream, f"again-{number}", number).commit()
    assert built_of(stream) == 3 + 2


def test_verdicts_that_count_no_record_need_no_rows(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    """All records of their epochs were let go: a build would validate nothing again after each start."""
    stream.epoch(start(stream, boot=7, patch=monkeypatch), 1)
    held = Reprocessed(EDITED, stream.layout)
    held.commit([], [Verdict(0, "of none")])
    start(stream, boot=8, patch=monkeypatch)
    assert held.verdicts().keys() == {0}


def test_a_file_of_verdicts_that_others_have_joined_is_read(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its statistics do not name every attempt; what it says beside the lost one is validated again."""
    writer = start(stream, boot=7, patch=monkeypatch)
    stream.epoch(writer, 1)
    stream.epoch(writer, 2)
    Attempt(stream, "a", 0).commit()
    held = Reprocessed(EDITED, stream.layout)
    rows, kept = held.rows().root, held.rows().version
    Attempt(stream, "b", 1).commit()
    DeltaTable(str(stream.layout.records(held.hash) / "verdicts")).optimize.compact()
    start(stream, boot=8, patch=monkeypatch)
    assert held.verdicts().keys() == {0, 1}
    lose(rows, kept, "gone")
    start(stream, boot=9, patch=monkeypatch)
    assert not held.verdicts()


def read_again(stream: Stream, epoch: Epoch, *, short: int = 0) -> None:
    """Judge an epoch again without Spark: all that master and quarantine have of it, but for so many rows."""
    found = ReprocessedRows()
    for name, counts in (("master", found.accepted), ("quarantine", found.refused)):
        numbers = Table.open(stream.layout.table(name)).read(["_epoch"])["_epoch"].to_pylist()
        counts[epoch.number]["2024-01-01T00:00:00Z"] = numbers.count(epoch.number)
    found.accepted[epoch.number].subtract({"2024-01-01T00:00:00Z": short})
    with (
        patch.object(reprocessing, "raw_records", lambda *_: None),
        patch.object(reprocessing, "run_past_deadly_records", lambda *_: [found.to_json().encode()]),
    ):
        rules = reprocessing.RuleHistory(None, EDITED, stream.layout)  # type: ignore[arg-type]
        reprocessing.reprocess_block(None, EDITED, stream.layout, rules, [epoch])  # type: ignore[arg-type]


@pytest.mark.parametrize("how", ["a backup", "another line"])
def test_refused_records_that_a_person_let_go_are_not_missed(
    how: str, stream: Stream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every build ended with it once the record version was edited, and nothing could bring them back."""
    stream.topic[1] = None
    writer = start(stream, boot=7, patch=monkeypatch)
    stream.epoch(writer, 1)
    before = versions(stream.layout)
    stream.epoch(writer)
    start(stream, boot=8, patch=monkeypatch)
    [_, epoch] = Master.open(stream.layout).missing(-1)
    assert (epoch.rows, sum(epoch.refused.values())) == (1, 1)
    if how == "a backup":
        cut(stream, {"quarantine": before["quarantine"]}, "gone")
    else:
        copytree(stream.layout.table("master"), tmp_path / "master")
        cut(stream, {name: before[name] for name in TABLES}, "gone")
        reads_on(stream, start(stream, boot=9, patch=monkeypatch), monkeypatch.setattr)
        start(stream, boot=10, patch=monkeypatch)
        rmtree(stream.layout.table("master"))
        copytree(tmp_path / "master", stream.layout.table("master"))
    with pytest.raises(OutOfStep):
        start(stream, boot=10, patch=monkeypatch)
    with pytest.raises(ProtocolError, match="read 2 records, but master and quarantine have 1"):
        read_again(stream, epoch)
    start(stream, boot=10, patch=monkeypatch, acceptance=Acceptance("somebody", "they are gone"))
    with pytest.raises(ProtocolError, match="read 2 records, but master and quarantine have 0"):
        read_again(stream, epoch, short=1)
    read_again(stream, epoch)
    assert Reprocessed(EDITED, stream.layout).verdicts()[epoch.number].accepted == {"2024-01-01T00:00:00Z": 1}
