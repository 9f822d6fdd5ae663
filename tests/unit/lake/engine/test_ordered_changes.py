"""Changes that sorting finds are those that windows find, which Spark and steps of many rows go through."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from tests.unit.lake.engine.test_changed_index import find_changelog
from tests.unit.model.changes.test_changelogs import BANK
from tests.unit.model.changes.test_row_changes import ACCOUNTS

from seamline.lake.engine.changed_index import changed_schema, image_schema
from seamline.lake.engine.derived_rows import DUCKDB
from seamline.lake.engine.duckdb_connections import open_duckdb
from seamline.lake.engine.ordered_changes import order_changes
from seamline.lake.engine.row_order import MANY
from seamline.model.compile.changes.changes_sql import (
    GREATEST,
    changes_sql,
    contributions_sql,
    last_images_sql,
    list_image_fields,
    same_key_sql,
)
from seamline.model.compile.changes.compiled_changelog import DELETED, SIGN, CompiledChangelog

AT = datetime(2026, 1, 5, tzinfo=UTC)
VALUES: dict[str, list[Any]] = {
    "BIGINT": [None, -(2**63), -1, 0, 1, 2**63 - 1],
    "INT": [None, -1, 0, 1],
    "STRING": [None, "", "a", "b", "ab", "é", "Z"],
    "TIMESTAMP": [None, AT, AT + timedelta(microseconds=1), AT - timedelta(days=30_000)],
    "DATE": [None, AT.date(), AT.date() - timedelta(days=1)],
    "BOOLEAN": [None, True, False],
    "DECIMAL(38,4)": [None, Decimal("-1.5"), Decimal("1.5"), Decimal("12345678901234567890.0001")],
}
Rows = Counter[tuple[Any, ...]]


def make_changelog(keys: list[str], order: str) -> CompiledChangelog:
    """Make a changelog whose key has columns of some types, and whose order is of one; of none if it is empty."""
    columns = [f"k{at} {type}" for at, type in enumerate(keys)] + ([f"at {order}"] if order else [])
    source = replace(
        ACCOUNTS,
        schema=f"{', '.join(columns)}, country STRING, balance BIGINT, op STRING, happened TIMESTAMP",
        key=[f"k{at}" for at in range(len(keys))],
        order="at" if order else "",
        event_time="happened",
    )
    return find_changelog(replace(BANK, source=[source]))


def make_rows(changelog: CompiledChangelog, dice: random.Random, count: int, spread: int) -> pa.Table:
    """Make rows of some epochs, in no order; the keys and the orders are of few values, or of so many."""
    few = VALUES | ({"BIGINT": [*range(spread)]} if spread else {})
    numbers = dice.sample(range(count), count)
    columns: dict[str, list[Any]] = {
        "_topic_id": ["t"] * count,
        "_topic": [("a", "B")[number % 2] for number in numbers],
        "_partition": [number % 6 // 2 for number in numbers],
        "_offset": [number // 2 for number in numbers],
        "_epoch": [7 + number // 12 % 2 for number in numbers],
        "_event_time": [AT + timedelta(minutes=dice.randint(0, 300)) for _ in range(count)],
        DELETED: [dice.random() < 0.3 for _ in range(count)],
    }
    for each in changelog.sides[0].columns:
        if each.name not in columns:
            columns[each.name] = dice.choices(few[each.type.spark], k=count)
    schema = changed_schema(changelog)
    return pa.table([pa.array(columns[each.name], each.type) for each in schema], schema=schema)


def count_rows(table: pa.Table, names: list[str]) -> Rows:
    """Count the rows of a table."""
    return Counter(zip(*(table[name].to_pylist() for name in names), strict=True))


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB."""
    with open_duckdb() as opened:
        yield opened


def find_by_windows(
    con: duckdb.DuckDBPyConnection, changelog: CompiledChangelog, images: pa.Table, rows: pa.Table
) -> tuple[pa.Table, ...]:
    """Find by windows what rows take away and add, and what is known of their keys then."""
    con.register("images", images)
    con.register("new_rows", rows)
    found = changes_sql(changelog, "images", "new_rows", DUCKDB)
    con.execute(f"CREATE OR REPLACE TEMP TABLE changes AS {found}")
    made = [each(changelog, "changes", DUCKDB) for each in (contributions_sql, last_images_sql)]
    return tuple(con.sql(each).to_arrow_table() for each in made)


def drop_replaced(known: pa.Table, gone: list[int]) -> pa.Table:
    """Return what is still known."""
    return known.filter(pa.array([at not in gone for at in range(known.num_rows)], pa.bool_()))


def of_keys(
    con: duckdb.DuckDBPyConnection, changelog: CompiledChangelog, known: pa.Table, rows: pa.Table
) -> pa.Table:
    """Return what is known of the keys of rows."""
    con.register("known", known)
    con.register("new_rows", rows)
    same = same_key_sql(changelog, "known", "new_rows", DUCKDB)
    return con.sql(f"FROM known SEMI JOIN new_rows ON {same}").to_arrow_table().cast(known.schema)


@pytest.mark.parametrize("order", ["", "BIGINT", "INT", "TIMESTAMP", "STRING", "DECIMAL(38,4)"])
@pytest.mark.parametrize(
    "keys", [["BIGINT"], ["STRING", "DATE"], ["DECIMAL(38,4)", "BOOLEAN", "TIMESTAMP"]], ids="-".join
)
def test_sorting_finds_what_windows_find(con: duckdb.DuckDBPyConnection, keys: list[str], order: str) -> None:
    """Whatever types keys and orders have: NULLs, equal and late orders, deletions, epochs and topics in no order."""
    changelog, dice = make_changelog(keys, order), random.Random(f"{keys} {order}")
    names = [each.name for each in list_image_fields(changelog)] + [GREATEST, DELETED]
    counted = [SIGN, "_event_time", "_partition", "_offset", *(each.name for each in changelog.columns)]
    known = image_schema(changelog).empty_table()
    for _ in range(8):
        rows = make_rows(changelog, dice, dice.randint(0, 40), 0)
        images = of_keys(con, changelog, known, rows)
        signed, learned = find_by_windows(con, changelog, images, rows)
        found = order_changes(changelog, images, rows)
        assert count_rows(found.list_contributions(), counted) == count_rows(signed, counted)
        kept = pa.concat_tables([drop_replaced(images, found.replaced().tolist()), found.list_new_images()])
        assert count_rows(kept, names) == count_rows(learned, names)
        others = count_rows(known, names) - count_rows(images, names)
        known = pa.Table.from_pylist(
            [dict(zip(names, row, strict=True)) for row in (others + count_rows(kept, names)).elements()],
            known.schema,
        )


@pytest.mark.parametrize("order", ["", "BIGINT"])
def test_many_rows_are_put_in_order_by_numbers(con: duckdb.DuckDBPyConnection, order: str) -> None:
    """An epoch of many rows of many keys, whose orders rise and fall."""
    changelog, dice = make_changelog(["BIGINT"], order), random.Random(7)
    rows = make_rows(changelog, dice, MANY + 1, 30_000)
    counted = [SIGN, "_event_time", "_partition", "_offset", "country", "balance"]
    blank = image_schema(changelog).empty_table()
    signed, learned = find_by_windows(con, changelog, blank, rows)
    found = order_changes(changelog, blank, rows)
    assert count_rows(found.list_contributions(), counted) == count_rows(signed, counted)
    assert count_rows(found.list_new_images(), learned.column_names) == count_rows(
        learned, learned.column_names
    )
