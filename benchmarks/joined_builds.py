"""What the batch of a join costs: a day built, beside DuckDB's own join of the same files; then one late right row.

    python -m benchmarks.joined_builds [--rows 3000000] [--rounds 3]

A day has so many left and as many right rows, with keys of 36 characters; every right row is within the hour of its
left one. The shipped kernel, tables and build, in one Spark of this process; DuckDB, with all cores, joins what the
master's files have and counts the same by minute: pairs, left rows and those that have a pair. Both are asked in turn,
warm medians. Then one more right row comes, and the run of what is dirty is compared with that of the whole interval.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from functools import cached_property
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from benchmarks.builds import Year, spoken
from benchmarks.joins import BEGIN, JOINED
from benchmarks.joins import DEFINITION as TEXT
from benchmarks.kernels import records
from benchmarks.machine import machine
from benchmarks.results import Results
from benchmarks.turns import take_turns
from seamline.lake.log.master import Master
from seamline.lake.read.merged_read import read_merged_answer
from seamline.lake.storage.table_cache import Files
from seamline.model.compile.catalog import load_pipeline
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.job_arguments import BuildJob
from seamline.model.protocol.offsets import Lane, OffsetRange
from seamline.model.protocol.read_request import ReadRequest
from seamline.model.protocol.seam import Side
from seamline.model.time.intervals import Interval
from seamline.spark.build.build import build_intervals
from seamline.spark.session.session import open_spark_session

CHUNK = 200_000
NOW = BEGIN + timedelta(days=30)
DAY = Interval(BEGIN, BEGIN + timedelta(days=1))
SECONDS = 22 * 3600
BY_DUCKDB = """
WITH events AS (SELECT _source, ad, cost, "at" FROM read_parquet({paths})),
  pairs AS (SELECT s.ad, s."at", s.cost FROM events s JOIN events c ON s._source = 'shown' AND c._source = 'clicked'
    AND s.ad = c.ad AND c."at" >= s."at" AND c."at" <= s."at" + INTERVAL 1 HOUR),
  paired AS (SELECT time_bucket(INTERVAL 1 MINUTE, "at") AS minute, count(*) AS pairs, sum(cost) AS cost FROM pairs
    GROUP BY 1),
  lefts AS (SELECT time_bucket(INTERVAL 1 MINUTE, "at") AS minute, count(*) AS shown FROM events
    WHERE _source = 'shown' GROUP BY 1),
  hits AS (SELECT time_bucket(INTERVAL 1 MINUTE, "at") AS minute, count(*) AS hit FROM
    (SELECT DISTINCT ad, "at" FROM pairs) GROUP BY 1)
