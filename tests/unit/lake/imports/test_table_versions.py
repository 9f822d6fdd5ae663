"""What comes next of a Delta table that others write, wherever a reader has stopped and whatever was done to it."""

from __future__ import annotations

import random
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from seamline import Batch, Pipeline, Tumbling, View, count
from seamline.kernel.epoch_kernel import open_worker_duckdb
from seamline.lake.imports.history_records import read_history_records
from seamline.lake.imports.import_options import ImportOptions
from seamline.lake.imports.table_sources import TableSources
from seamline.lake.imports.table_versions import LONG, TableVersions
from seamline.lake.storage.layout import Layout
from seamline.model.definition.sources import DeltaSource
from seamline.model.errors import BadRange, NotFound, StoreUnavailable, TopicRecreated
from seamline.model.protocol.imported.table_rows import TableRow, find_row
from seamline.model.protocol.offsets import Lane, OffsetRange
from seamline.plan.stream.import_plan import find_file_rows
from seamline.supervisor.observe import Observer
from seamline.supervisor.sources.source_ends import ask_source_ends

DAY = datetime(2026, 1, 1, tzinfo=UTC)


def write(place: Path, *ids: int, **more: object) -> None:
    """Append rows, each an hour after the one before."""
    at = pa.array([DAY + timedelta(hours=n) for n in ids], pa.timestamp("us", "UTC"))
    write_deltalake(place, pa.table({"n": [*ids], "at": at}), mode="append", **more)  # type: ignore[call-overload]


class Reader:
    """Reads a table as a stream does: from the offset where it stopped, and no further than the next version's end."""

    def __init__(self, place: Path) -> None:
        self.place, self.position, self.ids = place, None, list[int]()
        self.read: list[tuple[int, int]] = []
        self.open()

    def open(self) -> None:
        """Look at the table with no memory of it, as after a death of the driver."""
        source = DeltaSource(str(self.place), "n BIGINT, at TIMESTAMP", "at")
        options = ImportOptions(source.topics[0], event_time="at")
        self.versions = TableVersions(source, options, self.place.parent / "staged")

    def step(self, most: int) -> str:
        """Read so many rows at most; return why nothing can be read, empty otherwise."""
        news = self.versions.look(self.position)
        if news.lost:
            return news.lost
        if news.plan:
            plan, options = news.plan, self.versions.options
            start = max(self.position or 0, plan.files[0].start)
            end = min(start + most, plan.rows)
            runs = find_file_rows(plan.files, start, end)
            if not all(Path(each.file.path).exists() for each in runs):
                self.versions.plan_version.cache_clear()
                return self.step(most)
            con = open_worker_duckdb()
            made = [each for run in runs for each in read_history_records(con, run, options, plan.at)]
            rows = pa.Table.from_batches(made).to_pylist()
            assert [row["offset"] for row in rows] == [*range(start, end)]
            to = news.end if end == plan.rows else end
            part = OffsetRange(self.versions.lane, self.position or start, to)
            assert (len(part), part.rows) == (len(rows), (start, end))
            self.ids += [int(row["value"].decode().split('"n":')[1].split(",")[0]) for row in rows]
            self.position = to
        return ""


@pytest.mark.parametrize("seed", range(6))
def test_each_appended_row_is_read_once_wherever_the_reader_dies(tmp_path: Path, seed: int) -> None:
    """Appends, compactions and checkpoints, in pieces of any size."""
    dice, place, sent = random.Random(seed), tmp_path / "table", 0
    write(place, *range(5))
    sent = 5
    reader = Reader(place)
    for _ in range(30):
        match dice.randrange(6):
            case 0 | 1:
                more = dice.randrange(1, 9)
                write(place, *range(sent, sent + more))
                sent += more
            case 2:
                DeltaTable(place).optimize.compact()
            case 3:
                DeltaTable(place).create_checkpoint()
            case 4:
                reader.open()
            case _:
                pass
        assert reader.step(dice.randrange(1, 7)) == ""
    for _ in range(40):
        assert reader.step(100) == ""
    assert reader.step(100) == ""
    assert reader.ids == [*range(sent)], "in the order in which they were written"
    assert reader.versions.look(reader.position).end == reader.position


def test_what_cannot_be_read_is_passed_over_by_whom_asks_for_it(tmp_path: Path) -> None:
    """A version that rewrites rows, and one that was vacuumed; the first offset that is there lies behind each."""
    place = tmp_path / "table"
    write(place, 1, 2)
    reader = Reader(place)
    assert reader.step(10) == ""
    DeltaTable(place).delete("n = 1")
    write(place, 3)
    assert "Version 1 of" in reader.step(10)
    reader.position = reader.versions.look(reader.position).beginning
    assert find_row(reader.position) == TableRow(2, 0)
    write(place, 4)
    table = DeltaTable(place)
    table.optimize.compact()
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    assert "is gone" in reader.step(10)
    reader.position = reader.versions.look(reader.position).beginning
    assert find_row(reader.position) == TableRow(4, 0), "two versions are one hole"
    write(place, 5)
    assert reader.step(10) == ""
    assert reader.ids == [1, 2, 5]


