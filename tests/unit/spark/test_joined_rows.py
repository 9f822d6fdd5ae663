"""The indexes of joins between epochs: one that does not stand at the last committed epoch is made again."""

from __future__ import annotations

import errno
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from tests.unit.model.test_joins import ADS

from seamline.kernel.joined_rows import name_side
from seamline.kernel.kernel_result import KernelResult
from seamline.lake.engine import joined_index, near_rows
from seamline.lake.engine.joined_index import JoinedIndex, side_schema
from seamline.lake.engine.near_rows import find_older_spans
from seamline.lake.joins.log_stamps import LogStamps
from seamline.lake.storage.layout import Layout
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.errors import NotRestatable, ProtocolError, StoreUnavailable
from seamline.model.protocol.epoch import Epoch
from seamline.spark.stream.derived import joined_rows
from seamline.spark.stream.derived.joined_rows import JoinedRows
from seamline.spark.stream.derived.restated_log import RestatedLog

PIPELINE = compile_pipeline(ADS)
[VIEW] = PIPELINE.views
AT = datetime(2026, 1, 5, 12, tzinfo=UTC)


@pytest.fixture
def joined(tmp_path: Path) -> JoinedRows:
    """The indexes of a pipeline whose log is empty, in a folder whose name has a quote."""
    writer = writer_of(tmp_path, {})
    return JoinedRows(writer, tmp_path / "ada's" / "joined", RestatedLog(writer))


def writer_of(home: Path, held: dict[int, Epoch], table: str = "a table") -> Any:
    """Return what an index asks of a writer whose ledger is ``held``; no master has files."""

    def read_after(above: int, until: int) -> list[Epoch]:
        return [each for number, each in held.items() if above < number <= until]

    return SimpleNamespace(
        pipeline=PIPELINE,
        layout=Layout(home / "warehouse", "ads"),
        master=SimpleNamespace(epoch=max(held, default=-1), table=SimpleNamespace(id=table)),
        ledger=SimpleNamespace(read_after=read_after),
        held=held,
        indexed={},
        restated=0,
    )


def result_of(number: int, lefts: Iterable[str], rights: Iterable[str]) -> KernelResult:
    """Return an epoch's rows by the ads that they name."""
    join = VIEW.join
    assert join
    made = KernelResult()
    for at_side, (side, ads) in enumerate(((join.left, lefts), (join.right, rights))):
        rows = [
            {
                "_topic_id": side.source,
                "_topic": side.source,
                "_partition": 0,
                "_offset": number * 10 + at,
                "_epoch": number,
                "_event_time": AT,
                "ad": ad,
                "site": "x",
            }
            for at, ad in enumerate(ads)
        ]
        schema = side_schema(side)
        kept = [{each: row[each] for each in schema.names} for row in rows]
        made.joined[name_side(join, at_side)] = [pa.Table.from_pylist(kept, schema)]
    return made


def derive(joined: JoinedRows, number: int, lefts: str = "", rights: str = "") -> int | None:
    """Count the pairs that an epoch adds; None if its view failed."""
    result = result_of(number, lefts, rights)
    joined.derive(number, result, {VIEW.id}, None)
    if result.failed:
        return None
    return sum(sum(each["rows"].to_pylist()) for each in result.states[VIEW.id])


def commit(joined: JoinedRows, number: int, rows: int = 1) -> None:
    """Commit an epoch."""
    before = joined.writer.master.epoch
    accepted = {"2026-01-05T00:00:00Z": rows} if rows else {}
    told = Epoch(number, 1, AT, PIPELINE.record_version, accepted=accepted, before=before)
    joined.writer.master.epoch = number  # type: ignore[misc]
    joined.writer.held[number] = told  # type: ignore[attr-defined]
    joined.commit(told)


def test_an_epoch_is_joined_with_those_before_it(joined: JoinedRows) -> None:
    """Whatever epochs without rows come between."""
    assert derive(joined, 0, "ab") == 0
    commit(joined, 0)
    commit(joined, 1, rows=0)
    assert derive(joined, 2, rights="aac") == 2
    commit(joined, 2)
    assert joined.writer.indexed == {"paid": 5}


