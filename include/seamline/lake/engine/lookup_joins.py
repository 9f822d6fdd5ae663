"""The join of a look-up in DuckDB: one for records and for answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from seamline.lake.engine.duckdb_scans import quote_literal
from seamline.lake.engine.query_steps import QueryStep
from seamline.lake.engine.states import quote_identifier
from seamline.model.compile.lookups.lookup_join import LookupJoin
from seamline.model.compile.record_rules import METADATA
from seamline.model.expressions import Expression
from seamline.model.types.schema import Schema

CONDITION, NUMBER = "condition of the rule", "number of the condition"
"""Columns of a table of rules: the text of each one's own condition, and its number; no column is called so."""
IS = "_is"
"""The number of a condition that is true of a record, or -1 - its number where it has no value."""


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
    columns += [quote_identifier(NUMBER)] if join.condition else []
    equal = " AND ".join(f"_on_{join.name}_{at} = _at_{join.name}_{at}" for at in range(len(join.keys)))
    table = f"(SELECT {', '.join(columns)} FROM {relation_of(join)})"
    return f"JOIN {table} ON {equal or 'true'}"


def absent_columns_sql(joins: Iterable[LookupJoin], there: Schema) -> str:
    """Write, as NULL, the added columns that conditions in tables may name and earlier rows do not have."""
    seen = dict.fromkeys(field for join in joins for field in join.sees.fields)
    absent = [field for field in seen if not there.with_(*METADATA).field(field.name)]
    return ", ".join(f"NULL::{field.type.duckdb} AS {quote_identifier(field.name)}" for field in absent)


def lookup_steps(join: LookupJoin, row: str) -> Iterator[QueryStep]:
    """List the steps that add to records what they find; ``row`` is a column that is another in each record.

    Of a table of rules they add the array and, where a condition may have no value, ``trouble_name``.
    """
    asks = lookup_keys_sql(join)
    if not join.every:
        yield QueryStep(asks)
        yield QueryStep(beside=f"LEFT {lookup_join_sql(join)}")
        return
    asking, [(_, first), *_] = f"asking_{join.name}", join.columns
    yield QueryStep(", ".join(filter(None, [asks, conditions_sql(join)])), named=asking)
    name, trouble = quote_identifier(first.name), trouble_sql(join)
    holds = f"({guarded_value_sql(join.where)}) IS TRUE" if join.where else "true"
    pairs = f"{asking} {lookup_join_sql(join)}"
    if join.condition:
        holds, met = f"{IS} >= 0 AND {holds}", f"SELECT *, unnest(_met_{join.name}) AS {IS} FROM {asking}"
        pairs = f"({met}) {lookup_join_sql(join)} AND {quote_identifier(NUMBER)} = greatest({IS}, -1 - {IS})"
    # Every pair is looked at where an error may be in one; else only those that match are gathered.
    kept, gathered = (f"FILTER (WHERE {holds})", "") if trouble else ("", f"WHERE {holds}")
    wrong = (
        trouble
        and f", min(concat({name}, ': ', {trouble})) FILTER ({trouble} IS NOT NULL) AS {trouble_name(join)}"
    )
    found = f"list({name} ORDER BY {name}) {kept} AS _found_{join.name}"
    matches = f"SELECT {row} AS _row_{join.name}, {found}{wrong} FROM {pairs} {gathered} GROUP BY {row}"
    yield QueryStep(beside=f"LEFT JOIN ({matches}) ON {row} = _row_{join.name}")
    none = f"[]::{join.every.type.duckdb}"
    yield QueryStep(f"coalesce(_found_{join.name}, {none}) AS {quote_identifier(join.every.name)}")


def conditions_sql(join: LookupJoin) -> str:
    """Write the list of the numbers of the conditions that are true; of one without a value, -1 - its number.

    The conditions are those of one version of the table; empty where its rules have none.
    """
    if not join.condition:
        return ""
    met = [
        f"CASE {case_of(made, -1 - at)} WHEN {made.duckdb} THEN {at} END"
        for at, made in enumerate(join.conditions)
    ]
    return (
        f"list_filter([{', '.join(met)}]::INTEGER[], lambda number: number IS NOT NULL) AS _met_{join.name}"
    )


def case_of(made: Expression, then: int) -> str:
    """Write the branches of a CASE for an expression that has no value."""
    return " ".join(f"WHEN ({guard.condition_duckdb}) IS TRUE THEN {then}" for guard in made.guards)


def trouble_sql(join: LookupJoin) -> str:
    """Write why a record and a rule cannot be compared, NULL where they can; empty where they always can."""
    own = {each.message: None for made in join.conditions for each in made.guards}
    whens = [f"WHEN {IS} < 0 THEN {quote_literal(' or '.join(own))}"] if own else []
    whens += [
        f"WHEN ({guard.condition_duckdb}) IS TRUE THEN {quote_literal(guard.message)}"
        for guard in (join.where.guards if join.where else ())
    ]
    return f"CASE {' '.join(whens)} END" if whens else ""


def trouble_name(join: LookupJoin) -> str:
    """Name the column that says of a record which rule has no value with it, and why; NULL where all have one."""
    return f"_trouble_{join.name}"
