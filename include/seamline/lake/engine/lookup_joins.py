"""The join of a look-up in DuckDB: one for records and for answers."""

from __future__ import annotations

from seamline.lake.engine.states import quote_identifier
from seamline.model.compile.lookup_join import LookupJoin
from seamline.model.expressions import Expression


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
    return f"LEFT JOIN (SELECT {', '.join(columns)} FROM {relation_of(join)}) ON {equal}"