def next_driver(joined: JoinedRows, **changed: Any) -> JoinedRows:
    """Start the driver that follows one that has died, perhaps with another log."""
    home, held = joined.files.folder.parent.parent, dict(joined.writer.held)  # type: ignore[attr-defined]
    joined.forget()
    writer = writer_of(home, held, **{name: changed[name] for name in changed if name == "table"})
    writer.restated = changed.get("restated", 0)
    return JoinedRows(writer, joined.files.folder, RestatedLog(writer))


def lived(joined: JoinedRows) -> JoinedRows:
    """Let a driver take in rows, of which the log of this test has no files."""
    derive(joined, 0, "ab")
    commit(joined, 0)
    derive(joined, 1, "c", "c")
    commit(joined, 1)
    return joined


def test_the_next_driver_goes_on_with_what_is_there(joined: JoinedRows) -> None:
    """Only rows of later epochs are read again: here there are none."""
    other = next_driver(lived(joined))
    assert derive(other, 2, rights="abc") == 3
    assert other.kept and other.writer.indexed == {"paid": 4}


def test_an_index_of_another_log_is_not_believed(joined: JoinedRows) -> None:
    """A master of another id; one that has another epoch of that number, or none; rows that were restated since."""
    other = next_driver(lived(joined), table="another")
    assert derive(other, 2, rights="abc") == 0
    other = next_driver(lived(next_driver(other)))
    other.writer.held[1] = replace(other.writer.held[1], token=7)  # type: ignore[attr-defined]
    assert derive(other, 2, rights="abc") == 0
    other = next_driver(lived(next_driver(other)), restated=1)
    other.source.find_judge = lambda: None  # type: ignore[method-assign]
    assert derive(other, 2, rights="abc") == 0


def test_decisions_that_are_lost_are_missed(joined: JoinedRows) -> None:
    """The control table is of a backup from before them: rows would be made as nobody has decided."""
    joined.writer.restated = 2
    with pytest.raises(ProtocolError, match="Epochs name 2 restatements, and the control table of ads has 0"):
        joined.source.find_judge()


