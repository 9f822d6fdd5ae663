"""The conditions that the rules of a table have, each of its own: their texts, and what a query makes of them."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.engine.lookup_joins import CONDITION, NUMBER
from seamline.model.compile.lookups.lookup_join import LookupJoin, compile_rule_condition


def list_conditions(table: pa.Table) -> list[str]:
    """List the different conditions of a version, in the order by which ``number_conditions`` numbers them."""
    found: list[str] = sorted(pc.unique(pc.drop_null(table[CONDITION])).to_pylist())
    return found


def bind_conditions(join: LookupJoin, table: pa.Table) -> LookupJoin:
    """Let a look-up evaluate the conditions of one version of its table."""
    made = (compile_rule_condition(text, join.sees) for text in list_conditions(table))
    return replace(join, conditions=tuple(made))


def number_conditions(table: pa.Table) -> pa.Table:
    """Add the number of each rule's condition, as ``NUMBER``."""
    numbers = pc.index_in(table[CONDITION], pa.array(list_conditions(table), pa.string()))
    return table.append_column(NUMBER, numbers.cast(pa.int32()))
