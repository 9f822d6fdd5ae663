"""Queries that are planned once: an epoch asks the same of other rows, and planning takes longer than answering."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from itertools import count
from weakref import WeakKeyDictionary

import duckdb
import pyarrow as pa

from seamline.lake.engine.measures import quote_identifier

MOST = 500_000
"""Characters of the queries whose plans a connection keeps; a plan takes some 80 bytes for each of them."""
FEW = 20_000
"""Up to so many rows a query is planned once; above, planning is little of the work, and a plan that is made for the
number of rows is better."""
LITTLE = 8 << 20
"""Bytes above which rows count as many, because a plan's answer is in memory twice."""
Tables = Mapping[str, pa.Table]
"""Tables by name."""
Key = tuple[str, tuple[tuple[str, pa.Schema], ...], tuple[str, ...]]
"""A query, the columns of its rows, and the names of the tables beside them."""
_numbers = count()


class Slot:
    """A table in whose place others of the same columns come: DuckDB reads it anew each time."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.table: pa.Table | None = None

    def __arrow_c_schema__(self) -> object:
        """Return the columns, in Arrow's C interface."""
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the rows, in Arrow's C interface."""
        table = self.schema.empty_table() if self.table is None else self.table
        return table.__arrow_c_stream__(requested_schema)


class Plan:
    """One query that a connection has planned: over slots of its own, and tables that stay."""

    def __init__(self, con: duckdb.DuckDBPyConnection, query: str, rows: Tables, beside: Tables) -> None:
        self.name = f"plan_{next(_numbers)}"
        self.slots = {name: Slot(table.schema) for name, table in rows.items()}
        self.beside = {**beside}
        self.relations = {name: f"{self.name}_{name}" for name in (*rows, *beside)}
        try:
            for name, relation in self.relations.items():
                con.register(relation, self.slots.get(name) or self.beside[name])
            con.execute(f"PREPARE {self.name} AS {name_tables(query, self.relations)}")
        except BaseException:
            self.unregister(con)
            raise

    def reads_others(self, beside: Tables) -> bool:
        """Return whether it reads another table by one of these names."""
        return any(self.beside.get(name, table) is not table for name, table in beside.items())

    def ask(self, con: duckdb.DuckDBPyConnection, rows: Tables) -> pa.Table:
        """Ask it of some tables; the plan holds no connection, which goes with its last user."""
        for name, slot in self.slots.items():
            slot.table = rows[name]
        try:
            return con.sql(f"EXECUTE {self.name}").to_arrow_table()
        finally:
            for slot in self.slots.values():
                slot.table = None

    def drop(self, con: duckdb.DuckDBPyConnection) -> None:
        """Let the connection forget it."""
        con.execute(f"DEALLOCATE {self.name}")
        self.unregister(con)

    def unregister(self, con: duckdb.DuckDBPyConnection) -> None:
        """Let the connection forget its tables."""
        for relation in self.relations.values():
            con.unregister(relation)


_plans: WeakKeyDictionary[duckdb.DuckDBPyConnection, OrderedDict[Key, Plan]] = WeakKeyDictionary()


def ask_planned_once(
    con: duckdb.DuckDBPyConnection, query: str, rows: Tables, beside: Tables | None = None
) -> pa.Table:
    """Ask a query of tables by their names; what is planned for few ``rows`` is asked of others of the same columns.

    Tables ``beside`` them are the same objects for many questions. Raises DuckDB's errors. A query begins with
    ``SELECT``, ``FROM`` or ``WITH ``, has no recursion and no name of these tables for another one, and reads nothing
    else that changes. One thread asks a connection at a time.
    """
    beside = beside or {}
    if any(table.num_rows > FEW or table.nbytes > LITTLE for table in rows.values()):
        return ask_once(con, query, {**rows, **beside})
    plans = _plans.setdefault(con, OrderedDict())
    key = query, tuple((name, table.schema) for name, table in rows.items()), tuple(beside)
    plan = plans.get(key)
    if plan is None or plan.reads_others(beside):
        # Versions of a look-up come one after another: one is kept in memory, of whatever query.
        for old in [old for old, each in plans.items() if each.reads_others(beside)]:
            plans.pop(old).drop(con)
        plan = plans[key] = Plan(con, query, rows, beside)
        while len(plans) > 1 and sum(len(text) for text, *_ in plans) > MOST:
            plans.popitem(last=False)[1].drop(con)
    plans.move_to_end(key)
    return plan.ask(con, rows)


def ask_once(con: duckdb.DuckDBPyConnection, query: str, tables: Tables) -> pa.Table:
    """Ask a query of tables by their names, planned for just these."""
    for name, table in tables.items():
        con.register(name, table)
    try:
        return con.sql(query).to_arrow_table()
    finally:
        for name in tables:
            con.unregister(name)


def name_tables(query: str, relations: Mapping[str, str]) -> str:
    """Let a query read relations by other names."""
    own = ", ".join(
        f"{quote_identifier(name)} AS NOT MATERIALIZED (FROM {quote_identifier(relation)})"
        for name, relation in relations.items()
    )
    rest = query.removeprefix("WITH ")
    return f"WITH {own}{' ' if rest == query else ', '}{rest}"
