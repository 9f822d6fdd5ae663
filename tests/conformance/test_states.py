"""Every measure's state means the same in plain Python, in DuckDB and in Spark, whole or in pieces."""

from __future__ import annotations

import math
import random
import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.unit import own_measures

from seamline.lake.engine import states
from seamline.lake.engine.duckdb_connections import open_duckdb
from seamline.lake.engine.pane_ranges import to_unix_micros
from seamline.lake.storage.arrow_types import INSTANT, arrow_type, partial_schema
from seamline.model.compile.compiled_pipeline import CompiledView, compile_pipeline
from seamline.model.definition.layers import Batch
from seamline.model.definition.pipeline import Pipeline, View
from seamline.model.definition.sources import KafkaSource
from seamline.model.definition.windows import Session, Sliding, Tumbling, Window
from seamline.model.measures import (
    Measure,
    avg,
    collect_distinct,
    count,
    count_true,
    distinct,
    first,
    formula,
    histogram,
    last,
    max,
    min,
    own,
    present_all,
    quantile,
    quantiles,
    ratio,
    stddev,
    sum,
    top,
    variance,
)
from seamline.model.protocol.seam import windows_over
from seamline.model.time.intervals import floor_to
from seamline.model.time.window_arithmetic import Gaps
from seamline.spark.tasks import measures as spark_measures

SCHEMA = "k STRING, i INT, b BIGINT, x DOUBLE, d DECIMAL(10,2), s STRING, p BOOLEAN, dt DATE, at TIMESTAMP"
PLAIN = {
    "rows_all": count(),
    "some_i": count("i"),
    "sum_i": sum("i"),
    "sum_b": sum("b"),
    "sum_d": sum("d"),
    "avg_i": avg("i"),
    "avg_d": avg("d"),
    "min_x": min("x"),
    "max_b": max("b"),
    "min_s": min("s"),
    "max_s": max("s"),
    "max_p": max("p"),
    "min_dt": min("dt"),
    "max_at": max("at"),
    "max_d": max("d"),
    "late": count(where="x > 15"),
    "true": count_true("x > 15"),
    "true_i": count("i", where="x > 15 OR s = 'x'"),
    "sum_where": sum("d", where="p"),
    "avg_where": avg("i", where="x > 0"),
    "min_where": min("s", where="i > 10"),
    "first_s": first("s"),
    "first_d": first("d", where="p"),
    "last_x": last("x"),
    "last_dt": last("dt", where="i < 0"),
    "var_x": variance("x"),
    "var_d": variance("d", ddof=0, where="p"),
    "dev_b": stddev("b"),
    "dev_x": stddev("x", ddof=0),
    "delays": histogram("x", edges=[-50, 0, 0.5, 15]),
    "cents": histogram("d", edges=[0]),
    "share": ratio("late", "rows_all"),
}
MEASURES = {
    **PLAIN,
    "sum_x": sum("x"),
    "avg_x": avg("x"),
    "names": distinct("s"),
    "numbers": distinct("b"),
    "middle": quantile("x", 0.5),
    "high": quantile("i", 0.95),
    "lowest": quantile("x", 0.0),
    "several": quantiles("x", [0.9, 0.1, 1.0]),
    "some_names": distinct("s", where="p"),
    "few": collect_distinct("s", limit=3),
    "days": collect_distinct("dt", limit=1000, where="x > 0"),
    "cents_kept": collect_distinct("d", limit=2),
    "often": top("s", 3),
    "often_b": top("b", 2, where="p"),
    "often_d": top("dt", 50),
    "span": own("i", own_measures.Span),
    "letters": own("s", own_measures.Letters, where="p"),
    "geometric": own("x", own_measures.GeometricMean),
    "mean_where": formula("try_divide(total, n)", total=sum("x"), n=count("x"), where="i > 10"),
    "worth": formula("coalesce(most, 0.0D) - least", most=max("x"), least=min("x", where="p")),
    "yield": ratio("sum_x", "sum_d"),
}
HOURS = Tumbling("1 hour")
FEW = 150  # enough below the sizes at which sketches begin to estimate


def view(
    keys: list[str], where: str = "", window: Window = HOURS, measures: Mapping[str, Measure] = MEASURES
) -> CompiledView:
    """Compile a view, with every measure if none are given."""
    pipeline = Pipeline(
        name="p",
        source=KafkaSource(topic="t", schema=SCHEMA, event_time="at"),
        views=[View("v", keys=keys, window=window, measures=measures, where=where)],
        batch=Batch(interval="1 day", start="1960-01-01"),
    )
    return compile_pipeline(pipeline).views[0]


VIEWS = [
    view(["k"]),
    view([]),
    view(["k", "p"], where="i > 0 OR i IS NULL"),
    view(["k"], window=Sliding("2 hours", "20 minutes", offset="5 minutes")),
    view(["k", "p"], where="i > 0 OR i IS NULL", window=Session("7 minutes")),
    view([], window=Session("2 minutes")),
    view(["k"], measures=PLAIN),
    view(["k"], measures=PLAIN, window=Session("7 minutes")),
]
NAMES = [
    "keyed",
    "no keys",
    "where",
    "sliding",
    "sessions",
    "sessions without keys",
    "Spark's own",
    "Spark's own sessions",
]


