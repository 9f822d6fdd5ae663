"""What an as-of join costs beside an interval join of the same rows: an epoch of the driver, and a build of a day.

    python -m benchmarks.as_of [--index 1000000] [--rows 500000] [--rounds 4]

The index has so many rows, half of them versions, of 10,000 keys over a day. An epoch brings 100,000 new left rows,
1,000 versions that are late by up to a day, or 1,000 that come in time. The day that is built has so many rows of each
side, with keys of 36 characters, where each right row has one left row within the hour; by slices of time and by
Spark's shuffle. Both joins take turns; warm medians.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.joined_builds import Day, build, fill
from benchmarks.machine import machine
from benchmarks.results import Results
from benchmarks.turns import Taken, take_turns
from seamline import AsOf, Batch, Join, KafkaSource, Pipeline, Tumbling, View, count, sum
from seamline.lake.engine.joined_index import JoinedIndex, no_rows, side_schema
from seamline.lake.engine.near_rows import Rows
from seamline.lake.storage.arrow_types import INSTANT
from seamline.model.compile.compiled_pipeline import CompiledView, compile_pipeline
from seamline.model.time.zone_clock import MICROSECOND
from seamline.plan.batch import join_slices
from seamline.spark.session.session import open_spark_session
from seamline.spark.stream.derived.joined_rows import compute_joined_states

BEGIN = datetime(2026, 1, 5, tzinfo=UTC)
DAY_MICROS, MINUTE = 86_400_000_000, 60_000_000
KEYS = 10_000
NAMES = ("as of", "join")


def declare(left: str, right: str, column: str, schemas: tuple[str, str], reach: str) -> dict[str, Pipeline]:
    """Declare an as-of join and an interval join of the same rows."""
    sources = [
        KafkaSource(name=name, topic=f"ads.{name}", schema=schema, event_time="at")
        for name, schema in zip((left, right), schemas, strict=True)
    ]
    on = {column: column}
    ways = (
        AsOf("joined", left=left, versions=right, on=on, at_most=reach),
        Join("joined", left=left, right=right, on=on, before=reach),
    )
    measures = {"n": count(), "cost": sum(f"{right}_cost")}
    view = View("by_minute", of="joined", keys=[], window=Tumbling("1 minute"), measures=measures)
    return {
        name: Pipeline(
            name="ads", source=sources, derive=[way], views=[view], batch=Batch("1 day", "2026-01-05")
        )
        for name, way in zip(NAMES, ways, strict=True)
    }


def make_rows(view: CompiledView, side: int, count: int, first: int, end: int, epoch: int) -> pa.Table:
    """Make rows of a side at random times, in microseconds from the day's start."""
    assert view.join
    dice, schema = np.random.default_rng(epoch * 2 + side), side_schema(view.join.sides[side])
    start = (BEGIN - datetime(1970, 1, 1, tzinfo=UTC)) // MICROSECOND
    made = {
        "_topic_id": np.full(count, "t"),
        "_topic": np.full(count, "t"),
        "_partition": np.zeros(count, np.int32),
        "_offset": np.arange(count) + epoch * 10_000_000,
        "_epoch": np.full(count, epoch),
        "_event_time": pa.array(start + dice.integers(first, end, count)).cast(INSTANT),
        "k": dice.integers(0, KEYS, count),
        "cost": dice.integers(0, 100, count),
    }
    return pa.table({field.name: pa.array(made[field.name]).cast(field.type) for field in schema}, schema)


def time_epochs(index_rows: int, rounds: int, folder: Path) -> dict[str, dict[str, Taken]]:
    """Time epochs of the driver by what they bring."""
    schemas = ("k INT, at TIMESTAMP", "k INT, cost INT, at TIMESTAMP")
    views = {
        name: compile_pipeline(each).views[0]
        for name, each in declare("left", "right", "k", schemas, "1 day").items()
    }
    indexes = {}
    for name, view in views.items():
        assert view.join
        indexes[name] = JoinedIndex(view.join, folder / name)
        both = (make_rows(view, side, index_rows // 2, 0, DAY_MICROS, side) for side in (0, 1))
        indexes[name].take((next(both), next(both)), None)
    found = {}
    for what, side, rows, first, end in (
        ("100,000 new left rows", 0, 100_000, DAY_MICROS, DAY_MICROS + MINUTE),
        ("1,000 late versions", 1, 1_000, 0, DAY_MICROS),
        ("1,000 versions in time", 1, 1_000, DAY_MICROS, DAY_MICROS + MINUTE),
    ):
        asked: dict[str, Callable[[], object]] = {}
        for name, view in views.items():
            assert view.join
            blank = no_rows(view.join)
            new = make_rows(view, side, rows, first, end, 2)
            given: Rows = (blank[0], new) if side else (new, blank[1])
            asked[name] = lambda view=view, given=given, blank=blank, index=indexes[name]: (
                compute_joined_states(index, given, blank, [view])(view)
            )
        found[what] = take_turns(asked, rounds)
    return found


def time_builds(rows: int, rounds: int, folder: Path) -> dict[str, dict[str, Taken]]:
    """Time builds of a day by how they are made."""
    spark = open_spark_session("benchmarks.as_of", memory="3g")
    schemas = ("ad STRING, at TIMESTAMP", "ad STRING, cost INT, at TIMESTAMP")
    engines = {}
    for name, declared in declare("clicked", "shown", "ad", schemas, "1 hour").items():
        engines[name] = Day(compile_pipeline(declared), folder / name, spark)
        fill(engines[name], rows)
    found, most = {}, join_slices.MOST_TIMES
    for how, limit in (("slices", most), ("shuffle", -1)):
        join_slices.MOST_TIMES = limit
        found[how] = take_turns(
            {name: lambda each=each: build(each) for name, each in engines.items()}, rounds
        )
    join_slices.MOST_TIMES = most
    return found


def main(argv: list[str]) -> int:
    """Time both, and print what they took."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.as_of", description=__doc__)
    parser.add_argument("--index", type=int, default=1_000_000)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=4)
    options = parser.parse_args(argv)
    print(machine(), flush=True)
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        for time in (
            lambda: time_epochs(options.index, options.rounds, Path(folder) / "indexes"),
            lambda: time_builds(options.rows, options.rounds, Path(folder)) if options.rows else {},
        ):
            for what, taken in time().items():
                for name, each in taken.items():
                    figures[f"{what}, {name}"] = {"seconds": each.warm, "cpu": each.warm_cpu}
                    print(
                        f"{what}, {name}: {each.warm * 1000:,.0f} ms, {each.warm_cpu * 1000:,.0f} CPU ms",
                        flush=True,
                    )
    Results("as_of").write({"machine": machine(), **figures})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
