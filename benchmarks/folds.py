"""What a fold of rows by key costs, beside Spark's own stateful operator: python -m benchmarks.folds

One program, an alarm after half a minute without a row of a user, over rows of many users that come in order but for
two seconds: epoch by epoch in a fold's process, as a stream has it; as a build in Spark's tasks; by
``transformWithState`` with a state and a timer in RocksDB, over rows and over pandas, whose rows are read from files,
as a stream reads what there is; and by PyFlink's ``KeyedProcessFunction``, less what it takes to start, if
``python -m benchmarks.peers.flink_in_python`` has set it up. Prints rows a second of elapsed time, how long epochs
took, and what a key takes in the fold's process. The fold and the build must emit the same.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import psutil
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import Row, SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from benchmarks.machine import machine
from benchmarks.peers import flink_in_python
from benchmarks.peers.on_spark import LARGE_STATES
from benchmarks.results import Results
from seamline.lake.storage.arrow_types import INSTANT
from seamline.model.compile.compiled_join import JoinSide
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.compile.problems import Problems
from seamline.model.compile.processes.compiled_process import CompiledProcess
from seamline.model.compile.processes.process_rules import compile_process
from seamline.model.definition.layers import Batch
from seamline.model.definition.pipeline import Pipeline, View
from seamline.model.definition.processes import Process
from seamline.model.definition.sources import KafkaSource
from seamline.model.definition.windows import Tumbling
from seamline.model.measures import count
from seamline.spark.session.session import open_spark_session
from seamline.spark.stream.derived.fold_process import FoldProcess
from seamline.spark.tasks.folded_rows import fold_rows

SECOND = 1_000_000
SILENCE = 30
RATE = 5_000
"""Rows of a second of event time, which is an epoch."""
LATENESS = 2
TICKERS = ("a stream's fold", "a build", "transformWithState", "... in pandas", "PyFlink")
WORKER = "2g"
"""Memory of the fold's process."""


class Silence:
    """An alarm for a user of whom nothing was heard for half a minute."""

    state = "seen BIGINT"
    emits = "seen BIGINT"

    def row(self, state: Any, row: Any, out: Any) -> tuple[int]:
        """Count, and wait from here."""
        out.clear_timers()
        out.timer(out.at + timedelta(seconds=SILENCE))
        return ((state.seen if state else 0) + 1,)

    def timer(self, state: Any, at: datetime, out: Any) -> None:
        """Nobody came."""
        out.emit(state.seen)


class SilenceInSpark(StatefulProcessor):
    """The same for Spark."""

    def init(self, handle: Any) -> None:
        """Open the state."""
        self.handle, self.seen = handle, handle.getValueState("seen", "seen BIGINT, due BIGINT")

    def count(self, known: int, last: int) -> None:
        """Count rows, and wait from the last one, in milliseconds; the timer is known, as to list them takes longer."""
        before = self.seen.get() if self.seen.exists() else None
        due = last + SILENCE * 1000
        if before:
            known, due = known + before[0], max(due, before[1])
        if not before or due != before[1]:
            if before:
                self.handle.deleteTimer(before[1])
            self.handle.registerTimer(due)
        self.seen.update((known, due))

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Count, and wait from the last row."""
        times = [row.at.timestamp() for row in rows]
        self.count(len(times), int(max(times) * 1000))
        return iter([])

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Nobody came."""
        seen = self.seen.get()[0]
        self.seen.clear()
        yield Row(user=key[0], seen=seen)

    def close(self) -> None:
        """Close nothing."""


class SilenceInPandas(SilenceInSpark):
    """The same for Spark, whose rows come as tables of pandas."""

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        """Count, and wait from the last row."""
        tables = [*rows]
        last = max(table["at"].max().timestamp() for table in tables)
        self.count(sum(map(len, tables)), int(last * 1000))
        return iter([])

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: Any,  # noqa: N803
        expiredTimerInfo: Any,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        """Nobody came."""
        seen = self.seen.get()[0]
        self.seen.clear()
        yield pd.DataFrame({"user": [key[0]], "seen": [seen]})


