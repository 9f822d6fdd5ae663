"""The kernel inside a Spark task: Arrow batches in, a few rows of report out, and the report read back."""

from __future__ import annotations

import gc
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, TypeVar

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from seamline.kernel.epoch_kernel import open_worker_duckdb, run
from seamline.kernel.kernel_config import KernelConfig
from seamline.kernel.kernel_result import KernelResult, encode_result_facts
from seamline.lake.storage.data_files import DataFile
from seamline.lake.tables.schemas.kept_schemas import SchemasWanted
from seamline.model.errors import ProtocolError
from seamline.model.memory import parse_memory
from seamline.model.protocol.offsets import Lane
from seamline.model.schemas.writer_schema import find_wanted_schemas
from seamline.model.time.intervals import parse_moment
from seamline.plan.stream.hot_keys import HotKey
from seamline.runtime.machine_memory import limit_own_memory

REPORT = StructType([StructField("kind", StringType()), StructField("payload", BinaryType())])
"""Spelled out, because Spark would parse a text for each job, 5 ms long."""
FACTS = "facts"
WANTED = "wanted"
"""What a task says instead that lacks schemas."""
STATES = "states/"
JOINED = "joined/"
SCHEMA = pa.schema([("kind", pa.string()), ("payload", pa.binary())])
Given = TypeVar("Given")
Made = TypeVar("Made")


def kernel_task(config: KernelConfig) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Make the function for ``mapInArrow`` over raw Kafka rows; it yields rows of ``REPORT``."""

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        if context:
            limit_own_memory(parse_memory(config.pipeline.definition.stream.worker_memory))
        try:
            result = run(batches, config, task=context.partitionId() if context else 0)
            rows = list(encode_result_rows(result))
        except SchemasWanted as wanted:
            # Said and not raised: that would cost the worker, and the stream would wait for another one.
            rows = [{"kind": WANTED, "payload": wanted.message.encode()}]
        yield pa.RecordBatch.from_pylist(rows, schema=SCHEMA)
        freeze_worker_heap()

    return task


def limit_task_memory(
    work: Callable[[Given], Iterable[Made]], most: str
) -> Callable[[Given], Iterator[Made]]:
    """Bound the memory of whoever does some work, where that is a worker: one serves tasks of all kinds."""

    def task(given: Given) -> Iterator[Made]:
        if TaskContext.get():
            limit_own_memory(parse_memory(most))
        yield from work(given)

    return task


def warm_workers(spark: SparkSession) -> None:
    """Let every Python worker import the kernel before the first epoch waits for it."""
    count = spark.sparkContext.defaultParallelism
    spark.range(0, count, 1, count).mapInArrow(warm_worker_task, "ready BOOLEAN").toArrow()


def warm_worker_task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Open the worker's DuckDB; runs in a task."""
    for _ in batches:
        open_worker_duckdb().sql("SELECT 1").fetchall()
    yield pa.RecordBatch.from_pydict({"ready": [True]})
    freeze_worker_heap()


@cache
def freeze_worker_heap() -> None:
    """Take what a worker has imported by now out of the garbage collector's sight; runs in a task, once a process.

    PySpark collects after each task, through all that there is: 40 to 90 ms, for which the next task waits.
    """
    gc.collect()
    gc.freeze()


def encode_result_rows(result: KernelResult) -> Iterator[dict[str, object]]:
    """Encode a result as rows."""
    yield {"kind": FACTS, "payload": json.dumps(encode_result_facts(result)).encode()}
    for kind, found in ((STATES, result.states), (JOINED, result.joined)):
        for name, tables in found.items():
            for table in tables:
                sink = pa.BufferOutputStream()
                with pa.ipc.new_stream(sink, table.schema) as writer:
                    writer.write_table(table)
                yield {"kind": kind + name, "payload": sink.getvalue().to_pybytes()}


def collect_reports(frame: DataFrame) -> list[tuple[str, bytes]]:
    """Run the tasks behind a frame of REPORT, and return every row of it.

    By Arrow, whose stream says where it ends. While the JVM is killed ``collect`` returns less, without an error:
    PySpark takes a socket that was cut off for the end of the rows, and an epoch would be committed without records.
    """
    found = frame.toArrow()
    return [*zip(found["kind"].to_pylist(), found["payload"].to_pylist(), strict=True)]


def merge_task_reports(rows: Iterable[tuple[str, bytes]]) -> KernelResult:
    """Read the rows of all tasks back into one result; ProtocolError if no task says what it has read.

    SchemasWanted where one could not read its records.
    """
    whole, told = KernelResult(), False
    for kind, payload in rows:
        if kind == WANTED:
            for registry, ids in find_wanted_schemas(payload.decode()).items():
                raise SchemasWanted(registry, ids)
        if kind == FACTS:
            told = True
            whole.add(read_facts(json.loads(payload)))
        else:
            table = pa.ipc.open_stream(bytes(payload)).read_all()
            if kind.startswith(JOINED):
                whole.add(KernelResult(joined={kind.removeprefix(JOINED): [table]}))
            else:
                whole.add(KernelResult(states={kind.removeprefix(STATES): [table]}))
    if not told:
        raise ProtocolError(
            "No task has reported what it read.", hint="Spark was interrupted: the epoch is retried."
        )
    return whole


def read_facts(found: dict[str, Any]) -> KernelResult:
    """Read what ``facts`` wrote."""
    return KernelResult(
        master=[DataFile(**file) for file in found["master"]],
        quarantine=[DataFile(**file) for file in found["quarantine"]],
        accepted=Counter(found["accepted"]),
        refused=Counter(found["refused"]),
        late=Counter(found["late"]),
        very_late=Counter(found["very_late"]),
        max_event_time={
            Lane.parse(lane): parse_moment(str(at)) for lane, at in found["max_event_time"].items()
        },
        astray=Counter({Lane.parse(lane): count for lane, count in found["astray"].items()}),
        slices={view: [DataFile(**file) for file in files] for view, files in found["slices"].items()},
        state_rows=found["state_rows"],
        hot={view: HotKey(**key) for view, key in found["hot"].items()},
        failed={view: str(error) for view, error in found["failed"].items()},
        record_bytes=found["record_bytes"],
    )
