"""What rows have added is taken away again: what is presented is as if they had not been there, in each engine."""

from __future__ import annotations

import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.conformance.test_states import SCHEMA, rows, table

from seamline.lake.engine import states
from seamline.lake.engine.duckdb_connections import open_duckdb
from seamline.model.compile.compiled_pipeline import CompiledView, compile_pipeline
from seamline.model.definition.layers import Batch
from seamline.model.definition.pipeline import Pipeline, View
from seamline.model.definition.sources import KafkaSource
from seamline.model.definition.windows import Tumbling
from seamline.model.errors import DefinitionError
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
    make_net,
    max,
    min,
    negate_state,
    own,
    quantile,
    quantiles,
    ratio,
    stddev,
    sum,
    top,
    variance,
)
from seamline.spark.tasks.measures import compute_states

COLUMNS = f"{SCHEMA}, w DECIMAL(38,0)"
NET: dict[str, Measure] = {
    "rows_all": count(),
    "some_i": count("i", where="p"),
    "true": count_true("x > 15"),
    "sum_i": sum("i"),
    "sum_d": sum("d", where="i > 0"),
    "sum_wide": sum("CAST(d AS DECIMAL(38,2))"),
    "avg_b": avg("b"),
    "delays": histogram("x", edges=[-50, 0, 0.5, 15]),
    "share": ratio("true", "rows_all"),
    "others": formula("try_subtract(a, b)", a=count(), b=count("i")),
}
REFUSED = [
    min("i"),
    max("i"),
    first("i"),
    last("i"),
    distinct("i"),
    quantile("x", 0.5),
    quantiles("x", [0.5]),
    top("s", 2),
    collect_distinct("s"),
    variance("x"),
    stddev("x"),
    own("x", "tests.unit.own_measures:Span"),
    formula("m", m=max("i")),
]


def net_view(**measures: Measure) -> CompiledView:
    """Compile a view of measures as they are for rows that can be withdrawn."""
    made = {name: make_net(each) for name, each in measures.items()}
    pipeline = Pipeline(
        name="net",
        source=KafkaSource(topic="t", schema=COLUMNS, event_time="at"),
        views=[View("v", keys=["k"], window=Tumbling("1 hour"), measures=made)],
        defaults="2026-11",
        batch=Batch(interval="1 day", start="1969-01-01"),
    )
    return compile_pipeline(pipeline).views[0]


VIEW = net_view(**NET)


def in_duckdb(spark: SparkSession, found: pa.Table) -> pa.Table:
    """Compute states in DuckDB."""
    con = open_duckdb()
    con.register("found", found)
    return states.compute_row_states(con, VIEW, "found")


def in_spark(spark: SparkSession, found: pa.Table) -> pa.Table:
    """Compute states in Spark."""
    return compute_states(spark.createDataFrame(found), VIEW).toArrow()


def presented(found: pa.Table) -> list[dict[str, Any]]:
    """Present the panes that have rows."""
    whole = states.combine_states(VIEW, [found])
    shown = states.present_states(VIEW, whole, ["k", "pane", "rows"]).to_pylist()
    return sorted((row for row in shown if row["rows"]), key=lambda row: (row["k"] or "", row["pane"]))


@pytest.mark.parametrize("engine", [in_duckdb, in_spark])
def test_rows_that_are_withdrawn_have_never_been_there(
    spark: SparkSession, engine: Callable[[SparkSession, pa.Table], pa.Table]
) -> None:
    """A pane of which the last row is withdrawn has none; a total of which the last value is, is NULL."""
    everything = rows(400)
    some = random.Random(3).sample(everything, 150)
    kept = [row for row in some if (row["k"], row["_event_time"].hour) != ("a", 1)]
    gone = [row for row in everything if row not in kept]
    added, withdrawn = engine(spark, table(everything)), engine(spark, table(gone))
    left = states.combine_states(VIEW, [added, states.negate_states(VIEW, withdrawn)])
    assert presented(left) == presented(in_duckdb(spark, table(kept)))
    assert any(row["sum_d"] is None and row["rows"] > 0 for row in presented(left))
    assert any(not row["rows"] for row in left.to_pylist())


@pytest.mark.parametrize("name", [each for each in NET if each not in ("share", "others")])
def test_the_plain_meaning_is_the_same(name: str) -> None:
    """The oracle of the engines withdraws, too."""
    measure = make_net(NET[name])
    values = [None, 3, -4, 5, None, 3]
    whole, part = measure.fold(values), measure.fold(values[2:])
    assert measure.present(measure.plus(whole, negate_state(part))) == measure.present(
        measure.fold(values[:2])
    )
    none = measure.plus(whole, negate_state(whole))
    assert measure.present(none) == measure.present(measure.zero)


def test_the_plain_meaning_has_all_digits() -> None:
    """A minus sign of Python leaves 28 of them, and the oracle would blame the engines."""
    long = Decimal("9" * 20 + "." + "9" * 18)
    assert negate_state((long, 1)) == (long.copy_negate(), -1)


@pytest.mark.parametrize("measure", REFUSED, ids=lambda each: each.kind)
def test_measures_that_cannot_give_back_are_refused(measure: Measure) -> None:
    """With the reason, for each kind there is."""
    with pytest.raises(DefinitionError, match="cannot subtract them") as raised:
        make_net(measure)
    assert raised.value.hint


@pytest.mark.parametrize("measure", [sum("x"), avg("x"), sum("x * 2")])
def test_totals_of_doubles_are_refused(measure: Measure) -> None:
    """An infinite value would stay in the total for ever."""
    with pytest.raises(DefinitionError, match="cannot be taken out of a total") as raised:
        net_view(total=measure)
    assert "DECIMAL" in str(raised.value)


def test_a_mean_of_nothing_is_null() -> None:
    """A row without a value is left where the only value was withdrawn: 0 / 0 is no mean."""
    con = open_duckdb()
    one, none = (
        table([{**row, "k": "a", "b": b}]) for row, b in zip(rows(1)[:1] * 2, (5, None), strict=True)
    )
    con.register("two_rows", pa.concat_tables([one, none]))
    con.register("one_row", one)
    both, gone = (states.compute_row_states(con, VIEW, name) for name in ("two_rows", "one_row"))
    left = states.combine_states(VIEW, [both, states.negate_states(VIEW, gone)])
    [shown] = states.present_states(VIEW, left, ["rows"]).to_pylist()
    assert (shown["rows"], shown["avg_b"]) == (1, None)


def test_totals_beyond_a_decimal_come_back() -> None:
    """What was carried is taken away as well."""
    wide, most = net_view(total=sum("w")), Decimal(10**38 - 1)
    con = open_duckdb()
    one = table(rows(1)[:1]).append_column("w", pa.array([most], pa.decimal128(38, 0)))
    con.register("many", pa.concat_tables([one] * 3))
    con.register("two", pa.concat_tables([one] * 2))
    three, two = (states.compute_row_states(con, wide, name) for name in ("many", "two"))
    left = states.combine_states(wide, [three, states.negate_states(wide, two)])
    [shown] = states.present_states(wide, three, ["rows"]).to_pylist()
    assert (shown["total"], shown["total__beyond"]) == (None, str(3 * int(most)))
    assert states.present_states(wide, left, ["rows"])["total"].to_pylist() == [most]
