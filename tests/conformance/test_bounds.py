"""Tables of ours as other engines prune them: a filter finds each row, whatever its value."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
from pyspark.sql import SparkSession

from seamline.lake.log.record_files import Sink
from seamline.lake.storage import data_files
from seamline.lake.storage.delta_table import Table

SCHEMA = pa.schema(
    [
        ("n", pa.int64()),
        ("money", pa.decimal128(38, 18)),
        ("cents", pa.decimal128(18, 2)),
        ("double", pa.float64()),
        ("text", pa.string()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("day", pa.date32()),
    ]
)
NOTHING: dict[str, Any] = dict.fromkeys(SCHEMA.names)
CASES: dict[str, tuple[str, Any, str]] = {
    "more digits than a double has": (
        "money",
        Decimal("12345678901234567890.123456789012345678"),
        "12345678901234567890.123456789012345678BD",
    ),
    "as many, behind the point": (
        "money",
        Decimal("0.123456789012345678"),
        "CAST(0.123456789012345678BD AS DECIMAL(38,18))",
    ),
    "below zero": ("cents", Decimal("-1234567890123456.78"), "-1234567890123456.78BD"),
    "no number": ("double", math.nan, "double('NaN')"),
    "without end": ("double", math.inf, "double('Infinity')"),
    "the last letter": ("text", "\U0010ffff" * 70, f"'{chr(0x10FFFF) * 70}'"),
    "the last instant": (
        "at",
        datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC),
        "TIMESTAMP'9999-12-31 23:59:59Z'",
    ),
    "an instant between milliseconds": (
        "at",
        datetime(1960, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
        "TIMESTAMP'1960-01-01 00:00:00.000001Z'",
    ),
    "the first day": ("day", date(1, 1, 1), "DATE'0001-01-01'"),
}


def test_spark_and_polars_find_each_row_by_its_value(spark: SparkSession, tmp_path: Path) -> None:
    """They skip a file, or a part of one, by what we said of its columns; before a checkpoint and after."""
    table = Table.ensure(tmp_path, SCHEMA)
    written = []
    for number, (name, value, _) in enumerate(CASES.values()):
        beside = {"double": 1.5} if name == "double" else {}
        given = [{**NOTHING, "n": number, name: value}, {**NOTHING, "n": -1, **beside}]
        rows = pa.Table.from_pylist(given, schema=SCHEMA)
        sink = Sink(tmp_path, f"sink-{number}.parquet", SCHEMA)
        sink.write(rows)
        written += [*sink.close(), data_files.write_data_file(rows, tmp_path, f"file-{number}.parquet")]
    table.append(written)
    wanted = [number for number in range(len(CASES)) for _ in range(2)]
    for _ in range(2):
        seen = spark.read.format("delta").load(str(tmp_path))
        # A file is kept only for the condition on the one column in which it has a value.
        sought = " OR ".join(f"{name} = {spelled}" for name, _, spelled in CASES.values())
        assert sorted(row["n"] for row in seen.where(sought).collect()) == wanted
        for number, (name, value, _) in enumerate(CASES.values()):
            type = pl.Decimal(38, 18) if name == "money" else pl.Decimal(18, 2) if name == "cents" else None
            asked = pl.scan_delta(str(tmp_path)).filter(pl.col(name) == pl.lit(value, dtype=type))
            assert asked.collect()["n"].to_list() == [number] * 2
        table.handle.create_checkpoint()
    assert sorted(row["n"] for row in seen.where("double > 5D").collect()) == [3, 3, 4, 4]
