"""What the kernel makes of raw records, Spark counts alike: selection, sides, derived and nested columns."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from tests.unit.records import batch, kernel_run, pipeline

from seamline import Tumbling, View, count, first, last, sum
from seamline.lake.engine import states
from seamline.lake.engine.duckdb_connections import open_duckdb
from seamline.lake.storage.arrow_types import partial_schema
from seamline.model.compile.compiled_pipeline import CompiledView, compile_pipeline
from seamline.spark.build import general_path as builds
from seamline.spark.tasks import measures

SCHEMA = "id BIGINT NOT NULL, amount BIGINT, at TIMESTAMP, cart STRUCT<shop: STRING, tags: ARRAY<STRING>>"
SHOP = compile_pipeline(
    pipeline(
        SCHEMA,
        event_id=["id"],
        select={"shop": "cart.shop", "tag": "get(cart.tags, 0)"},
        where="amount > 0",
        side={"tests": "shop = 'test'"},
        views=[
            View(
                "by_shop",
                keys=["shop"],
                window=Tumbling("1 hour"),
                where="tag IS NOT NULL",
                measures={"n": count(), "total": sum("amount"), "tags": sum("size(cart.tags)")},
            ),
            View(
                "by_tag",
                keys=["tag_item", "shop"],
                window=Tumbling("1 hour"),
                where="tag_item <> 'c'",
                explode={"tag_item": "cart.tags"},
                measures={"n": count(), "total": sum("amount * length(tag_item)")},
            ),
            View("all_sales", keys=[], window=Tumbling("1 day"), measures={"n": count()}),
            View(
                "ends",
                keys=["shop"],
                window=Tumbling("1 hour"),
                explode={"tag_item": "cart.tags"},
                measures={"opened": first("tag_item"), "closed": last("tag_item", where="amount > 1")},
            ),
        ],
    )
)


def sales(size: int) -> list[dict[str, Any]]:
    """Make sales, some of them again, over two days."""
    dice = random.Random(7)
    made = []
    for at in range(size):
        tags = dice.choice([None, [], ["a"], ["b", "c"]])
        made.append(
            {
                "id": at if dice.random() < 0.8 else dice.randrange(size),
                "amount": dice.choice([None, 0, 1, 5, 7]),
                "at": f"2024-02-{dice.choice([28, 29])}T{dice.randrange(24):02d}:30:00Z",
                "cart": dice.choice([None, {"shop": dice.choice(["x", "y", "test"]), "tags": tags}]),
            }
        )
    return made


def shown(view: CompiledView, found: Any) -> list[tuple[Any, ...]]:
    names = [*(key.name for key in view.keys), "pane", "rows"]
    rows = states.present_states(
        view, found.select(partial_schema(view).names).cast(partial_schema(view)), names
    )
    return sorted((tuple(row.values()) for row in rows.to_pylist()), key=repr)


def test_the_kernel_and_the_general_path_see_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    """An answer adds the one to the other, and the certificate balances on the counts."""
    made = sales(300)
    result = kernel_run(tmp_path, SHOP, batch([json.dumps(each).encode() for each in made]))
    assert not result.refused
    rows = spark.read.parquet(str(tmp_path / "master"))
    for view in SHOP.views:
        by_spark = measures.compute_states(rows, view).toArrow()
        assert shown(view, by_spark) == shown(view, result.states[view.id][0])

    marked = builds.mark_duplicates(rows, SHOP).persist()
    found = builds.count_read_rows(marked, SHOP)
    kept = marked.where(~f.col(builds.SPARE))
    for view in SHOP.views:
        in_states = (
            measures.compute_states(kept, view, by=[builds.CELL])
            .groupBy(builds.CELL)
            .agg(f.sum("rows"))
            .collect()
        )
        held = {SHOP.grid.of(builds.EPOCH + cell * builds.MICROSECOND).id: total for cell, total in in_states}
        for interval, n in found.items():
            assert n.read == result.accepted[interval]
            left_out = n.not_selected[view.id] + n.duplicates - n.exploded.get(view.id, 0)
            assert n.read == held[interval] + left_out
    marked.unpersist()

    selected = [
        each
        for each in made
        if (each["cart"] or {}).get("shop") != "test" and each["amount"] is not None and each["amount"] > 0
    ]
    per_day = Counter(each["at"][:10] for each in selected)
    distinct = {(each["at"][:10], each["id"]) for each in selected}
    for interval, n in found.items():
        day = interval[:10]
        assert n.duplicates == per_day[day] - len([id for other, id in distinct if other == day])
        assert n.not_selected[SHOP.views[2].id] == n.read - per_day[day]


def test_a_column_of_before_is_not_the_item(spark: SparkSession, tmp_path: Path) -> None:
    """The master keeps what an earlier definition called by the name that a view now gives to an item."""
    result = kernel_run(tmp_path, SHOP, batch([json.dumps(each).encode() for each in sales(50)]))
    rows = spark.read.parquet(str(tmp_path / "master")).withColumn("tag_item", f.lit("of before"))
    found = rows.toArrow()
    for view in [view for view in SHOP.views if view.explode]:
        wanted = shown(view, result.states[view.id][0])
        assert shown(view, measures.compute_states(rows, view).toArrow()) == wanted
        with open_duckdb() as con:
            con.register("found", found)
            assert shown(view, states.compute_row_states(con, view, "found")) == wanted
