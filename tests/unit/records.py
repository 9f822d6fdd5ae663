"""Raw records through the kernel in a folder: what became of each, in the order they came."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from seamline import Batch, KafkaSource, Pipeline, Tumbling, View, count
from seamline.kernel.epoch_kernel import run
from seamline.kernel.kernel_config import KernelConfig
from seamline.kernel.kernel_result import KernelResult
from seamline.lake.storage.data_files import DataFile
from seamline.lake.tables.schemas.kept_schemas import KeptSchemas
from seamline.model.compile.compiled_pipeline import CompiledPipeline, compile_pipeline

STEPS = ("rules", "select", "where", "side", "lookups")
"""What a pipeline of one source says itself."""
ARRIVED = datetime(2024, 3, 1, 12, tzinfo=UTC)


def pipeline(schema: str, *, event_time: str = "at", views: Sequence[View] = (), **changes: Any) -> Any:
    """Declare a pipeline over a schema; what KafkaSource knows goes there, the rest to the pipeline."""
    known = {
        name: changes.pop(name)
        for name in list(changes)
        if name in KafkaSource.__dataclass_fields__ and name not in STEPS
    }
    return Pipeline(
        name="records",
        source=KafkaSource(topic="t", schema=schema, event_time=event_time, **known),
        views=views or [View("all_rows", keys=[], window=Tumbling("1 day"), measures={"n": count()})],
        batch=Batch("1 day", "2024-01-01"),
        **changes,
    )


def batch(
    values: Sequence[bytes | None], *, keys: Sequence[bytes | None] = (), headers: Sequence[str | None] = ()
) -> pa.RecordBatch:
    """Make raw Kafka rows as Spark hands them over."""
    size = len(values)
    return pa.RecordBatch.from_pydict(
        {
            "key": pa.array(keys or [None] * size, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "headers": pa.array(headers or [None] * size, pa.string()),
            "topic": pa.array(["t"] * size),
            "partition": pa.array([0] * size, pa.int32()),
            "offset": pa.array(range(size), pa.int64()),
            "timestamp": pa.array([ARRIVED] * size, pa.timestamp("us", "UTC")),
        }
    )


def kernel_run(folder: Path, made: CompiledPipeline, rows: pa.RecordBatch, **changes: Any) -> KernelResult:
    """Run the kernel over one batch; the tables are two folders."""
    for name in ("master", "quarantine"):
        (folder / name).mkdir(exist_ok=True)
    config = KernelConfig(
        pipeline=made,
        topic_ids={"t": "T"},
        token=1,
        epoch=7,
        committed={},
        views=frozenset(view.id for view in made.views),
        master=folder / "master",
        quarantine=folder / "quarantine",
        **changes,
    )
    return run([rows], config)


def judged(
    declared: Pipeline,
    values: Sequence[bytes | None],
    *,
    kept: KeptSchemas | None = None,
    **changes: Any,
) -> list[Any]:
    """Return, value by value, the row it became as a dictionary, or [reason, detail]; ``kept`` are writers' schemas."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        result = kernel_run(folder, compile_pipeline(declared), batch(values, **changes), kept=kept)
        became: dict[int, Any] = {row["_offset"]: row for row in read(folder / "master", result.master)}
        for row in read(folder / "quarantine", result.quarantine):
            assert row["_value"] == values[row["_offset"]]
            became[row["_offset"]] = [row["_reason"], row["_detail"]]
        assert result.accepted.total() + result.refused.total() == len(values)
    return [became[at] for at in range(len(values))]


def read(folder: Path, files: Sequence[DataFile]) -> list[dict[str, Any]]:
    """Read the rows of files."""
    return [row for file in files for row in pq.read_table(folder / file.path).to_pylist()]


def parsed(row: Any) -> Any:
    """Leave only the parsed columns of a row; a refusal stays as it is."""
    if isinstance(row, dict):
        return {name: value for name, value in row.items() if not name.startswith("_")}
    return row