def main(argv: list[str]) -> int:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.folds", description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000, help="[default: 200,000]")
    parser.add_argument("--users", type=int, default=20_000, help="[default: 20,000]")
    parser.add_argument("--rounds", type=int, default=3, help="in which all take turns [default: 3]")
    parser.add_argument(
        "--flink-rows", type=int, default=20_000, help="so many of the rows for PyFlink [default: 20,000]"
    )
    parser.add_argument(
        "--processes", type=int, default=1, help="that share the keys of a stream's fold [default: 1]"
    )
    parser.add_argument("--only", default=",".join(TICKERS), help="which, with commas between [default: all]")
    asked = parser.parse_args(argv)
    if min(asked.rows // RATE, asked.users, asked.rounds) < 1:
        parser.error(f"--rows are at least {RATE:,}, --users and --rounds 1")
    print(machine(), flush=True)
    if "PyFlink" in asked.only.split(",") and not flink_in_python.is_set_up():
        print("PyFlink is left out: python -m benchmarks.peers.flink_in_python sets it up.", flush=True)
    process, rows = compile_silence(), make_rows(asked.rows, asked.users)
    found: dict[str, list[float]] = {each: [] for each in TICKERS}
    with tempfile.TemporaryDirectory(prefix="folds") as folder:
        files = Path(folder) / "rows"
        files.mkdir()
        for number in range(asked.rows // RATE):
            pq.write_table(rows.slice(number * RATE, RATE), files / f"{number:05}.parquet")
        settings = {**LARGE_STATES, "spark.sql.session.timeZone": "UTC"}
        spark = open_spark_session("folds", memory="4g", more=settings)
        for number in range(asked.rounds):
            checkpoint = Path(folder) / f"checkpoint-{number}"
            runs: list[Callable[[], tuple[int, float]]] = [
                partial(run_tails, process, rows, asked.processes),
                partial(run_build, spark, process, files),
                partial(run_peer, spark, files, checkpoint, in_pandas=False),
                partial(run_peer, spark, files, checkpoint.with_suffix(".pandas"), in_pandas=True),
                partial(run_pyflink, rows.slice(0, asked.flink_rows), Path(folder)),
            ]
            emitted = {}
            for ticker, run in zip(TICKERS, runs, strict=True):
                if ticker not in asked.only.split(",") or (
                    ticker == "PyFlink" and not flink_in_python.is_set_up()
                ):
                    continue
                alarms, seconds = run()
                many = min(asked.flink_rows, asked.rows) if ticker == "PyFlink" else asked.rows
                emitted[ticker] = alarms
                found[ticker].append(many / seconds)
                print(
                    f"round {number}: {ticker:20}: {many / seconds:10,.0f} rows/s, {alarms:,} alarms",
                    flush=True,
                )
            if len({emitted[each] for each in TICKERS[:2] if each in emitted}) > 1:
                sys.exit("The fold of the stream and that of the build have emitted different rows.")
        spark.stop()
    Results("folds").write(
        {"machine": machine(), "rows": asked.rows, "users": asked.users, "per_second": found}
    )
    return 0


def compile_silence() -> CompiledProcess:
    """Compile the process, of rows whose source has no name."""
    pipeline = compile_pipeline(
        Pipeline(
            name="silence",
            source=KafkaSource(topic="rows", schema="user BIGINT, at TIMESTAMP", event_time="at"),
            views=[View("v", keys=["user"], window=Tumbling("1 hour"), measures={"n": count()})],
            batch=Batch(interval="1 day", start="1970-01-01"),
        )
    )
    problems = Problems()
    process = Process("alarms", of="rows", by=f"benchmarks.folds:{Silence.__name__}", keys=["user"])
    made = compile_process(process, pipeline.record, pipeline.grid, problems)
    if made is None:
        raise problems.found[0]
    return replace(made, sides=(JoinSide("", "", made.columns),))


def make_rows(count: int, users: int) -> pa.Table:
    """Make rows in the order in which they come."""
    dice = random.Random(1)
    at = [max(0, n * SECOND // RATE - dice.randrange(LATENESS * SECOND)) for n in range(count)]
    columns = {
        "user": pa.array([dice.randrange(users) for _ in range(count)], pa.int64()),
        "at": pa.array(at, INSTANT),
        "_event_time": pa.array(at, INSTANT),
        "_partition": pa.array([0] * count, pa.int32()),
        "_offset": pa.array(range(count), pa.int64()),
        "_topic": pa.array(["rows"] * count),
        "_topic_id": pa.array(["id"] * count),
    }
    return pa.table(columns)


def run_tails(process: CompiledProcess, rows: pa.Table, processes: int) -> tuple[int, float]:
    """Fold epoch by epoch in processes of its own; return how many alarms there are in the end, and seconds."""
    there, alarms, took = FoldProcess(process, WORKER, processes), 0, []
    there.open(float("-inf"))
    there.restore([])
    memory = [psutil.Process(part.worker.child.pid) for part in there.parts]
    before, began = add_memory(memory), time.monotonic()
    for number in range(rows.num_rows // RATE):
        since = time.monotonic()
        part, mark = rows.slice(number * RATE, RATE), (number - LATENESS) * SECOND
        change = there.take(part, lambda keys: [], mark, [""])[""]
        alarms += change.added.num_rows - change.withdrawn.num_rows
        took.append(1000 * (time.monotonic() - since))
    seconds, keys = time.monotonic() - began, len(set(rows["user"].to_pylist()))
    p50, p99 = (sorted(took)[int(len(took) * share)] for share in (0.5, 0.99))
    grown = (add_memory(memory) - before) / keys
    print(
        f"  epochs of {RATE:,} rows: p50 {p50:.0f} ms, p99 {p99:.0f} ms; {grown:,.0f} bytes a key at most",
        flush=True,
    )
    there.close()
    return alarms, seconds


def add_memory(processes: Iterable[psutil.Process]) -> int:
    """Add up the bytes that processes have in memory."""
    return sum(each.memory_info().rss for each in processes)


def run_build(spark: SparkSession, process: CompiledProcess, files: Path) -> tuple[int, float]:
    """Fold all at once, in two tasks; return how many alarms there are at the end of the rows, and seconds."""
    began = time.monotonic()
    rows = spark.read.parquet(str(files))
    mark = (len(list(files.iterdir())) - 1 - LATENESS) * SECOND
    alarms = fold_rows(rows, process, mark).count()
    return alarms, time.monotonic() - began


def run_peer(spark: SparkSession, files: Path, checkpoint: Path, *, in_pandas: bool) -> tuple[int, float]:
    """Let Spark read all files in one stream, twenty epochs a batch; return its alarms, and seconds."""
    began, alarms = time.monotonic(), 0

    def on_batch(batch: Any, number: int) -> None:
        nonlocal alarms
        alarms += batch.count()

    users = (
        spark.readStream.schema(spark.read.parquet(str(files)).schema)
        .option("maxFilesPerTrigger", 20)
        .parquet(str(files))
        .withWatermark("at", f"{LATENESS} seconds")
        .groupBy("user")
    )
    said = ("user BIGINT, seen BIGINT", "Append", "EventTime")
    if in_pandas:
        events = users.transformWithStateInPandas(SilenceInPandas(), *said)
    else:
        events = users.transformWithState(SilenceInSpark(), *said)
    query = events.writeStream.foreachBatch(on_batch).option("checkpointLocation", str(checkpoint))
    query.trigger(availableNow=True).start().awaitTermination()
    return alarms, time.monotonic() - began


def run_pyflink(rows: pa.Table, folder: Path) -> tuple[int, float]:
    """Let PyFlink read rows from a file; return its alarms, and seconds without those of a job of one row."""
    at = pc.divide(pc.cast(rows["at"], pa.int64()), 1_000).to_pylist()
    lines = [f"{user},{ms}\n" for user, ms in zip(rows["user"].to_pylist(), at, strict=True)]
    found = []
    for name, some in (("one", lines[:1]), ("all", lines)):
        file = folder / f"{name}.csv"
        file.write_text("".join(some))
        found.append(
            flink_in_python.run_program(
                "silence_in_pyflink.py", str(file), str(SILENCE), str(LATENESS), "process"
            )
        )
    return found[1]["alarms"], found[1]["seconds"] - found[0]["seconds"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