def rows(count: int, seed: int = 1) -> list[dict[str, Any]]:
    """Make rows with NULLs everywhere, on both sides of 1970, a group with nothing in it among them."""
    dice = random.Random(seed)

    def maybe(value: Any) -> Any:
        return None if dice.random() < 0.2 else value

    made = []
    for _ in range(count):
        at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=dice.randrange(-(10**10), 10**10))
        row: dict[str, Any] = {
            "k": maybe(dice.choice(["a", "b", "é"])),
            "i": maybe(dice.randrange(-50, 50)),
            "b": maybe(dice.choice([2**62, -(2**62), 7, 8, dice.randrange(40)])),
            "x": maybe(dice.randrange(-400, 400) / 4),
            "d": maybe(Decimal(dice.randrange(-(10**9), 10**9)).scaleb(-2)),
            "s": maybe(dice.choice(["x", "y", "ü", "longer name", str(dice.randrange(30))])),
            "p": maybe(dice.random() < 0.5),
            "dt": maybe(at.date()),
            "at": at,
        }
        place = {"_event_time": at, "_partition": dice.randrange(3), "_offset": dice.randrange(10**6)}
        made.append({**row, **place})
    empty: dict[str, Any] = dict.fromkeys(made[0], None)
    moment = datetime(1990, 1, 1, tzinfo=UTC)
    return [
        *made,
        {**empty, "k": "nothing", "at": None, "_event_time": moment, "_partition": 0, "_offset": 0},
    ]


def table(found: list[dict[str, Any]]) -> pa.Table:
    """Make the rows an Arrow table of the declared types."""
    fields = [tuple(part.split(" ", 1)) for part in SCHEMA.split(", ")]
    place = [("_event_time", INSTANT), ("_partition", pa.int32()), ("_offset", pa.int64())]
    schema = pa.schema([*((name, arrow_type(type)) for name, type in fields), *place])
    return pa.Table.from_pylist(found, schema=schema)


def oracle(v: CompiledView, found: list[dict[str, Any]]) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Compute the answer the dull way."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in found:
        if not v.where or row["i"] is None or row["i"] > 0:
            keys = tuple(row[key.name] for key in v.keys)
            groups[keys].append(row)
    placed: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for keys, of_key in groups.items():
        placed |= {(*keys, *place): group for place, group in panes(v, of_key).items()}
    return {place: {"rows": len(group), **presented_by_hand(v, group)} for place, group in placed.items()}


WHERE: dict[str, Callable[[dict[str, Any]], Any]] = {
    "x > 15": lambda row: row["x"] is not None and row["x"] > 15,
    "x > 15 OR s = 'x'": lambda row: (row["x"] is not None and row["x"] > 15) or row["s"] == "x",
    "p": lambda row: row["p"],
    "x > 0": lambda row: row["x"] is not None and row["x"] > 0,
    "i > 10": lambda row: row["i"] is not None and row["i"] > 10,
    "i < 0": lambda row: row["i"] is not None and row["i"] < 0,
}


def presented_by_hand(v: CompiledView, group: list[dict[str, Any]]) -> dict[str, Any]:
    """Fold and present a group's rows; a row that a measure's condition does not meet is one of NULL."""
    places = [(row["_event_time"], row["_partition"], row["_offset"], 0) for row in group]
    measures = {each.name: each.measure for each in v.measures}
    folded = {}
    for name, measure in measures.items():
        met = [not measure.where or bool(WHERE[measure.where](row)) for row in group]
        values = [
            (row[measure.of] if measure.of else 1) if ok else None for row, ok in zip(group, met, strict=True)
        ]
        folded[name] = measure.fold(values, places)
    return {**present_all(measures, folded), **formulas_by_hand(v, group)}


def formulas_by_hand(v: CompiledView, group: list[dict[str, Any]]) -> dict[str, Any]:
    """Say in Python what the formulas say in SQL."""
    if not {"mean_where", "worth"} <= {each.name for each in v.measures}:
        return {}
    known = [row for row in group if row["x"] is not None]
    some = [row["x"] for row in known if WHERE["i > 10"](row)]
    paid = sorted(row["x"] for row in known if row["p"])
    highest = sorted((row["x"] for row in known), reverse=True) or [0.0]
    return {
        "mean_where": statistics.fmean(some) if some else None,
        "worth": highest[0] - paid[0] if paid else None,
    }