def test_a_row_that_cannot_be_restated_leaves_its_view_behind(
    joined: JoinedRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No build has met it: the stream would have ended with each start, and all other views with it."""

    def refused(*_: object) -> None:
        raise NotRestatable("shown/0@3 of epoch 1 is refused", hint="correct the table")

    monkeypatch.setattr(joined_rows, "fill_index", refused)
    result = result_of(0, "a", "")
    joined.derive(0, result, {VIEW.id}, None)
    assert result.failed == {VIEW.id: "shown/0@3 of epoch 1 is refused"}
    assert not joined.kept
    monkeypatch.undo()
    assert derive(joined, 0, "a", "a") == 1


def test_an_index_that_is_no_database_is_made_again(joined: JoinedRows) -> None:
    """The file is cut off, or says nothing of itself."""
    lived(joined)
    joined.forget()
    [file] = joined.files.folder.glob("*/rows.duckdb")
    file.write_bytes(file.read_bytes()[:5000])
    other = next_driver(joined)
    assert derive(other, 2, rights="abc") == 0
    other.kept[next(iter(other.joins))].index.con.execute("UPDATE kept.stamped SET stamp = '{}'")
    other = next_driver(other)
    assert derive(other, 2, rights="abc") == 0


def test_an_index_with_rows_that_cannot_be_read_is_made_again(joined: JoinedRows) -> None:
    """Its first blocks say that it fits, and a view would be behind after each epoch, for ever."""
    lived(joined)
    joined.forget()
    [file] = joined.files.folder.glob("*/rows.duckdb")
    content = bytearray(file.read_bytes())
    content[300_000] ^= 0xFF
    file.write_bytes(content)
    other = next_driver(joined)
    assert derive(other, 2, rights="abc") is None
    other.derive(3, KernelResult(), (), None)
    assert derive(other, 4, rights="abc") is None, "the disk may have been full"
    assert derive(other, 5, rights="abc") == 0


def test_an_index_is_not_held_by_who_could_not_read_the_ledger(
    joined: JoinedRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store was away for a moment: DuckDB lets a process open a file once, and the driver keeps the error."""
    other = next_driver(lived(joined))

    def away(*_: object) -> bool:
        raise StoreUnavailable("The store is away.", hint="wait")

    monkeypatch.setattr(LogStamps, "is_of_log", away)
    with pytest.raises(StoreUnavailable) as held:
        derive(other, 2, rights="abc")
    monkeypatch.undo()
    assert held.value.__traceback__
    assert derive(other, 2, rights="abc") == 3


def test_a_folder_that_cannot_be_made_leaves_the_view_behind(
    joined: JoinedRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stream goes on with all other views."""

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "mkdir", full)
    assert derive(joined, 0, "a") is None
    monkeypatch.undo()
    assert derive(joined, 0, "a", "a") == 1


def test_files_of_joins_that_are_gone_are_deleted(joined: JoinedRows) -> None:
    """The definition has changed."""
    lived(joined)
    old = joined.files.folder / "paid-of-before"
    old.mkdir()
    other = next_driver(joined)
    assert not old.exists()
    assert list(other.files.folder.iterdir())


def test_rows_of_an_attempt_that_was_given_up_are_not_known(joined: JoinedRows) -> None:
    """The broker did not answer once they were read; then an edge was declared."""
    assert derive(joined, 0, "a") == 0
    commit(joined, 0)
    derive(joined, 1, "a")
    commit(joined, 2, rows=0)
    assert not joined.kept
    assert derive(joined, 3, rights="a") == 1, "that of epoch 0, which the file has"


@pytest.mark.parametrize(("missed", "rows"), [(0, 1), (1, 0)])
def test_an_index_that_has_missed_rows_is_not_believed(joined: JoinedRows, missed: int, rows: int) -> None:
    """Those of the epoch that is committed, or of one that was committed without its knowing."""
    derive(joined, 0, "a")
    commit(joined, 0)
    joined.writer.master.epoch += missed  # type: ignore[misc]
    commit(joined, 2, rows)
    assert not joined.kept


def test_an_index_that_cannot_take_rows_in_is_made_again(
    joined: JoinedRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The epoch is committed, and no disk that is full makes it fail."""

    def full(*_: object) -> None:
        raise duckdb.IOException("No space left on device")

    derive(joined, 0, "a")
    monkeypatch.setattr(JoinedIndex, "fill", full)
    commit(joined, 0)
    assert not joined.kept
    assert derive(joined, 1, "a") is None, "its view is behind"
    monkeypatch.undo()
    commit(joined, 1)
    assert derive(joined, 2, "a") == 0


def test_more_pairs_than_the_driver_joins_leave_their_view_behind(
    joined: JoinedRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key that most of them have is told; what comes after is joined with all rows."""
    monkeypatch.setattr(joined_index, "MOST_PAIRS", 5)
    assert derive(joined, 0, "aab") == 0
    commit(joined, 0)
    result = result_of(1, "", "aaab")
    joined.derive(1, result, {VIEW.id}, None)
    assert "more than 5 pairs" in result.failed[VIEW.id]
    assert "ad = a" in result.failed[VIEW.id]
    commit(joined, 1)
    assert derive(joined, 2, "b") == 1, "the right row of the epoch before is known"


def test_rows_far_behind_cost_reads_of_their_own_times() -> None:
    """One late by days beside others does not have the days between read."""
    assert VIEW.join
    day = timedelta(days=1) // timedelta(microseconds=1)
    now = int(AT.timestamp() * 1_000_000)
    times = [now - 5 * day, now - 2 * day, now - 2 * day + 1, now]
    rights = pa.table({"_event_time": pa.array(times, pa.timestamp("us", "UTC"))})
    nothing = rights.slice(0, 0)
    spans = find_older_spans(VIEW.join, (nothing, rights), now - day)
    assert [(first < times[0] < end, first < times[1] < end) for first, end in spans] == [
        (True, False),
        (False, True),
    ]
    assert sum(end - first for first, end in spans) < day
    many = pa.table({"_event_time": pa.array(range(0, 100 * day, day), pa.timestamp("us", "UTC"))})
    spans = find_older_spans(VIEW.join, (nothing, many), 200 * day)
    assert len(spans) <= near_rows.MOST_SPANS
    assert all(any(first <= at < end for first, end in spans) for at in range(0, 100 * day, day))


def test_a_view_that_is_behind_does_not_fail_again_with_every_epoch(
    joined: JoinedRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told once why; what it waits for is said by its catch-up."""
    monkeypatch.setattr(RestatedLog, "find_doubt", lambda _: "epochs 0..3 are of another record version")
    result = KernelResult()
    joined.derive(0, result, {VIEW.id}, None)
    assert result.failed == {VIEW.id: "epochs 0..3 are of another record version"}
    result = KernelResult()
    joined.derive(1, result, (), None)
    assert not result.failed