FROM lefts LEFT JOIN paired USING (minute) LEFT JOIN hits USING (minute)
"""


class Day(Year):
    """The engine of scenarios, fed with epochs of two topics."""

    @cached_property
    def ends(self) -> dict[str, int]:
        """The end offset of each topic."""
        return {"ads.shown": 0, "ads.clicked": 0}

    def hold(self, values: dict[str, list[bytes]]) -> None:
        """Hold one epoch of records by topic, an edge."""
        ranges, tables = [], []
        for topic, some in values.items():
            start = self.ends[topic]
            self.ends[topic] = start + len(some)
            ranges.append(OffsetRange(Lane(f"id of {topic}", 0), start, start + len(some)))
            tables.append(records(some, topic, start, at=NOW))
        blank = Epoch(-1, 0, NOW, self.pipeline.record_version, edge=True, ranges=tuple(ranges))
        held = self.commit(blank, pa.concat_tables(tables))
        assert held
        self.number = held.number


def fill(engine: Day, rows: int) -> None:
    """Hold a day of so many rows of each side, and what closes it."""
    for first in range(0, rows, CHUNK):
        numbers = range(first, min(first + CHUNK, rows))
        shown = [
            b'{"ad":"%036d","cost":%d,"at":"%s"}' % (each, each % 7, at(each, rows, 0)) for each in numbers
        ]
        clicked = [
            b'{"ad":"%036d","at":"%s"}' % (each, at(each, rows, each * 7919 % 3600)) for each in numbers
        ]
        engine.hold({"ads.shown": shown, "ads.clicked": clicked})
    later = (BEGIN + timedelta(days=2)).isoformat().encode()
    engine.hold({f"ads.{name}": [b'{"ad":"end","at":"%s"}' % later] for name in ("shown", "clicked")})


def at(number: int, rows: int, later: int) -> bytes:
    """Return the time of a left row, or so many seconds later."""
    moment = BEGIN + timedelta(microseconds=number * SECONDS * 1_000_000 // rows, seconds=later)
    return moment.isoformat().encode()


def build(engine: Day) -> None:
    """Build the day, without publishing it."""
    name = f"build {time.monotonic_ns()}"
    build_intervals(
        engine.spark,
        engine.pipeline,
        engine.layout,
        BuildJob("ads", name, Master.open(engine.layout).edge, (DAY,)),
    )


def totals(engine: Day) -> tuple[int, ...]:
    """Return what the view counts of the day."""
    view = engine.pipeline.view("by_minute")
    assert view
    request = ReadRequest(side=Side.BATCH, start=DAY.start, end=DAY.end)
    table = read_merged_answer(engine.pipeline, view, engine.layout, request).table
    return tuple(int(pc.sum(table[name]).as_py() or 0) for name in ("pairs", "shown", "hit", "cost"))


def by_duckdb(paths: list[str]) -> tuple[int, ...]:
    """Ask DuckDB for the same."""
    with duckdb.connect() as con:
        found = con.sql(BY_DUCKDB.format(paths=paths)).to_arrow_table()
    day = found.filter(pc.less(found["minute"], pa.scalar(DAY.end, found.schema.field("minute").type)))
    return tuple(int(pc.sum(day[name]).as_py() or 0) for name in ("pairs", "shown", "hit", "cost"))


def main(argv: list[str]) -> int:
    """Fill a master, let both join it in turn, and repair the day after a late row."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.joined_builds", description=__doc__)
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(argv)
    print(machine(), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        text = TEXT.format(topic="ads", joined=JOINED.format(reach="1 hour"), most=CHUNK)
        (home / "ads.py").write_text(text)
        spark = open_spark_session("benchmarks.joined_builds", memory="4g")
        engine = Day(load_pipeline(home, "ads"), home / "warehouse", spark)
        began = time.monotonic()
        fill(engine, options.rows)
        size = sum(Files.of(Master.open(engine.layout).table).actions["size_bytes"].to_pylist())
        print(
            f"{options.rows:,} rows of each side, {size / 1e6:,.0f} MB, {time.monotonic() - began:.0f} s",
            flush=True,
        )
        paths = DeltaTable(str(engine.layout.table("master"))).file_uris()
        asked: dict[str, Callable[[], object]] = {
            "seamline": lambda: build(engine),
            "duckdb": lambda: by_duckdb(paths),
        }
        taken = take_turns(asked, options.rounds)
        for name, each in taken.items():
            print(f"{name}: warm {each.warm:.2f} s, {each.warm_cpu:.2f} CPU s", flush=True)
        warm = {name: each.warm for name, each in taken.items()}
        print(f"seamline / duckdb: {warm['seamline'] / warm['duckdb']:.2f}", flush=True)
        whole, _ = engine.run(DAY)
        if (found := totals(engine)) != (wanted := by_duckdb(paths)):
            raise SystemExit(f"{found} were counted, there are {wanted}.")
        engine.hold({"ads.clicked": [b'{"ad":"%036d","at":"%s"}' % (7, at(7, options.rows, 1800))]})
        late, _ = engine.run(None)
        if totals(engine) != (found[0] + 1, *found[1:3], found[3] + 7 % 7):
            raise SystemExit(f"{totals(engine)} were counted after a late row, {found} before.")
        print(f"the day: {spoken(whole)}\none late right row: {spoken(late)}")
        print(f"one late right row / one interval: {sum(late) / sum(whole):.2f}")
    Results("joined_builds").write(
        {"machine": machine(), "warm": warm, "whole_s": sum(whole), "late_s": sum(late)}
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
