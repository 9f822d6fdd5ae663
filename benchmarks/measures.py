"""What each measure costs: rows/s of the kernel's aggregate, states/s of merging, at 5 and 500 rows a group.

python -m benchmarks.measures [ROWS] [MEASURE ...]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

import numpy as np
import pyarrow as pa

from seamline import (
    Batch,
    KafkaSource,
    Pipeline,
    Tumbling,
    View,
    avg,
    collect_distinct,
    count,
    distinct,
    first,
    formula,
    histogram,
    own,
    quantile,
    stddev,
    sum,
    top,
)
from seamline.lake.engine import states
from seamline.lake.engine.duckdb_connections import open_duckdb
from seamline.model.compile.compiled_pipeline import CompiledView, compile_pipeline
from seamline.model.measures import Measure

T = TypeVar("T")
MEASURES: dict[str, Measure] = {
    "count": count(),
    "count_where": count(where="x > 15"),
    "sum_int": sum("i"),
    "sum_double": sum("x"),
    "avg_double": avg("x"),
    "stddev": stddev("x"),
    "first": first("s"),
    "distinct": distinct("s"),
    "quantile": quantile("x", 0.95),
    "top": top("s", 3),
    "histogram": histogram("x", [0, 15, 60]),
    "collect": collect_distinct("s"),
    "formula": formula("try_divide(total, n)", total=sum("x"), n=count("x")),
    "own": own("x", "tests.unit.own_measures:Span"),
}
PIECES = 10


def compiled(measures: dict[str, Measure]) -> CompiledView:
    """Compile a view of these measures."""
    source = KafkaSource(
        topic="t", schema="k BIGINT, i INT, x DOUBLE, s STRING, at TIMESTAMP", event_time="at"
    )
    view = View("v", keys=["k"], window=Tumbling("1 day"), measures=measures)
    return compile_pipeline(Pipeline("p", source, [view], Batch("1 day", "2024-01-01"))).views[0]


def rows(count: int, per_group: int) -> pa.Table:
    """Make rows with so many per group, their groups in no order."""
    dice = np.random.default_rng(1)
    moment = int(datetime(2024, 1, 1, tzinfo=UTC).timestamp() * 1e6)
    return pa.table(
        {
            "k": dice.permutation(count) // per_group,
            "i": dice.integers(0, 1000, count).astype(np.int32),
            "x": dice.normal(10, 30, count).round(2),
            "s": pa.array([f"N{number:05d}" for number in dice.integers(0, 4000, count)]),
            "_event_time": pa.array(moment + dice.integers(0, 10**9, count)).cast(pa.timestamp("us", "UTC")),
            "_partition": pa.array(np.zeros(count, np.int32)),
            "_offset": np.arange(count),
        }
    )


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """Take the better of two runs."""
    seconds = []
    for _ in range(2):
        began = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - began)
    return min(seconds), result


def report(name: str, view: CompiledView, table: pa.Table) -> None:
    """Print one line."""
    size = table.num_rows // PIECES
    with open_duckdb() as con:

        def prepare(at: int) -> pa.Table:
            con.register("found", table.slice(at * size, size))
            return states.compute_row_states(con, view, "found")

        one, _ = timed(lambda: prepare(0))
        pieces = [prepare(at) for at in range(PIECES)]
    two, merged = timed(lambda: states.combine_states(view, pieces))
    three, _ = timed(lambda: states.present_states(view, merged, ["pane"]))
    given = pa.concat_tables(pieces).num_rows
    print(
        f"{name:12} {size / one:>12,.0f} rows/s {given / two:>12,.0f} states merged/s "
        f"{merged.num_rows / three:>12,.0f} presented/s  {merged.nbytes / merged.num_rows:>8,.0f} bytes/group"
    )


def main() -> None:
    """Measure every measure by itself, and all of them in one view."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    chosen = {name: MEASURES[name] for name in sys.argv[2:]} or MEASURES
    for per_group in (5, 500):
        print(f"{per_group} rows per group, {count} rows in {PIECES} pieces")
        table = rows(count, per_group)
        for name, measure in chosen.items():
            report(name, compiled({name: measure}), table)
        report("all", compiled(chosen), table)


if __name__ == "__main__":
    main()
