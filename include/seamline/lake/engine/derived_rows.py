"""The rows of a join in DuckDB."""

from __future__ import annotations

from collections.abc import Sequence

from seamline.lake.engine.duckdb_scans import span_start_sql
from seamline.lake.engine.states import quote_identifier
from seamline.model.compile.derived_rows import VERSION_ORDER, Dialect
from seamline.model.types.schema import parse_type


def latest_sql(rows: str, versions: str, keys: Sequence[str]) -> str:
    """Write rows with their latest versions: each is behind all versions of its own time."""
    at, *place = VERSION_ORDER
    equal = [f"l.{key} IS NOT DISTINCT FROM r.{key}" for key in keys]
    order = f"row({at}, false, {', '.join(place)})"
    last = f"row({at}, true, {', '.join(place)})"
    return (
        f"SELECT l.* EXCLUDE (_last), r._version AS _latest FROM (SELECT *, {last} AS _last FROM ({rows})) l "
        f"ASOF LEFT JOIN (SELECT *, {order} AS _order FROM ({versions})) r "
        f"ON {' AND '.join(equal)} AND l._last >= r._order"
    )


DUCKDB = Dialect(
    quote=quote_identifier,
    micros="epoch_us",
    same="IS NOT DISTINCT FROM",
    text=lambda made: made.duckdb,
    null=lambda type: f"NULL::{parse_type(type, '').duckdb}",
    record=lambda values: f"struct_pack({', '.join(f'f{at} := {value}' for at, value in enumerate(values))})",
    latest=latest_sql,
    start=lambda micros, size: span_start_sql(f"({micros})", size),
)
