"""A table of PostgreSQL as a target, on a real server: what it holds is what the view showed at the position."""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from typing import Any

import psycopg
import pytest
import sqlalchemy
from tests.e2e.sinks.served_rows import KEYS, MEASURES, ServedRows, make_view
from tests.services.addresses import Postgres

from seamline import Global, PostgresSink, count, sum
from seamline.model.compile.compiled_pipeline import CompiledView
from seamline.model.errors import Fenced, SetupError
from seamline.serve.query import format_scalar
from seamline.sinks.postgres.copied_rows import escape_parts
from seamline.sinks.postgres.target import PostgresTarget
from seamline.sinks.server_connections import ServerConnection
from seamline.sinks.target import ChangeBatch
from seamline.sinks.target_errors import TargetUnavailable

SINK = PostgresSink("by_till", table="by_till", schema="shop")


def connect(postgres: Postgres) -> ServerConnection:
    """Return the connection of a sink to a test's database."""
    return ServerConnection(
        "shop_db",
        "postgres",
        postgres.host,
        postgres.port,
        postgres.user,
        postgres.password,
        postgres.database,
    )


@pytest.fixture
def held(postgres: Postgres) -> Iterator[psycopg.Connection]:
    """A stranger's session, who reads what is there."""
    with psycopg.connect(postgres.url, autocommit=True) as session:
        session.execute("SET TIME ZONE 'UTC'")
        yield session


def make_target(postgres: Postgres, view: CompiledView, sink: PostgresSink = SINK) -> PostgresTarget:
    """Make a target of a view's."""
    return PostgresTarget(sink, view, connect(postgres))


def read_rows(held: psycopg.Connection, served: ServedRows) -> list[str]:
    """Read the rows that a table has, each as JSON."""
    names = [name for name in served.schema.names if "__" not in name or name.endswith("__beyond")]
    chosen = psycopg.sql.SQL(", ").join(map(psycopg.sql.Identifier, names))
    found = held.execute(psycopg.sql.SQL("SELECT {} FROM shop.by_till").format(chosen)).fetchall()
    rows = (dict(zip(names, row, strict=True)) for row in found)
    # jsonb gives 1e300 back with all of its zeros, and knows one zero.
    return sorted(spell({**row, "levels": without_numbers(row.get("levels"))}) for row in rows)


def expect_rows(served: ServedRows) -> list[str]:
    """Return the rows that a table should have, each as JSON."""
    rows = []
    for row in served.as_table().to_pylist():
        kept = {name: value for name, value in row.items() if "__" not in name or name.endswith("__beyond")}
        kept["interval"] = datetime.fromisoformat(kept["interval"])
        rows.append(spell(escape_parts({**kept, "levels": without_numbers(kept.get("levels"))})))
    return sorted(rows)


def without_numbers(value: Any) -> Any:
    """Return a list as JSON has it: what is no number is null."""
    return value and [
        float(each) + 0.0 if each is not None and abs(each) < float("inf") else None for each in value
    ]


def spell(row: dict[str, Any]) -> str:
    """Write a row as JSON."""
    return json.dumps(row, default=format_scalar, sort_keys=True)


@pytest.mark.parametrize("sets", [(), [["shop"], ["shop", "day", "till"]]], ids=["plain", "grouped"])
def test_a_table_has_what_the_view_shows(
    postgres: Postgres, held: psycopg.Connection, sets: list[list[str]]
) -> None:
    """Ugly texts, NULL keys and numbers that are none arrive as they are, version after version."""
    served = ServedRows(make_view(grouping_sets=sets), 1, 300)
    with closing(make_target(postgres, served.view)) as target:
        assert target.take_over() is None
        target.write(served.whole(100), served.position)
        assert read_rows(held, served) == expect_rows(served)
        for _ in range(3):
            target.write([served.change(40, 30, 20), served.change(10, 5, 5)], served.position)
            assert read_rows(held, served) == expect_rows(served)
        assert target.take_over() == served.position