def test_a_log_that_was_cleaned_before_it_was_read_is_said(tmp_path: Path) -> None:
    """Nobody knows what the version brought."""
    place = tmp_path / "table"
    write(place, 1)
    reader = Reader(place)
    assert reader.step(10) == ""
    write(place, 2)
    write(place, 3)
    DeltaTable(place).create_checkpoint()
    write(place, 4)
    for version in range(3):
        (place / "_delta_log" / f"{version:020}.json").unlink()
    reader.open()
    assert "no longer has version 1" in reader.step(10)
    reader.position = reader.versions.look(reader.position).beginning
    assert find_row(reader.position) == TableRow(3, 0)
    assert reader.step(10) == ""
    assert reader.ids == [1, 4]


def test_what_was_read_need_not_be_there_any_more(tmp_path: Path) -> None:
    """Nor the entry of its version, nor its files: what comes next is read."""
    place = tmp_path / "table"
    write(place, 1)
    reader = Reader(place)
    assert reader.step(10) == ""
    table = DeltaTable(place)
    write(place, 2)
    assert reader.step(10) == ""
    table = DeltaTable(place)
    table.optimize.compact()
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    table.create_checkpoint()
    for version in range(2):
        (place / "_delta_log" / f"{version:020}.json").unlink()
    reader.open()
    assert reader.step(10) == ""
    write(place, 3)
    assert reader.step(10) == ""
    assert reader.ids == [1, 2, 3]


def test_a_reader_that_has_not_looked_for_long_asks_for_the_newest_version(tmp_path: Path) -> None:
    """The entry of the version after its own may be cleaned up by then: it is not the end of the table."""
    place = tmp_path / "table"
    write(place, 1)
    reader = Reader(place)
    assert reader.step(10) == ""
    for n in (2, 3):
        write(place, n)
    DeltaTable(place).create_checkpoint()
    for version in range(2):
        (place / "_delta_log" / f"{version:020}.json").unlink()
    reader.versions.looked -= LONG
    assert "no longer has version 1" in reader.step(10)


def test_rows_have_the_time_of_their_version_where_no_column_says_one(tmp_path: Path) -> None:
    """It is the same whenever they are read."""
    place = tmp_path / "table"
    write(place, 1)
    source = DeltaSource(str(place), "n BIGINT", "_kafka_timestamp")
    times = []
    for _ in range(2):
        versions = TableVersions(source, ImportOptions(source.topics[0]), tmp_path / "staged")
        news = versions.look(None)
        assert news.plan
        [run] = find_file_rows(news.plan.files, news.beginning, news.end)
        [batch] = read_history_records(open_worker_duckdb(), run, versions.options, news.plan.at)
        times += batch["timestamp"].to_pylist()
    assert times[0] == times[1]
    assert abs(times[0] - datetime.now(UTC)) < timedelta(hours=1)


def test_a_table_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="There is no Delta table at"):
        TableVersions(DeltaSource(str(tmp_path / "no"), "n INT", "at"), ImportOptions("delta:no"), tmp_path)


def test_offsets_tell_version_and_row() -> None:
    """Between two versions are offsets of no row, which nobody counts."""
    for place in (TableRow(3, 7), TableRow(3, 7, whole=True), TableRow(0, 9, done=True)):
        assert find_row(place.offset) == place
    lane, end = Lane("table:one", 0), TableRow(2, 5, whole=True, done=True).offset
    assert len(OffsetRange(lane, TableRow(2, 0, whole=True).offset, end)) == 5
    assert len(OffsetRange(lane, end, TableRow(4, 6).offset)) == 6
    assert len(OffsetRange(lane, TableRow(4, 2).offset, TableRow(4, 6, done=True).offset)) == 4
    assert OffsetRange(lane, end, TableRow(4, 6).offset).rows == (
        TableRow(4, 0).offset,
        TableRow(4, 6).offset,
    )
    assert len(OffsetRange(Lane("topic", 0), end, end + 9)) == 9


