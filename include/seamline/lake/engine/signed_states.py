"""States of rows of which some are added and some are taken away."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import pyarrow as pa

from seamline.lake.engine import states
from seamline.model.compile.changes.compiled_changelog import SIGN
from seamline.model.compile.compiled_pipeline import CompiledView


def compute_signed_states(
    con: duckdb.DuckDBPyConnection, view: CompiledView, relation: str, *, by: Sequence[str] = ()
) -> pa.Table:
    """Compute the states (``partial_schema``) that the rows of a relation add up to, by their ``SIGN``."""
    parts = []
    for sign in (1, -1):
        made = states.compute_row_states(
            con, view, f"(SELECT * FROM {relation} WHERE {SIGN} = {sign})", by=by
        )
        parts.append(made if sign > 0 else states.negate_states(view, made))
    return states.drop_zeros(view, states.combine_states(view, parts, by=by))
