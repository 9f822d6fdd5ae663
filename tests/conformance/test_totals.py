"""Totals beyond 38 digits on Spark and Delta: the stream goes on, the build is published, both say the same."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.unit.model.test_totals import MOST, decimal, made, ordered, told, ugly, view

from seamline import Batch, KafkaSource, Pipeline, Session, Tumbling, View, avg, sum
from seamline.lake.engine import states
from seamline.lake.storage.arrow_types import INSTANT, partial_schema
from seamline.spark.tasks import measures as spark_measures

NOW = "2024-01-05"
LARGE = "99999999999999999999.999999999999999999"
"""The largest DECIMAL(38,18)."""
MEASURES = {"total": sum("amount"), "mean": avg("amount")}
VAULT = Pipeline(
    name="vault",
    source=KafkaSource(topic="gold", schema="k STRING, amount DECIMAL(38,18), at TIMESTAMP", event_time="at"),
    views=[
        View("hours", ["k"], Tumbling("1 hour"), MEASURES),
        View("visits", ["k"], Session("10 minutes"), MEASURES),
    ],
    batch=Batch("1 day", "2024-01-01"),
)


def record(k: str, amount: str, minute: int = 0, day: int = 1) -> bytes:
    """Write a record as a producer of exact numbers does."""
    at = f"2024-01-{day:02}T10:{minute:02}:00Z"
    return f'{{"k": "{k}", "amount": {amount}, "at": "{at}"}}'.encode()


def totals(life, name="hours", side="merged"):
    """Return the totals and means by key, of its last window."""
    shown = ("total", "total__beyond", "mean")
    return {row["k"]: tuple(row[each] for each in shown) for row in life.answer(name, side)}


@pytest.mark.parametrize("engine", ["plain", "spark"])
def test_a_total_beyond_the_type_is_told_and_stops_nothing(scenario, request, engine):
    """It used to raise in the epoch, which set the view aside for good, and in the build."""
    spark = {"spark": request.getfixturevalue("spark")} if engine == "spark" else {}
    life = scenario(VAULT, now=NOW, **spark)
    life.send(
        record("up", LARGE), record("up", LARGE, 1), record("round", LARGE), record("down", f"-{LARGE}")
    )
    life.epoch(edge=True)
    life.send(record("round", LARGE, 2), record("down", f"-{LARGE}", 3), record("up", "1", 4))
    life.epoch(edge=True)
    up = "200000000000000000000.999999999999999998"
    twice = "199999999999999999999.999999999999999998"
    expected = {
        "up": (None, up, float(Decimal(up)) / 3),
        "round": (None, twice, 1e20),
        "down": (None, f"-{twice}", -1e20),
    }
    assert totals(life) == totals(life, "visits") == expected
    life.send(record("round", f"-{LARGE}", 5), record("down", "0.000000000000000001", day=3))
    life.epoch(edge=True)
    expected["round"] = (Decimal(LARGE), None, float(Decimal(LARGE)) / 3)
    life.batch("2024-01-01")
    assert totals(life, side="batch") == totals(life, "visits", "batch") == expected
    few = {"down": (Decimal("0.000000000000000001"), None, 1e-18)}
    assert totals(life) == totals(life, "visits") == expected | few
    if spark:
        read_by_others(life, spark["spark"])
    last = life.ledger[-1]
    assert last.frontiers == {each.id: last.number for each in life.engine.pipeline.views}


def read_by_others(life, spark):
    """Read the master and the states by Spark itself: every digit is there."""
    layout, view = life.engine.layout, life.engine.pipeline.views[0]
    master = spark.read.format("delta").load(str(layout.table("master")))
    sent = [LARGE, LARGE, LARGE, f"-{LARGE}", LARGE, f"-{LARGE}", "1", f"-{LARGE}", "0.000000000000000001"]
    assert sorted(row.amount for row in master.select("amount").collect()) == sorted(map(Decimal, sent))
    assert dict(master.dtypes)["amount"] == "decimal(38,18)"
    held = spark.read.format("delta").load(str(layout.generations(view))).where("k = 'up'")
    [state] = held.select("total__sum", "total__carry").collect()
    assert (state.total__sum, state.total__carry) == (Decimal("0.999999999999999998"), 2)


SCALES = (0, 18, 38)


@pytest.mark.parametrize("scale", SCALES)
def test_spark_makes_the_states_that_the_kernel_makes(spark, tmp_path: Path, scale: int) -> None:
    """A build by Spark's general path is added to slices by the kernel's."""
    dice, type = random.Random(scale), f"DECIMAL(38,{scale})"
    rows = [(key, ugly(dice)) for key in range(30) for _ in range(dice.randint(1, 6))]
    rows += [(99, MOST), (99, MOST), (99, 1)]
    v = view(type)
    table = pa.table(
        {
            "k": pa.array([key for key, _ in rows], pa.int32()),
            "d": pa.array(
                [None if units is None else decimal(units, scale) for _, units in rows],
                pa.decimal128(38, scale),
            ),
            "p": [units is not None and units % 2 == 0 for _, units in rows],
            "_event_time": pa.array([0] * len(rows), INSTANT),
            "_partition": pa.array([0] * len(rows), pa.int32()),
            "_offset": pa.array(range(len(rows)), pa.int64()),
        }
    )
    pq.write_table(table, tmp_path / "rows.parquet")
    by_spark = spark_measures.compute_states(spark.read.parquet(str(tmp_path / "rows.parquet")), v).toArrow()
    by_spark = by_spark.cast(partial_schema(v))
    drop = ["pane"]
    assert ordered(by_spark).drop_columns(drop) == ordered(made(v, type, rows)).drop_columns(drop)
    [last] = [row for row in states.present_states(v, by_spark, ["k"]).to_pylist() if row["k"] == 99]
    assert (last["total"], last["total__beyond"]) == told(2 * MOST + 1, scale)