def test_versions_without_rows_are_looked_at_once(tmp_path: Path) -> None:
    """Their entries may be cleaned up then: nothing was lost with them."""
    place = tmp_path / "table"
    write(place, 1)
    reader = Reader(place)
    assert reader.step(10) == ""
    for _ in range(4):
        DeltaTable(place).alter.set_table_properties({"delta.logRetentionDuration": "interval 1 days"})
    assert reader.versions.look(reader.position).passed == 4
    DeltaTable(place).create_checkpoint()
    for version in range(4):
        (place / "_delta_log" / f"{version:020}.json").unlink()
    write(place, 2)
    assert reader.step(10) == ""
    assert reader.ids == [1, 2]


def test_an_entry_that_is_still_written_is_waited_for(tmp_path: Path) -> None:
    """Copies of a log are not always whole when they are seen."""
    place = tmp_path / "table"
    write(place, 1)
    reader = Reader(place)
    assert reader.step(10) == ""
    write(place, 2)
    entry = place / "_delta_log" / f"{1:020}.json"
    whole = entry.read_text()
    for torn in ("", whole[:40]):
        entry.write_text(torn)
        with pytest.raises(StoreUnavailable):
            reader.step(10)
    entry.write_text(whole)
    assert reader.step(10) == ""
    assert reader.ids == [1, 2]


def test_another_table_at_the_place_is_not_read_on(tmp_path: Path) -> None:
    """Its versions have the numbers of the old one's, and are none of them."""
    place = tmp_path / "table"
    write(place, 1)
    reader = Reader(place)
    assert reader.step(10) == ""
    shutil.rmtree(place)
    write(place, 2)
    write(place, 3)
    with pytest.raises(TopicRecreated, match="and now has"):
        reader.step(10)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({"columns": {"n": "m"}}, "has no column 'm', which columns= takes 'n' from"),
        ({"columns": {"n": "k"}}, "has a column 'n', and columns= takes 'n' from 'k'"),
        ({"schema": "n BIGINT, then TIMESTAMP", "event_time": "then"}, "has no column 'then'"),
    ],
)
def test_columns_that_do_not_fit_the_table_are_refused(
    tmp_path: Path, source: dict[str, Any], words: str
) -> None:
    """Before anything is read: a typing error would make a field NULL in all records."""
    place = tmp_path / "table"
    at = pa.array([DAY], pa.timestamp("us", "UTC"))
    write_deltalake(place, pa.table({"n": [1], "k": [2], "at": at}))
    given = {"schema": "n BIGINT, at TIMESTAMP", "event_time": "at", **source}
    with pytest.raises(BadRange, match=words):
        TableVersions(DeltaSource(str(place), **given), ImportOptions("delta:t", event_time="at"), tmp_path)


def test_the_end_of_a_table_is_that_of_its_newest_version(tmp_path: Path) -> None:
    """What is declared to be all must be all, however many versions are not read yet."""
    place = tmp_path / "table"
    write(place, 1)
    reader = Reader(place)
    assert reader.step(10) == ""
    for n in range(2, 6):
        write(place, n)
    DeltaTable(place).optimize.compact()
    end = reader.versions.find_last_end(reader.position)
    assert find_row(end) == TableRow(4, 1, done=True)
    for _ in range(4):
        assert reader.position < end
        assert reader.step(10) == ""
    assert reader.position == end == reader.versions.find_last_end(reader.position)


def test_where_nothing_can_be_read_a_stream_does_not_begin(tmp_path: Path) -> None:
    """A first version that is passed over in silence would be a loss that nobody knows of."""
    place = tmp_path / "table"
    write(place, 1)
    for file in place.glob("*.parquet"):
        file.unlink()
    source = DeltaSource(str(place), "n BIGINT, at TIMESTAMP", "at")
    pipeline = Pipeline(
        "p",
        source=source,
        views=[View("v", keys=[], window=Tumbling("1 hour"), measures={"c": count()})],
        batch=Batch("1 day", "2026-01-01"),
    )
    tables = TableSources(pipeline, Layout(tmp_path / "warehouse", "p"))
    with pytest.raises(BadRange, match="cannot begin"):
        tables.require_readable({})


def test_rows_that_wait_in_a_table_are_counted_and_their_age_is_not_known(tmp_path: Path) -> None:
    """Offsets between versions are no rows, and nobody has looked at the times of these."""
    place = tmp_path / "table"
    write(place, 1, 2, 3)
    source = DeltaSource(str(place), "n BIGINT, at TIMESTAMP", "at")
    view = View("v", keys=[], window=Tumbling("1 hour"), measures={"c": count()})
    pipeline = Pipeline("p", source=source, views=[view], batch=Batch("1 day", "2026-01-01"))
    layout = Layout(tmp_path / "warehouse", "p")
    ends = ask_source_ends(pipeline, layout, {}, lambda *_: pytest.fail("Kafka is asked"))
    lag = Observer(layout, DAY).fetch_lag(ends, None, pipeline, {})
    assert (lag.records, lag.seconds) == (3, None)