def test_an_earlier_writer_is_refused(postgres: Postgres, held: psycopg.Connection) -> None:
    """Two processes that both believe that the sink is theirs must not write in turns."""
    served = ServedRows(make_view(), 2, 50)
    with (
        closing(make_target(postgres, served.view)) as first,
        closing(make_target(postgres, served.view)) as second,
    ):
        first.take_over()
        first.write(served.whole(), served.position)
        before = expect_rows(served)
        assert second.take_over() == served.position
        position = served.position
        with pytest.raises(Fenced, match="token is 2, this one's 1"):
            first.write([served.change(5, 5)], served.position)
        with pytest.raises(Fenced):
            first.clear()
        assert read_rows(held, served) == before
        assert second.take_over() == position


def test_a_frozen_writer_is_put_out(postgres: Postgres) -> None:
    """It may hold the position for as long as it is frozen, and nobody could go on."""
    served = ServedRows(make_view(), 3, 50)
    with (
        closing(make_target(postgres, served.view)) as first,
        closing(make_target(postgres, served.view)) as second,
    ):
        first.take_over()

        def freeze() -> Iterator[ChangeBatch]:
            yield from served.whole()
            assert second.take_over() is None

        with pytest.raises(TargetUnavailable, match="ended the session|does not answer"):
            first.write(freeze(), served.position)
        second.write(served.whole(), served.position)
        assert second.take_over() == served.position


def test_a_connection_that_dies_before_the_commit_has_changed_nothing(
    postgres: Postgres, held: psycopg.Connection
) -> None:
    """All rows are written and the position is not yet: neither is there afterwards, and nothing is there twice."""
    served = ServedRows(make_view(), 4, 50)
    with closing(make_target(postgres, served.view)) as target:
        target.take_over()
        target.write(served.whole(), served.position)
        before, position, change = expect_rows(served), served.position, served.change(20, 10, 10)

        def die() -> Iterator[ChangeBatch]:
            yield change
            held.execute("SELECT pg_terminate_backend(writer) FROM shop.seamline_positions")

        with pytest.raises(TargetUnavailable):
            target.write(die(), served.position)
        with pytest.raises(TargetUnavailable, match="connection .* lost"):
            target.write([change], served.position)
        assert read_rows(held, served) == before
        assert target.take_over() == position
        target.write([change], served.position)
        assert read_rows(held, served) == expect_rows(served)


def test_a_difference_may_take_several_transactions(postgres: Postgres, held: psycopg.Connection) -> None:
    """A first difference is large; a writer that follows goes on where the one before was."""
    served = ServedRows(make_view(), 5, 90)
    batches = served.whole(30)
    for at, batch in enumerate(batches):
        with closing(make_target(postgres, served.view)) as target:
            assert target.take_over() == (served.on_the_way(30 * at) if at else None)
            last = at == len(batches) - 1
            target.write([batch], served.position if last else served.on_the_way(30 * (at + 1)))
    assert read_rows(held, served) == expect_rows(served)


def test_a_table_is_cleared_and_written_anew(postgres: Postgres, held: psycopg.Connection) -> None:
    """The way out of whatever somebody has done to the table."""
    served = ServedRows(make_view(), 6, 50)
    with closing(make_target(postgres, served.view)) as target:
        target.take_over()
        target.write(served.whole(), served.position)
        target.clear()
        assert read_rows(held, served) == []
        assert target.take_over() is None
        target.write(served.whole(), served.position)
    assert read_rows(held, served) == expect_rows(served)


@pytest.mark.parametrize(
    "harm",
    [
        "ALTER TABLE shop.by_till DROP COLUMN mean",
        "DROP TABLE shop.by_till CASCADE",
        "DELETE FROM shop.seamline_positions",
        "DROP TABLE shop.seamline_positions",
        "ALTER TABLE shop.by_till DROP CONSTRAINT by_till_key",
    ],
)
def test_what_somebody_has_changed_is_mended(postgres: Postgres, held: psycopg.Connection, harm: str) -> None:
    """A sink says so, starts again, and its table is whole; rows that nobody shows are gone."""
    served = ServedRows(make_view(), 7, 50)
    with closing(make_target(postgres, served.view)) as target:
        target.take_over()
        target.write(served.whole(), served.position)
        held.execute(harm)
        change = served.change(5, 10, 5)
        with pytest.raises(
            TargetUnavailable, match=r"Somebody has .* \(connection 'shop_db'\)|Somebody has deleted"
        ):
            target.write([change], served.position)
        assert target.take_over() is None
        target.write(served.whole(), served.position)
        assert read_rows(held, served) == expect_rows(served)
        assert target.take_over() == served.position


