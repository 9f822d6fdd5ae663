"""What is at a place: files with rows and event times, and of a Delta table what was appended since."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from seamline.lake.imports.found_history import History, find_history, has_lines
from seamline.lake.imports.staged_rows import CsvDialect
from seamline.model.errors import BadRange, NotFound

DAY = datetime(2026, 1, 1, tzinfo=UTC)


def rows(*hours: int) -> pa.Table:
    """Return rows of a day."""
    at = [DAY.replace(hour=hour) for hour in hours]
    return pa.table({"n": [*hours], "at": pa.array(at, pa.timestamp("us", "UTC"))})


def find(place: Path, staging: Path, **more: object) -> History:
    """Find what is at a place."""
    return find_history(str(place), staging=staging, time_column="at", **more)  # type: ignore[arg-type]


def test_footers_tell_rows_times_and_what_folders_say(tmp_path: Path) -> None:
    """Nothing of the rows is read, and a copy elsewhere is known again."""
    for place in ("one", "two"):
        folder = tmp_path / place / "day=2026-01-01"
        folder.mkdir(parents=True)
        pq.write_table(rows(1, 5, 3), folder / "a.parquet")
    one, two = (find(tmp_path / place, tmp_path / "staged") for place in ("one", "two"))
    [file] = one.files
    assert (file.name, file.rows) == ("day=2026-01-01/a.parquet", 3)
    assert (file.low, file.high) == (DAY.replace(hour=1), DAY.replace(hour=5))
    assert file.values == (("day", '"2026-01-01"'),)
    assert [each.identity for each in two.files] == [file.identity]
    pq.write_table(rows(1, 5, 4), tmp_path / "two" / "day=2026-01-01" / "a.parquet")
    assert [each.identity for each in find(tmp_path / "two", tmp_path / "staged").files] != [file.identity]


@pytest.mark.parametrize("packed", [False, True])
def test_text_is_staged_row_by_row(tmp_path: Path, packed: bool) -> None:
    """CSV with line breaks in cells, and lines as the bytes that they are."""
    write = (
        (lambda path, data: path.with_name(path.name + ".gz").write_bytes(gzip.compress(data)))
        if packed
        else Path.write_bytes
    )
    write(tmp_path / "a.csv", b'\xef\xbb\xbfid;x\n"a\nb";1\nc;\n')
    found = find(tmp_path / ("a.csv.gz" if packed else "a.csv"), tmp_path / "staged", dialect=CsvDialect(";"))
    assert pq.read_table(found.files[0].path).to_pylist() == [
        {"id": "a\nb", "x": "1"},
        {"id": "c", "x": None},
    ]
    write(tmp_path / "b.jsonl", b'{"a":1}\r\n\n {"a":\xff}')
    lines = find(tmp_path / ("b.jsonl.gz" if packed else "b.jsonl"), tmp_path / "staged")
    assert pq.read_table(lines.files[0].path)["_value"].to_pylist() == [b'{"a":1}', b' {"a":\xff}']
    assert has_lines(str(tmp_path / ("b.jsonl.gz" if packed else "b.jsonl")))
    again = find(
        tmp_path / ("a.csv.gz" if packed else "a.csv"), tmp_path / "staged", dialect=CsvDialect(";", null="c")
    )
    assert again.files[0].path != found.files[0].path, "another dialect reads other rows"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"id,x\na,b\nc\n", "Line: 3.*Expected Number of Columns: 2 Found: 1"),
        (b"id,id\na,b\n", "does not name its columns"),
        (b"", "does not name its columns"),
    ],
)
def test_csv_that_cannot_be_read_names_the_line(tmp_path: Path, text: bytes, words: str) -> None:
    """Nothing of it is taken."""
    (tmp_path / "a.csv").write_bytes(text)
    with pytest.raises(BadRange, match=words):
        find(tmp_path / "a.csv", tmp_path / "staged")


def test_of_a_delta_table_only_what_was_appended_is_new(tmp_path: Path) -> None:
    """Also once it was compacted; versions that take rows away, or whose files are gone, are refused."""
    place, staged = tmp_path / "delta", tmp_path / "staged"
    write_deltalake(place, rows(1, 2))
    first = find(place, staged)
    assert (first.version, [each.rows for each in first.files]) == (0, [2])
    write_deltalake(place, rows(3), mode="append")
    DeltaTable(place).optimize.compact()
    later = find(place, staged, imported={first.table_id: 0})
    assert [(each.rows, each.low) for each in later.files] == [(1, DAY.replace(hour=3))]
    assert find(place, staged, imported={first.table_id: 2}).files != ()
    table = DeltaTable(place)
    table.delete("n = 1")
    with pytest.raises(BadRange, match="Version 3 of .* rewrites or deletes") as refused:
        find(place, staged, imported={first.table_id: 1})
    assert "--version 2" in refused.value.hint
    assert [each.rows for each in find(place, staged, version=2, imported={first.table_id: 1}).files] == []
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    with pytest.raises(BadRange, match="was vacuumed|is gone"):
        find(place, staged, version=2, imported={first.table_id: 0})


def test_rows_with_deletion_vectors_are_left_out(tmp_path: Path) -> None:
    """What a table has deleted is not in it, although its file still has it."""
    place = tmp_path / "delta"
    write_deltalake(place, rows(1, 2, 3), configuration={"delta.enableDeletionVectors": "true"})
    DeltaTable(place).delete("n = 2")
    found = find(place, tmp_path / "staged")
    assert sum(each.rows for each in found.files) == 2
    assert sorted(n for each in found.files for n in pq.read_table(each.path)["n"].to_pylist()) == [1, 3]


def test_what_is_no_table_is_refused(tmp_path: Path) -> None:
    """By its name, and with the way out."""
    with pytest.raises(NotFound, match="There is no table"):
        find(tmp_path / "nothing", tmp_path / "staged")
    (tmp_path / "torn.parquet").write_bytes(b"PAR1 half")
    with pytest.raises(BadRange, match="no whole Parquet file"):
        find(tmp_path / "torn.parquet", tmp_path / "staged")
    pq.write_table(rows(1), tmp_path / "a.parquet")
    with pytest.raises(BadRange, match="is no Delta table"):
        find(tmp_path / "a.parquet", tmp_path / "staged", version=1)
