"""One producer with random event times: its intervals are bounded, and real late rows come before it."""

from __future__ import annotations

import json
import random
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from tests.unit.records import ARRIVED, batch, kernel_run, pipeline, read

from seamline.kernel.epoch_kernel import open_worker_duckdb, run
from seamline.kernel.kernel_config import KernelConfig
from seamline.kernel.stray_intervals import REASON
from seamline.kernel.survey import survey_records
from seamline.model.compile.compiled_pipeline import CompiledPipeline, compile_pipeline
from seamline.model.definition.layers import Batch
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.offsets import Lane
from seamline.model.time.intervals import format_utc_instant
from seamline.spark.tasks.task import encode_result_rows, merge_task_reports

SCHEMA = "id INT NOT NULL, at TIMESTAMP"
HOUR = timedelta(hours=1)


def hourly(most: int = 20, **more: object) -> CompiledPipeline:
    """Declare a pipeline with hours since 1970; without a bound to the past."""
    declared = pipeline(SCHEMA, max_past="", max_stray_intervals=most, **more)
    return compile_pipeline(type(declared)(**{**vars(declared), "batch": Batch("1 hour", "1970-01-01")}))


def values(ages: list[timedelta]) -> list[bytes]:
    """Write records of events that are so old when they arrive."""
    return [
        json.dumps({"id": at, "at": format_utc_instant(ARRIVED - age)}).encode()
        for at, age in enumerate(ages)
    ]


def test_junk_is_bounded_and_nothing_real_is_refused(tmp_path: Path) -> None:
    """On time, late by a day, a month of corrections: all of it stays, and is in the commit."""
    chance = random.Random(5)
    junk = [HOUR * chance.randrange(5_000, 400_000) for _ in range(500)]
    near = [HOUR * at for at in range(24)]
    late = [HOUR * at for at in range(30, 36)]
    bulk = [timedelta(days=300) + timedelta(minutes=at) for at in range(50)]
    made = hourly()
    result = kernel_run(tmp_path, made, batch(values([*junk, *near, *late, *bulk])))
    kept = {row["id"] for row in read(tmp_path / "master", result.master)}
    assert set(range(500, 580)) <= kept
    assert result.refused == Counter({REASON: 580 - len(kept)})
    assert len(result.accepted) <= 25 + 20
    assert result.astray == Counter({Lane("T", 0): 580 - len(kept)})
    [row] = [row for row in read(tmp_path / "quarantine", result.quarantine) if row["_offset"] == 0]
    assert row["_detail"].endswith("Z is not among the 20 of its task's part of the epoch")


def test_what_a_chunk_has_opened_counts_for_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task judges an epoch in parts; rows of an interval that is open are never too many."""
    monkeypatch.setattr("seamline.kernel.raw.CHUNK", 1)
    ages = [HOUR * 1_000 * (at % 40 + 1) for at in range(80)]
    made = hourly()
    (tmp_path / "master").mkdir()
    (tmp_path / "quarantine").mkdir()
    config = KernelConfig(
        made, {"t": "T"}, 1, 7, {}, frozenset(), tmp_path / "master", tmp_path / "quarantine"
    )
    parts = [batch(values(ages)).slice(at, 20) for at in range(0, 80, 20)]
    result = run(parts, config)
    assert (len(result.accepted), result.accepted.total(), result.refused.total()) == (20, 40, 40)
    # The survey, which numbers windows and finds repeats, counts the same records.
    seen = [
        each
        for table in survey_records(open_worker_duckdb(), parts, config)
        for each in table["_offset"].to_pylist()
    ]
    assert len(seen) == 40


def test_a_replay_of_history_in_order_of_its_time_is_no_junk(tmp_path: Path) -> None:
    """Kafka's timestamps may be as old as the events: then nothing is far."""
    rows = batch(values([HOUR * at for at in range(300)]))
    stamps = rows.schema.get_field_index("timestamp")
    old = [ARRIVED - HOUR * at for at in range(300)]
    rows = rows.set_column(stamps, rows.schema.field(stamps), pa.array(old, rows.schema.field(stamps).type))
    result = kernel_run(tmp_path, hourly(), rows)
    assert (len(result.accepted), result.refused.total()) == (300, 0)


def test_partitions_of_wrong_clocks_travel_to_the_ledger(tmp_path: Path) -> None:
    """From a task by its report, and in the row; rows of before they were kept have none."""
    result = merge_task_reports(
        (each["kind"], each["payload"])
        for each in encode_result_rows(
            kernel_run(tmp_path, hourly(1), batch(values([HOUR * 500, HOUR * 900, -HOUR * 90])))
        )
    )
    assert result.refused == Counter({REASON: 1, "event time in the future": 1})
    assert result.astray == Counter({Lane("T", 0): 2})
    epoch = Epoch(1, 1, ARRIVED, "v", astray=dict(result.astray))
    assert Epoch.from_json(epoch.to_json()) == epoch
    assert "astray" not in Epoch(1, 1, ARRIVED, "v").to_json()