def test_a_table_of_somebody_else_is_left_alone(postgres: Postgres, held: psycopg.Connection) -> None:
    """A name that was taken by mistake must not cost anybody a table."""
    held.execute(
        "CREATE SCHEMA shop; CREATE TABLE shop.by_till (id int); INSERT INTO shop.by_till VALUES (7)"
    )
    view = make_view()
    with (
        closing(make_target(postgres, view)) as target,
        pytest.raises(SetupError, match="not of sink") as caught,
    ):
        target.take_over()
    assert "table=" in caught.value.hint
    assert held.execute("SELECT id FROM shop.by_till").fetchall() == [(7,)]


def test_columns_come_with_the_definition(postgres: Postgres, held: psycopg.Connection) -> None:
    """A measure more is a column more; one less is NULL in all rows, and what somebody has added stays."""
    served = ServedRows(make_view(), 8, 50)
    with closing(make_target(postgres, served.view)) as target:
        target.take_over()
        target.write(served.whole(), served.position)
    held.execute("ALTER TABLE shop.by_till ADD COLUMN remark text")
    fewer = {name: each for name, each in MEASURES.items() if name != "n"}
    other = ServedRows(make_view(measures={**fewer, "added": count()}), 8, 40)
    with closing(make_target(postgres, other.view)) as target:
        assert target.take_over() is None
        target.write(other.whole(), other.position)
    assert read_rows(held, other) == expect_rows(other)
    assert held.execute("SELECT count(n), count(remark), count(*) FROM shop.by_till").fetchone() == (0, 0, 40)


def test_a_type_becomes_a_wider_one_and_no_other(postgres: Postgres, held: psycopg.Connection) -> None:
    """What would lose digits is refused, with what to do."""
    schema = "shop STRING, till {}, amount DOUBLE, sold_at TIMESTAMP NOT NULL"
    keys, measures = ("shop", "till"), {"n": count()}

    def declare(till: str) -> CompiledView:
        return make_view(keys, measures, schema=schema.format(till))

    served = ServedRows(declare("INT"), 9, 30)
    with closing(make_target(postgres, served.view)) as target:
        target.take_over()
        target.write(served.whole(), served.position)
    with closing(make_target(postgres, declare("BIGINT"))) as target:
        assert target.take_over() == served.position
    assert read_rows(held, served) == expect_rows(served)
    refused = r"Column 'till' of table shop.by_till is bigint, and the view's is text"
    with (
        closing(make_target(postgres, declare("STRING"))) as target,
        pytest.raises(SetupError, match=refused) as told,
    ):
        target.take_over()
    assert "DROP COLUMN till" in told.value.hint


def test_a_measure_that_comes_back_with_another_type_is_said(
    postgres: Postgres, held: psycopg.Connection
) -> None:
    """The column that it left has the type that it had; without the column the sink makes it as it is now."""
    fewer = {name: each for name, each in MEASURES.items() if name != "n"}
    for measures in (MEASURES, fewer):
        served = ServedRows(make_view(measures=measures), 15, 20)
        with closing(make_target(postgres, served.view)) as target:
            assert target.take_over() is None
            target.write(served.whole(), served.position)
    other = ServedRows(make_view(measures={**fewer, "n": MEASURES["mean"]}), 15, 20)
    with closing(make_target(postgres, other.view)) as target:
        with pytest.raises(SetupError, match="Column 'n' of table shop.by_till is bigint") as told:
            target.take_over()
        held.execute(told.value.hint.split('"')[1])
        assert target.take_over() is None
        target.write(other.whole(), other.position)
    assert read_rows(held, other) == expect_rows(other)


def test_other_keys_are_another_table(postgres: Postgres, held: psycopg.Connection) -> None:
    """Rows of other keys cannot be told apart by those of before."""
    served = ServedRows(make_view(), 10, 50)
    with closing(make_target(postgres, served.view)) as target:
        target.take_over()
        target.write(served.whole(), served.position)
    other = ServedRows(make_view(keys=("shop",), measures={"n": count(), "total": sum("amount")}), 10, 20)
    with closing(make_target(postgres, other.view)) as target:
        assert target.take_over() is None
        target.write(other.whole(), other.position)
        target.write([other.change(5, 5, 5)], other.position)
    assert read_rows(held, other) == expect_rows(other)


