"""The rows of a join in DuckDB."""

from __future__ import annotations

from seamline.lake.engine.duckdb_scans import span_start_sql
from seamline.lake.engine.states import quote_identifier
from seamline.model.compile.derived_rows import Dialect
from seamline.model.types.schema import parse_type

DUCKDB = Dialect(
    quote=quote_identifier,
    micros="epoch_us",
    same="IS NOT DISTINCT FROM",
    text=lambda made: made.duckdb,
    null=lambda type: f"NULL::{parse_type(type, '').duckdb}",
    start=lambda micros, size: span_start_sql(f"({micros})", size),
)
