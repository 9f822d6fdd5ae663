"""What is at a place: files with rows and event times, and of a Delta table what was appended since."""

from __future__ import annotations

import gzip
import json
import struct
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from seamline.lake.imports.found_history import find_history, has_lines
from seamline.lake.imports.history_facts import History, ImportedTable
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
    """CSV with line breaks in cells, and lines as the bytes that they are; what folders are called is no column."""
    place = tmp_path / "day=1"
    place.mkdir()
    write = (
        (lambda path, data: path.with_name(path.name + ".gz").write_bytes(gzip.compress(data)))
        if packed
        else Path.write_bytes
    )
    write(place / "a.csv", b'\xef\xbb\xbfid;x\n"a\nb";1\nc;\n')
    found = find(place / ("a.csv.gz" if packed else "a.csv"), tmp_path / "staged", dialect=CsvDialect(";"))
    assert pq.read_table(found.files[0].path).to_pylist() == [
        {"id": "a\nb", "x": "1"},
        {"id": "c", "x": None},
    ]
    write(place / "b.jsonl", b'{"a":1}\r\n\n {"a":\xff}')
    lines = find(place / ("b.jsonl.gz" if packed else "b.jsonl"), tmp_path / "staged")
    assert pq.read_table(lines.files[0].path)["_value"].to_pylist() == [b'{"a":1}', b' {"a":\xff}']
    assert has_lines(str(place / ("b.jsonl.gz" if packed else "b.jsonl")))
    again = find(
        place / ("a.csv.gz" if packed else "a.csv"), tmp_path / "staged", dialect=CsvDialect(";", null="c")
    )
    assert again.files[0].path != found.files[0].path, "another dialect reads other rows"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"id,x\na,b\nc\n", "Line: 3.*Expected Number of Columns: 2 Found: 1"),
        (b"id,id\na,b\n", "names column 'id' twice"),
        (b"", "does not begin with a line of column names"),
        (b"\nid,x\na,b\n", "does not begin with a line of column names"),
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
    later = find(place, staged, imported={first.table_id: ImportedTable(0)})
    assert [(each.rows, each.low) for each in later.files] == [(1, DAY.replace(hour=3))]
    assert find(place, staged, imported={first.table_id: ImportedTable(2)}).files == (), "compacted since"
    left = ImportedTable(2, first.files)
    assert find(place, staged, imported={first.table_id: left}).files == first.files
    table = DeltaTable(place)
    table.delete("n = 1")
    with pytest.raises(BadRange, match="Version 3 of .* rewrites or deletes") as refused:
        find(place, staged, imported={first.table_id: ImportedTable(1)})
    assert "--version 2" in refused.value.hint
    assert [
        each.rows
        for each in find(place, staged, version=2, imported={first.table_id: ImportedTable(1)}).files
    ] == []
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    with pytest.raises(BadRange, match="was vacuumed|is gone"):
        find(place, staged, version=2, imported={first.table_id: ImportedTable(0)})


def encode_z85(data: bytes) -> str:
    """Encode bytes as Delta has them in its log."""
    letters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    padded = data + b"\0" * (-len(data) % 4)
    words = (int.from_bytes(padded[at : at + 4], "big") for at in range(0, len(padded), 4))
    return "".join(letters[word // 85**power % 85] for word in words for power in (4, 3, 2, 1, 0))


def delete_by_vector(place: Path, row: int) -> None:
    """Delete a row of a table's only file by a deletion vector: a bitmap of one array container, in the log."""
    bitmap = struct.pack("<IIHHIH", 12346, 1, 0, 0, 16, row)
    data = struct.pack("<IQI", 1681511377, 1, 0) + bitmap
    vector = {
        "storageType": "i",
        "pathOrInlineDv": encode_z85(data),
        "sizeInBytes": len(data),
        "cardinality": 1,
    }
    log = place / "_delta_log"
    lines = (log / f"{0:020}.json").read_text().splitlines()
    add = next(action["add"] for action in map(json.loads, lines) if "add" in action)
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    facts = {name: add[name] for name in ("path", "partitionValues", "size")}
    actions = [
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}},
        {"remove": {**facts, "dataChange": True, "deletionTimestamp": 1, "extendedFileMetadata": True}},
        {"add": {**add, "deletionVector": vector}},
    ]
    (log / f"{1:020}.json").write_text("\n".join(map(json.dumps, actions)))


