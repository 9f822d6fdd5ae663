"""Accepted rows in DuckDB: the order in which they were read, repeated event ids, and record versions."""

from __future__ import annotations

from seamline.lake.engine.duckdb_scans import quote_literal
from seamline.lake.engine.states import quote_identifier
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.event_ids import list_id_expressions
from seamline.model.compile.evolution import AND, list_earlier_versions
from seamline.model.compile.record_rules import SELECTED

READ_ORDER = ("_epoch", "_partition", "_offset", "_topic")
"""The columns that say in which order records were read: of several with one event id the first counts."""


def selected_sql(pipeline: CompiledPipeline) -> str:
    """Write the condition that a row is in any view at all."""
    return quote_identifier(SELECTED) if pipeline.record.selective else "TRUE"


def repeated_id_sql(pipeline: CompiledPipeline, *interval: str) -> str:
    """Write whether a selected row repeats the event id of an earlier one in its ``interval``, given by expressions.

    Without expressions the rows are of one interval. FALSE where no event id is declared.
    """
    ids = list_id_expressions(pipeline, quote_identifier)
    if not ids:
        return "FALSE"
    selected = selected_sql(pipeline)
    same = f"PARTITION BY {', '.join([*interval, selected, *ids])} ORDER BY {', '.join(READ_ORDER)}"
    return f"({selected} AND row_number() OVER ({same}) > 1)"


def record_version_sql(version: str) -> str:
    """Write which rows are of a record version, or of one that differs from it by added columns alone."""
    known = ", ".join(map(quote_literal, list_earlier_versions(version)))
    return f"(_record_version IN ({known}) OR starts_with(_record_version, {quote_literal(version + AND)}))"
