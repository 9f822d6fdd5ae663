"""Asking DuckDB about raw records, with the look-ups beside them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import pyarrow as pa

from seamline.kernel.formats import Reader
from seamline.kernel.validation import ROW
from seamline.lake.engine.lookup_joins import relation_of
from seamline.lake.engine.prepared_queries import ask_planned_once
from seamline.lake.engine.rule_conditions import bind_conditions, number_conditions
from seamline.lake.storage.parquet_files import read_plain_columns
from seamline.lake.store.locations import Location
from seamline.lake.tables.lookups.rule_versions import select_rules_in_force
from seamline.model.compile.compiled_pipeline import CompiledPipeline

if TYPE_CHECKING:
    from seamline.kernel.kernel_config import KernelConfig

WriteSql = Callable[[CompiledPipeline, Reader, str], str]
"""Writes the query of a pipeline and a reader over a relation."""


def read_by(
    reader: Reader, con: duckdb.DuckDBPyConnection, write: WriteSql, raw: pa.Table, config: KernelConfig
) -> pa.Table:
    """Ask as if every record were well formed; a reader that has met one that is not asks carefully from then on."""
    if reader.trusting:
        try:
            return query_raw_table(con, write(config.pipeline, reader, "raw"), raw, config)
        except duckdb.OutOfMemoryException:
            raise
        except (duckdb.Error, UnicodeDecodeError):
            # DuckDB's message quotes the record, and may end within a letter.
            reader.trusting = False
    return query_raw_table(con, write(config.pipeline, reader, "raw"), raw, config)


def query_raw_table(
    con: duckdb.DuckDBPyConnection, text: str, raw: pa.Table, config: KernelConfig
) -> pa.Table:
    """Ask DuckDB about one table, known as ``raw``, with the look-ups beside it."""
    lookups: dict[str, pa.Table] = {}
    if config.pipeline.record.lookups:
        raw = raw.append_column(ROW, pa.arange(0, raw.num_rows))
        lookups = {
            relation_of(each): load_lookup_version(each.condition != "", config.lookups[each.name])
            for each in config.pipeline.record.lookups
        }
    return restore_row_order(ask_planned_once(con, text, {"raw": raw}, lookups))


def restore_row_order(rows: pa.Table) -> pa.Table:
    """Put rows that have their ``ROW`` in its order: a join may have changed it, and mostly has not."""
    if ROW not in rows.column_names:
        return rows
    at = rows[ROW].to_numpy()
    rows = rows.drop_columns([ROW])
    return rows if (at[1:] > at[:-1]).all() else rows.take(np.argsort(at))


@lru_cache(maxsize=16)
def load_lookup_version(conditional: bool, path: Location) -> pa.Table:
    """Read one version of a look-up, once per worker; ``conditional`` rules get the numbers of their conditions."""
    table = select_rules_in_force(read_plain_columns(path))
    return number_conditions(table) if conditional else table


def bind_lookups(config: KernelConfig) -> KernelConfig:
    """Let tables of rules evaluate the conditions that their versions have."""
    record = config.pipeline.record
    if not any(join.condition for join in record.lookups):
        return config
    joins = tuple(
        bind_conditions(join, load_lookup_version(True, config.lookups[join.name]))
        if join.condition
        else join
        for join in record.lookups
    )
    return replace(config, pipeline=replace(config.pipeline, record=replace(record, lookups=joins)))