def test_rows_with_deletion_vectors_are_left_out(tmp_path: Path) -> None:
    """What a table has deleted is not in it, although its file still has it."""
    place = tmp_path / "a delta table"
    write_deltalake(place, rows(1, 2, 3))
    delete_by_vector(place, 1)
    found = find(place, tmp_path / "staged")
    assert sum(each.rows for each in found.files) == 2
    assert sorted(n for each in found.files for n in pq.read_table(each.path)["n"].to_pylist()) == [1, 3]


def test_what_is_no_table_is_refused(tmp_path: Path) -> None:
    """By its name, and with the way out."""
    with pytest.raises(NotFound, match="has no files of a table"):
        find(tmp_path / "nothing", tmp_path / "staged")
    (tmp_path / "torn.parquet").write_bytes(b"PAR1 half")
    with pytest.raises(BadRange, match="no whole Parquet file"):
        find(tmp_path / "torn.parquet", tmp_path / "staged")
    pq.write_table(rows(1), tmp_path / "a.parquet")
    with pytest.raises(BadRange, match="is no Delta table"):
        find(tmp_path / "a.parquet", tmp_path / "staged", version=1)


def test_partitions_of_a_table_have_their_types_whichever_way_they_are_found(tmp_path: Path) -> None:
    """A listing knows them by their types, and the log as text: the same row has the same bytes."""
    place, staged = tmp_path / "delta", tmp_path / "staged"
    parts = {"k": [5], "b": [True], "day": pa.array([None], pa.string())}
    for _ in range(2):
        table = rows(1)
        for name, values in parts.items():
            table = table.append_column(name, pa.array(values) if isinstance(values, list) else values)
        write_deltalake(place, table, mode="append", partition_by=["k", "b", "day"])
    whole = find(place, staged)
    later = find(place, staged, imported={whole.table_id: ImportedTable(0)})
    assert {each.values for each in (*whole.files, *later.files)} == {
        (("k", "5"), ("b", "true"), ("day", "null"))
    }
    folder = tmp_path / "files" / "day=__HIVE_DEFAULT_PARTITION__"
    folder.mkdir(parents=True)
    pq.write_table(rows(1), folder / "a.parquet")
    assert find(tmp_path / "files", staged).files[0].values == (("day", "null"),)


def test_text_that_is_cut_off_or_has_a_mark_is_known_for_it(tmp_path: Path) -> None:
    """A file that breaks off is refused; a byte order mark is no part of the first line."""
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(b'{"a":1}\n' * 9_999)[:-9])
    with pytest.raises(BadRange, match="cannot be read"):
        find(tmp_path / "cut.jsonl.gz", tmp_path / "staged")
    (tmp_path / "a.jsonl").write_bytes(b'\xef\xbb\xbf{"a":1}\n')
    found = find(tmp_path / "a.jsonl", tmp_path / "staged")
    assert pq.read_table(found.files[0].path)["_value"].to_pylist() == [b'{"a":1}']


@pytest.mark.parametrize("year", [1, 9999])
def test_a_time_that_stands_for_never_is_no_bound(tmp_path: Path, year: int) -> None:
    """What lies a little further is no instant of Python's."""
    at = pa.array([datetime(year, 12, 31, tzinfo=UTC)], pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"at": at}), tmp_path / "a.parquet")
    [file] = find(tmp_path / "a.parquet", tmp_path / "staged").files
    assert (file.low, file.high) == (None, None)
