"""Sinks into PostgreSQL and Redis in a definition: what is refused before anything starts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.model.refused import require_refused
from tests.unit.shop import DEFINITION, sales_pipeline

from seamline import Pipeline, PostgresSink, RedisSink
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.compile.stored_definition import from_json, to_json
from seamline.model.definition.sinks.sink_base import Sink

TABLE = PostgresSink("sales", table="sales")
KEYS = RedisSink("sales")
NAMED = "sinks[sales_postgres].table"


def with_sinks(*sinks: Sink, text: str = DEFINITION) -> Pipeline:
    """Declare the shop with sinks."""
    return replace(sales_pipeline(text=text).definition, sinks=sinks)


def test_sinks_are_stored_and_take_part_in_no_version() -> None:
    """Each may be added and left out at any time."""
    sinks = (TABLE, replace(KEYS, expire="7 days", prefix="live:", at_once=7))
    sinking = compile_pipeline(with_sinks(*sinks))
    assert [view.id for view in sinking.views] == [view.id for view in sales_pipeline().views]
    assert from_json(to_json(sinking.definition)).sinks == sinks


def test_what_is_sent_otherwise_is_another_form() -> None:
    """Rows of another time to live are written anew; a table has none."""
    assert KEYS.form == "change"
    assert replace(KEYS, expire="7 days").form != replace(KEYS, expire="8 days").form


@pytest.mark.parametrize(
    ("sinks", "field", "words"),
    [
        ([replace(TABLE, table="Sales")], NAMED, "lower-case letters"),
        ([replace(TABLE, table="pg_sales")], NAMED, "not pg_ in front"),
        ([replace(TABLE, table="s" * 51)], NAMED, "50 at most"),
        ([replace(TABLE, table="")], NAMED, "is not a name"),
        ([replace(TABLE, table='x"; DROP TABLE y; --')], NAMED, "is not a name"),
        ([replace(TABLE, table="seamline_positions")], NAMED, "keeps the positions"),
        ([replace(TABLE, schema="shop.eu")], "sinks[sales_postgres].schema", "schema can have here"),
        ([replace(TABLE, connection="a b")], "sinks[sales_postgres].connection", "Airflow"),
        ([TABLE, replace(TABLE, name="b")], "sinks[sales_postgres]", "overwrite each other's rows"),
        ([replace(KEYS, prefix="{live}")], "sinks[sales_redis].prefix", "slot"),
        ([replace(KEYS, prefix="a\n")], "sinks[sales_redis].prefix", "no brace"),
        ([replace(KEYS, expire="soon")], "sinks[sales_redis].expire", "is not a duration"),
        ([replace(KEYS, connection="a b")], "sinks[sales_redis].connection", "Airflow"),
        ([replace(KEYS, at_once=0)], "sinks[sales_redis].at_once", "0 is out of range"),
        ([replace(KEYS, at_once=40_001)], "sinks[sales_redis].at_once", "out of range"),
        ([replace(KEYS, expire=7)], "sinks[0].expire", "7 is not a duration"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(sinks: list[Sink], field: str, words: str) -> None:
    """PostgreSQL would refuse some names, and cut others without a word."""
    require_refused(with_sinks(*sinks), field, words, sinks[0].origin.file)


@pytest.mark.parametrize("name", ["ctid", "xmin", "c" * 64])
def test_a_column_that_no_table_can_have_is_refused(name: str) -> None:
    """Each table has columns of these names already; longer ones would be cut."""
    text = DEFINITION.replace("customer", name)
    found = with_sinks(TABLE, text=text)
    require_refused(found, "sinks[sales_postgres].view", "no column", TABLE.origin.file)
    assert compile_pipeline(with_sinks(KEYS, text=text)).views


def test_a_window_without_an_end_does_not_expire() -> None:
    """Nothing says when its rows would be old."""
    text = DEFINITION.replace('Tumbling("1 hour")', "Global()").replace("Tumbling", "Global")
    found = with_sinks(replace(KEYS, expire="1 day"), text=text)
    require_refused(found, "sinks[sales_redis].expire", "does not end", KEYS.origin.file)
