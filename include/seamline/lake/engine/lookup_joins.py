"""The join of a look-up in DuckDB: one for records and for answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from seamline.lake.engine.states import quote_identifier
from seamline.model.compile.lookup_join import LookupJoin
from seamline.model.expressions import Expression


class Step(NamedTuple):
    """What is added to a relation."""

    added: str = ""
    """A select list; it may be empty."""
    beside: str = ""
    """A join; it may be empty."""
    named: str = ""
    """What the relation is called then, by steps that read it a second time; empty if none does."""


def relation_of(join: LookupJoin) -> str:
    """Name the relation that contains a look-up's table, as ``lookups.load`` returns it."""
    return f"lookup_{join.name}"


def key_name(column: str) -> str:
    """Name a key column in that relation, apart from all columns that a row may have."""
    return f"_{column}"


def lookup_keys_sql(join: LookupJoin) -> str:
    """Write the select list of what its keys must equal."""
    keys = enumerate(made for _, made in join.keys)
    return ", ".join(f"{guarded_value_sql(made)} AS _on_{join.name}_{at}" for at, made in keys)


def guarded_value_sql(made: Expression) -> str:
    """Write an expression that is NULL if it has no value."""
    if not made.guards:
        return made.duckdb
    wrong = " OR ".join(f"({guard.condition_duckdb}) IS TRUE" for guard in made.guards)
    return f"CASE WHEN NOT ({wrong}) THEN {made.duckdb} END"


def lookup_join_sql(join: LookupJoin) -> str:
    """Write the join of its columns to a relation that has what was ``lookup_keys_sql``."""
    keys = [
        f"{quote_identifier(key_name(name))} AS _at_{join.name}_{at}"
        for at, (name, _) in enumerate(join.keys)
    ]
    columns = [*keys, *(quote_identifier(field.name) for _, field in join.columns)]
    equal = " AND ".join(f"_on_{join.name}_{at} = _at_{join.name}_{at}" for at in range(len(join.keys)))
    table = f"(SELECT {', '.join(columns)} FROM {relation_of(join)})"
    return f"JOIN {table} ON {equal or 'true'}"


def lookup_steps(join: LookupJoin, row: str) -> Iterator[Step]:
    """List the steps that add to records what they find; ``row`` is a column that is another in each record.

    Of a table of rules they add the array, and ``wrong_name`` of each guard of its condition.
    """
    asks = lookup_keys_sql(join)
    if not join.every:
        yield Step(asks)
        yield Step(beside=f"LEFT {lookup_join_sql(join)}")
        return
    yield Step(asks, named=(asking := f"asking_{join.name}"))
    where, [(_, first), *_] = join.where, join.columns
    name = quote_identifier(first.name)
    holds = f"({guarded_value_sql(where)}) IS TRUE" if where else "true"
    wrong = "".join(
        f", bool_or({guard.condition_duckdb}) AS {wrong_name(join, at)}"
        for at, guard in enumerate(where.guards if where else ())
    )
    # Every pair is looked at where an error may be in one; else only those that match are gathered.
    kept, gathered = (f"FILTER (WHERE {holds})", "") if wrong else ("", f"WHERE {holds}")
    found = f"list({name} ORDER BY {name}) {kept} AS _found_{join.name}"
    pairs = f"{asking} {lookup_join_sql(join)} {gathered}"
    matches = f"SELECT {row} AS _row_{join.name}, {found}{wrong} FROM {pairs} GROUP BY {row}"
    yield Step(beside=f"LEFT JOIN ({matches}) ON {row} = _row_{join.name}")
    none = f"[]::{join.every.type.duckdb}"
    yield Step(f"coalesce(_found_{join.name}, {none}) AS {quote_identifier(join.every.name)}")


def wrong_name(join: LookupJoin, at: int) -> str:
    """Name the column that says whether the condition has no value, by its guard ``at``, with a row of the table."""
    return f"_wrong_{join.name}_{at}"