def panes(v: CompiledView, found: list[dict[str, Any]]) -> dict[tuple[datetime, ...], list[dict[str, Any]]]:
    """Put the rows of one key in panes, or in sessions that are cut at the borders of days."""
    length = v.interval if isinstance(v.windows, Gaps) else v.pane
    groups: dict[tuple[datetime, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in found:
        groups[floor_to(row["_event_time"], length),].append(row)
    if not isinstance(v.windows, Gaps):
        return groups
    placed = {}
    for of_day in groups.values():
        instants = [to_unix_micros(row["_event_time"]) for row in of_day]
        for places in windows_over(v.windows, instants).values():
            group = [of_day[at] for at in places]
            placed[group[0]["_event_time"], group[-1]["_event_time"]] = group
    return placed


def presented(v: CompiledView, found: pa.Table) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Present states as the oracle does."""
    names = [name for name in partial_schema(v).names if "__" not in name and name != "rows"]
    shown = states.present_states(v, found, [*names, "rows"]).to_pylist()
    return {
        tuple(row[name] for name in names): {k: w for k, w in row.items() if k not in names} for row in shown
    }


def assert_same(
    one: dict[tuple[Any, ...], dict[str, Any]], other: dict[tuple[Any, ...], dict[str, Any]]
) -> None:
    """Compare answers: exactly, but for the order in which doubles were added."""
    assert set(one) == set(other)
    for place, expected in other.items():
        for name, value in expected.items():
            got = one[place][name]
            assert is_close(got, value) or got == value, (place, name, got, value)


def is_close(got: Any, value: Any) -> bool:
    """Compare doubles; squared distances that cancel to nothing are compared with what was squared."""
    return (
        isinstance(value, float) and got is not None and math.isclose(got, value, rel_tol=1e-9, abs_tol=1e-9)
    )


def in_duckdb(v: CompiledView, found: list[dict[str, Any]]) -> pa.Table:
    """Compute states in DuckDB."""
    with open_duckdb() as con:
        con.register("found", table(found))
        return states.compute_row_states(con, v, "found")


@pytest.mark.parametrize("v", VIEWS, ids=NAMES)
def test_duckdb_agrees_with_plain_python(v: CompiledView) -> None:
    """The kernel's states must present what the definition says."""
    found = rows(FEW)
    made = in_duckdb(v, found)
    assert made.schema == partial_schema(v)
    assert_same(presented(v, made), oracle(v, found))


@pytest.mark.parametrize("v", VIEWS, ids=NAMES)
def test_pieces_add_up_to_the_whole(v: CompiledView) -> None:
    """Where epochs are cut cannot change an answer."""
    found = rows(FEW, seed=2)
    pieces = [in_duckdb(v, found[at::4]) for at in range(4)]
    merged = states.combine_states(v, [states.combine_states(v, pieces[:2]), *pieces[2:]])
    assert merged.schema == partial_schema(v)
    assert_same(presented(v, merged), oracle(v, found))


@pytest.mark.parametrize("v", VIEWS, ids=NAMES)
def test_what_one_task_made_needs_no_merging(v: CompiledView) -> None:
    """A small epoch is one task: its states are the slice as they are."""
    found = rows(FEW, seed=4)
    made = in_duckdb(v, found)
    assert states.combine_states(v, [made]).num_rows == made.num_rows
    assert states.combine_if_several(v, [made]).equals(made)
    assert_same(presented(v, states.combine_if_several(v, [made, made.slice(0, 0)])), oracle(v, found))


@pytest.mark.parametrize("v", VIEWS, ids=NAMES)
def test_spark_agrees_and_its_states_merge_with_duckdbs(
    spark: SparkSession, tmp_path: Path, v: CompiledView
) -> None:
    """An answer adds generations made by Spark to slices made by the kernel."""
    found = rows(FEW, seed=3)
    pq.write_table(table(found[::2]), tmp_path / "rows.parquet")
    by_spark = spark_measures.compute_states(spark.read.parquet(str(tmp_path / "rows.parquet")), v).toArrow()
    assert by_spark.column_names == partial_schema(v).names
    by_spark = by_spark.cast(partial_schema(v))
    assert_same(presented(v, by_spark), oracle(v, found[::2]))
    merged = states.combine_states(v, [by_spark, in_duckdb(v, found[1::2])])
    assert_same(presented(v, merged), oracle(v, found))


def test_no_states_are_no_states() -> None:
    """An interval without rows has an empty generation, not a missing one."""
    for v in VIEWS:
        assert states.combine_states(v, []).schema == partial_schema(v)
        assert states.present_states(v, states.combine_states(v, []), ["pane"]).num_rows == 0


def test_sketches_stay_within_their_bounds() -> None:
    """An approximate measure promises an error, and keeps the promise over many merges."""
    v = VIEWS[1]
    moment = datetime(2024, 1, 1, tzinfo=UTC)
    base = dict.fromkeys(rows(1)[0], None)
    pieces = [
        in_duckdb(
            v,
            [
                {
                    **base,
                    "s": f"n{part * 2000 + at}",
                    "x": float(at * 10 + part),
                    "_event_time": moment,
                    "_partition": 0,
                    "_offset": at,
                }
                for at in range(2000)
            ],
        )
        for part in range(10)
    ]
    (answer,) = presented(v, states.combine_states(v, pieces)).values()
    assert answer["rows"] == 20_000
    assert abs(answer["names"] - 20_000) < 20_000 * 0.05
    assert abs(answer["middle"] - 10_000) < 20_000 * 0.0165
