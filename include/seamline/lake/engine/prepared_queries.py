"""Queries that are planned once: an epoch asks the same of other rows, and planning takes longer than answering."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Mapping
from itertools import count
from weakref import WeakKeyDictionary

import duckdb
import pyarrow as pa

from seamline.lake.engine.measures import quote_identifier

MOST = 64
"""Plans that a connection keeps; those that were not asked for longest go."""
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
    """One query that a connection has planned, over slots of its own."""

    def __init__(self, con: duckdb.DuckDBPyConnection, query: str, schemas: Mapping[str, pa.Schema]) -> None:
        self.con, number = con, next(_numbers)
        self.name = f"plan_{number}"
        self.slots = {name: Slot(schema) for name, schema in schemas.items()}
        self.relations = {name: f"{self.name}_{name}" for name in schemas}
        for name, slot in self.slots.items():
            con.register(self.relations[name], slot)
        try:
            con.execute(f"PREPARE {self.name} AS {name_tables(query, self.relations)}")
        except duckdb.Error:
            self.unregister()
            raise

    def ask(self, tables: Mapping[str, pa.Table]) -> pa.Table:
        """Ask it of some tables."""
        for name, table in tables.items():
            self.slots[name].table = table
        try:
            return self.con.sql(f"EXECUTE {self.name}").to_arrow_table()
        finally:
            for slot in self.slots.values():
                slot.table = None

    def drop(self) -> None:
        """Let the connection forget it."""
        self.con.execute(f"DEALLOCATE {self.name}")
        self.unregister()

    def unregister(self) -> None:
        """Let the connection forget its slots."""
        for relation in self.relations.values():
            self.con.unregister(relation)


_plans: WeakKeyDictionary[duckdb.DuckDBPyConnection, OrderedDict[Hashable, Plan]] = WeakKeyDictionary()


def ask_prepared(con: duckdb.DuckDBPyConnection, query: str, tables: Mapping[str, pa.Table]) -> pa.Table:
    """Ask a query of some tables by their names, as ``con`` has planned it for others of the same columns.

    Raises DuckDB's errors. A query begins with ``SELECT``, ``FROM`` or ``WITH``, and reads nothing else that changes.
    """
    plans = _plans.setdefault(con, OrderedDict())
    schemas = {name: table.schema for name, table in tables.items()}
    key = query, tuple(schemas.items())
    plan = plans.get(key)
    if plan is None:
        plan = plans[key] = Plan(con, query, schemas)
        if len(plans) > MOST:
            plans.popitem(last=False)[1].drop()
    plans.move_to_end(key)
    return plan.ask(tables)


def name_tables(query: str, relations: Mapping[str, str]) -> str:
    """Let a query read relations by other names."""
    own = ", ".join(
        f"{quote_identifier(name)} AS NOT MATERIALIZED (FROM {quote_identifier(relation)})"
        for name, relation in relations.items()
    )
    rest = query.removeprefix("WITH ")
    return f"WITH {own}{' ' if rest == query else ', '}{rest}"
