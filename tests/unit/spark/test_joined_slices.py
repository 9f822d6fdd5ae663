"""Which files the slices of a join are read from."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from seamline.lake.storage.arrow_types import INSTANT
from seamline.lake.storage.table_cache import Files
from seamline.spark.build.joined_slices import list_timed_files

AT = datetime(2026, 1, 5, 12, tzinfo=UTC)
TYPES = {
    "path": pa.string(),
    "size_bytes": pa.int64(),
    "num_records": pa.int64(),
    "min._epoch": pa.int64(),
    "min._event_time": INSTANT,
    "max._event_time": INSTANT,
    "null_count._event_time": pa.int64(),
}


def files_of(*rows: tuple[str, datetime | None, int | None], epoch: int = 0) -> Files:
    """List files of ten rows by name, the instant of all of them, and how many have none."""
    columns = [(name, 100, 10, epoch, at, at, nulls) for name, at, nulls in rows]
    arrays = [
        pa.array(each, type) for each, type in zip(zip(*columns, strict=True), TYPES.values(), strict=True)
    ]
    return Files(Path("/table"), 0, pa.table(dict(zip(TYPES, arrays, strict=True))))


def test_files_of_refused_records_alone_are_no_part_of_a_build() -> None:
    """They have no event time, and would have a whole build joined by Spark's shuffle."""
    found = list_timed_files(files_of(("refused", None, 10), ("some", AT, 4), ("all", AT, 0)), 5, again=True)
    assert found is not None
    assert [each.path for each in found] == ["/table/some", "/table/all"]


@pytest.mark.parametrize("nulls", [None, 4])
def test_a_file_that_does_not_say_its_times_may_have_any(nulls: int | None) -> None:
    """Then time does not part the build."""
    assert list_timed_files(files_of(("all", AT, 0), ("unknown", None, nulls)), 5, again=False) is None


def test_files_above_the_cut_are_left_out() -> None:
    """None of their rows is built."""
    assert list_timed_files(files_of(("later", AT, 0), epoch=6), 5, again=False) == []
