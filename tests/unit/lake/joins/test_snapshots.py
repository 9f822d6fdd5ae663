"""Snapshots come back from a file as they were: a fold that goes on from one must emit what it would have."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from tests.conformance.processes.test_folded import compiled
from tests.unit.process_functions import Abandoned

from seamline.lake.joins import snapshots
from seamline.lake.joins.snapshots import is_torn, read_snapshot_file, read_snapshots_of_keys, write_snapshots
from seamline.model.compile.processes.compiled_process import CompiledProcess
from seamline.model.functions.folding import Snapshot
from seamline.model.functions.kept_rows import KeptRows
from seamline.model.functions.laws import list_samples
from seamline.model.functions.records import RecordFreezer
from seamline.model.functions.tails import KeySpan
from seamline.model.types.schema import Schema

TYPES = (
    "a STRING, b BOOLEAN, c INT, d BIGINT, e DOUBLE, f DECIMAL(38,18), g DATE, h TIMESTAMP, i BINARY, "
    "j ARRAY<MAP<STRING, STRUCT<x: DOUBLE, y: ARRAY<TIMESTAMP>>>>, k MAP<STRING, DECIMAL(4,1)>, l STRUCT<m: DATE>"
)
RARE: dict[str, list[Any]] = {
    "a": ["\u00e9\U0001f600\x00"],
    "d": [-(2**63), 2**63 - 1],
    "e": [float("nan"), float("inf"), -0.0, 5e-324],
    "f": [Decimal("-12345678901234567890.123456789012345678"), Decimal("-0.0")],
    "g": [date.min, date.max],
    "h": [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)],
}


def keeping(state: RecordFreezer) -> CompiledProcess:
    """Return a process of a user and a place that has some state."""
    process = compiled(Abandoned)
    return replace(process, function=replace(process.function, state=state))


def make_keys(count: int) -> list[KeySpan]:
    """Make keys in spans of days."""
    dice = random.Random(1)
    users = [None, "", "é", *map(str, range(count))]
    return [
        KeySpan((user, dice.choice([None, 1, -1])), at * 86_400_000_000) for user in users for at in (0, 1)
    ]


def test_states_of_all_types_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The very values, with their classes, in files of several batches."""
    monkeypatch.setattr(snapshots, "MOST_KEYS", 7)
    fields, dice = Schema.parse(TYPES).fields, random.Random(0)
    state = RecordFreezer("state", fields)
    process = keeping(state)
    values = [[None, *list_samples(each.type), *RARE.get(each.name, [])] for each in fields]
    found = {
        key: Snapshot(
            state.freeze([dice.choice(each) for each in values]),
            tuple(sorted(dice.sample(range(-5, 10**15), dice.randrange(3)))),
            dice.choice([None, -1, 10**15]),
            dice.randrange(3),
        )
        for key in make_keys(50)
    }
    path = tmp_path / "new" / "1.parquet"
    write_snapshots(path, process, found.items())
    read = read_snapshot_file(process, path, float("-inf"))
    assert read == found and [*map(repr, read.values())] == [*map(repr, found.values())]
    assert all(type(each.state) is type(found[key].state) for key, each in read.items())
    later = read_snapshot_file(process, path, process.size)
    assert later.keys() == {key for key in found if key.span} and later
    sought = [*found][::3]
    table = read_snapshots_of_keys(process, [str(path)], [*sought, KeySpan(("none", 1), 0)])
    assert dict(snapshots.read_snapshots(process, table)) == {key: found[key] for key in sought}


def test_rows_that_are_kept_come_back(tmp_path: Path) -> None:
    """Those of groups and patterns are in pieces."""
    state = KeptRows(Schema.parse("at BIGINT, name STRING").fields)
    kept = None
    for number in range(600):
        kept = state.add(kept, (number, None if number % 7 else str(number)))
    assert kept is not None
    kept = state.drop(kept, 5)
    found = {KeySpan(("a", 1), 0): Snapshot(kept, (3,), None, 0)}
    path = tmp_path / "1.parquet"
    write_snapshots(path, keeping(state), found.items())
    [(_, read)] = read_snapshot_file(keeping(state), path, 0).items()
    assert read == found[KeySpan(("a", 1), 0)] and read.state is not None
    # It is taken as it is by what goes on from it, without a look at each row.
    assert state.freeze(read.state) is read.state


def test_a_state_without_columns_is_one(tmp_path: Path) -> None:
    """A function may keep nothing but its timers."""
    state = RecordFreezer("state", ())
    found = {KeySpan(("a", None), 0): Snapshot(state.freeze(()), (7, 9), None, 2)}
    path = tmp_path / "1.parquet"
    write_snapshots(path, keeping(state), found.items())
    assert read_snapshot_file(keeping(state), path, 0) == found


def test_large_states_are_written_a_few_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow has no text of over two gigabytes in a batch."""
    monkeypatch.setattr(snapshots, "MOST_BYTES", 1_000)
    state = RecordFreezer("state", Schema.parse("text STRING").fields)
    process = keeping(state)
    found = {key: Snapshot(state.freeze(("x" * 400,)), (), None, 0) for key in make_keys(10)}
    sizes = [each.num_rows for each in snapshots.make_batches(process, found.items())]
    assert max(sizes) == 3 and len(sizes) > 5
    write_snapshots(tmp_path / "1.parquet", process, found.items())
    assert read_snapshot_file(process, tmp_path / "1.parquet", 0) == found


def test_what_is_torn_is_not_read(tmp_path: Path) -> None:
    """A page that has other bytes than were written, as after a power cut, or a bad disk."""
    state = RecordFreezer("state", Schema.parse("text STRING").fields)
    process, path = keeping(state), tmp_path / "1.parquet"
    write_snapshots(
        path, process, ((key, Snapshot(state.freeze((str(key),)), (), None, 0)) for key in make_keys(99))
    )
    whole = path.read_bytes()
    for at in (len(whole) // 3, len(whole) // 2):
        path.write_bytes(whole[:at] + bytes(64) + whole[at + 64 :])
        with pytest.raises((OSError, pa.ArrowException)):
            read_snapshot_file(process, path, 0)


@pytest.mark.parametrize(
    ("error", "torn"),
    [
        (pa.ArrowInvalid("no footer"), True),
        (OSError("a page's checksum differs"), True),
        (FileNotFoundError(2, "No such file"), True),
        (duckdb.IOException("no footer"), True),
        (OSError(5, "Input/output error"), True),
        (PermissionError(13, "Permission denied"), True),
        (IsADirectoryError(21, "Is a directory"), True),
        (pa.ArrowMemoryError("malloc"), False),
        (duckdb.OutOfMemoryException("malloc"), False),
        (OSError(24, "Too many open files"), False),
        (OSError(116, "Stale file handle"), False),
    ],
)
def test_a_machine_in_trouble_does_not_make_a_file_torn(error: Exception, torn: bool) -> None:
    """All files would be deleted one after the other, and all rows of a span read instead."""
    assert is_torn(error) is torn
