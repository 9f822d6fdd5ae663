"""Where states of slices differ from those that records make: the query, and the words for what it finds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.engine.states import quote_identifier
from seamline.lake.storage.arrow_types import partial_schema
from seamline.model.compile.compiled_pipeline import CompiledView
from seamline.model.protocol.audit import Finding, Wrong
from seamline.model.protocol.offset_runs import format_offset_runs, merge_offset_runs
from seamline.model.time.intervals import format_utc_instant

BLOCK = ("_from", "_to")
"""The columns that say of which epochs states are, from the first to the last."""
CLOSE = 1e-9
"""How much two sums of floats may differ that were added up in another order, as a share."""
OUTCOME = ("_in_slices", "_in_log", "_sliced", "_logged", "_differs")


def state_difference_sql(view: CompiledView) -> str:
    """Write the query for what differs: the place, which of the two has it, and the names of the states that differ."""
    parts = {part.name for part in view.parts}
    places = [
        name for name in partial_schema(view).names if name not in parts and name not in ("rows", "_last")
    ]
    names = [*BLOCK, *places]
    on = " AND ".join(
        f"s.{quote_identifier(name)} IS NOT DISTINCT FROM m.{quote_identifier(name)}" for name in names
    )
    differs = {"rows": "s.rows IS DISTINCT FROM m.rows"}
    for field in partial_schema(view):
        if field.name in parts and (text := state_differs_sql(field)):
            differs[field.name] = text
    listed = ", ".join(f"CASE WHEN {text} THEN '{name}' END" for name, text in differs.items())
    shown = ", ".join(
        f"coalesce(s.{quote_identifier(name)}, m.{quote_identifier(name)}) AS {quote_identifier(name)}"
        for name in names
    )
    return (
        f"SELECT {shown}, s._there AS _in_slices, m._there AS _in_log, s.rows AS _sliced, m.rows AS _logged, "
        f"list_filter([{listed}], lambda _x: _x IS NOT NULL) AS _differs "
        f"FROM (SELECT *, true AS _there FROM stated) s FULL JOIN (SELECT *, true AS _there FROM made) m ON {on} "
        f"WHERE s._there IS NULL OR m._there IS NULL OR {' OR '.join(differs.values())}"
    )


def state_differs_sql(field: pa.Field) -> str:
    """Write whether a state differs; empty where equal states may be written in several ways."""
    one, other = f"s.{quote_identifier(field.name)}", f"m.{quote_identifier(field.name)}"
    if pa.types.is_floating(field.type):
        close = f"abs({one} - {other}) <= {CLOSE} * greatest(1, abs({one}), abs({other}))"
        return f"({one} IS DISTINCT FROM {other} AND ({close}) IS NOT TRUE)"
    if pa.types.is_nested(field.type) or pa.types.is_binary(field.type):
        return ""
    return f"{one} IS DISTINCT FROM {other}"


def find_state_differences(view: CompiledView, wrong: pa.Table) -> Iterable[Finding]:
    """Find what differs, all blocks together, with one place as an example."""
    if not wrong.num_rows:
        return
    blocks = {*zip(wrong["_from"].to_pylist(), wrong["_to"].to_pylist(), strict=True)}
    epochs = merge_offset_runs((first, last + 1) for first, last in blocks)
    names = [name for name in wrong.column_names[2:] if name not in OUTCOME]
    row = wrong.slice(0, 1).to_pylist()[0]
    missing = pc.sum(pc.is_null(wrong["_in_slices"]).cast(pa.int64())).as_py()
    spare = pc.sum(pc.is_null(wrong["_in_log"]).cast(pa.int64())).as_py()
    said = (
        f"{wrong.num_rows} states of epochs {format_offset_runs(epochs)} are not what their records make "
        f"({missing} missing, "
        f"{spare} without records); {format_example(row, names)}"
    )
    yield Finding(Wrong.SLICES, f"view {view.id}", wrong.num_rows, said)


def format_example(row: Mapping[str, Any], names: Iterable[str]) -> str:
    """Describe what one place has and what it should have."""
    where = ", ".join(f"{name}={format_place_value(row[name])}" for name in names)
    if row["_in_slices"] is None:
        return f"{where} has none, {row['_logged']} records should be in it"
    if row["_in_log"] is None:
        return f"{where} has {row['_sliced']} records, there are none"
    return f"{where} has {row['_sliced']} records of {row['_logged']}, and other {', '.join(row['_differs'])}"


def format_place_value(value: Any) -> str:
    """Format a key or an instant."""
    return format_utc_instant(value) if hasattr(value, "tzinfo") else str(value)