def test_a_window_without_an_end_has_rows_too(postgres: Postgres, held: psycopg.Connection) -> None:
    """Its end is NULL, by which no index of before PostgreSQL 15 tells rows apart."""
    served = ServedRows(make_view(window=Global()), 11, 50)
    with closing(make_target(postgres, served.view)) as target:
        target.take_over()
        target.write(served.whole(), served.position)
        target.write([served.change(20, 10, 10)], served.position)
    assert read_rows(held, served) == expect_rows(served)


def test_a_key_that_no_index_holds_is_refused_by_name(postgres: Postgres) -> None:
    """PostgreSQL would say neither which row it was, nor what to do."""
    served = ServedRows(make_view(), 12, 3)
    [row, *_] = served.rows.values()
    row["shop"] = "long" * 1000
    with closing(make_target(postgres, served.view)) as target:
        target.take_over()
        with pytest.raises(SetupError, match="key of 4000 bytes .*shop='longlong") as caught:
            target.write(served.whole(), served.position)
    assert "left(shop, 500)" in caught.value.hint


def test_newer_rows_are_not_replaced(postgres: Postgres, held: psycopg.Connection) -> None:
    """Another warehouse that writes the same table would go back and forth with this one."""
    served = ServedRows(make_view(), 13, 30)
    with closing(make_target(postgres, served.view)) as target:
        target.take_over()
        target.write(served.whole(), served.position)
        held.execute("UPDATE shop.by_till SET manifest_version = 99")
        with pytest.raises(SetupError, match="10 rows of table shop.by_till are newer"):
            target.write([served.change(10, 0)], served.position)


def test_a_login_that_is_refused_names_the_connection_and_no_password(postgres: Postgres) -> None:
    """The message stands in logs and on pages."""
    wrong = replace(connect(postgres), password="s3cret-of-mine")
    with pytest.raises(SetupError, match=r"connection 'shop_db'.*user 'seamline'") as caught:
        PostgresTarget(SINK, make_view(), wrong).take_over()
    away = replace(connect(postgres), port=1)
    with pytest.raises(TargetUnavailable, match=r"127.0.0.1:1 \(connection 'shop_db'\)") as gone:
        PostgresTarget(SINK, make_view(), away).take_over()
    said = "".join(traceback.format_exception(caught.value)) + "".join(traceback.format_exception(gone.value))
    assert "s3cret" not in said and postgres.password not in said


def test_a_role_needs_rights_and_is_told_so(postgres: Postgres, held: psycopg.Connection) -> None:
    """Who runs the server must know what to grant."""
    held.execute("CREATE SCHEMA shop")
    held.execute("CREATE ROLE reporter_of_shop LOGIN PASSWORD 'x'")
    try:
        poor = replace(connect(postgres), login="reporter_of_shop", password="x")
        with pytest.raises(SetupError, match="'reporter_of_shop' lacks a right"):
            PostgresTarget(SINK, make_view(), poor).take_over()
    finally:
        held.execute("DROP ROLE reporter_of_shop")


def test_tools_find_columns_keys_and_intervals(postgres: Postgres) -> None:
    """A tool that knows nothing of us reads types, what is unique, and which intervals are certified."""
    served = ServedRows(make_view(), 14, 50)
    with closing(make_target(postgres, served.view)) as target:
        target.take_over()
        target.write(served.whole(), served.position)
    engine = sqlalchemy.create_engine(postgres.url.replace("postgresql:", "postgresql+psycopg:"))
    try:
        found = sqlalchemy.MetaData(schema="shop")
        found.reflect(engine, views=True)
        table, intervals = found.tables["shop.by_till"], found.tables["shop.by_till_intervals"]
        assert str(table.c.total.type) == "NUMERIC(38, 2)" and table.c.window_start.type.timezone
        [unique] = sqlalchemy.inspect(engine).get_unique_constraints("by_till", schema="shop")
        assert unique["column_names"] == [*KEYS, "window_start", "window_end"]
        with engine.connect() as session:
            rows = session.execute(sqlalchemy.select(intervals)).mappings().all()
            [total] = session.execute(sqlalchemy.select(sqlalchemy.func.sum(intervals.c.rows))).one()
        assert total == 50 and {"certified", "complete", "complete_to"} <= rows[0].keys()
    finally:
        engine.dispose()
