"""Refused records, each with the event time and the producer that its bytes have, as far as they have any.

Only what the source's own columns say is read: a rule, a look-up or a derived column may be why a record was refused.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from seamline.kernel.formats import open_reader
from seamline.kernel.halving import UNREADABLE
from seamline.kernel.kernel_config import configure_validation
from seamline.kernel.raw_queries import read_by
from seamline.kernel.record_bounds import LARGE, MANY
from seamline.kernel.validation import parse_sql
from seamline.lake.engine.duckdb_connections import open_duckdb
from seamline.lake.storage.arrow_types import INSTANT
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.schemas.kept_schemas import open_kept_schemas
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.event_ids import list_own_ids

LEFT_OUT = (LARGE, MANY, UNREADABLE)
"""Reasons of records that are not looked into again: each may cost too much, or kill whoever reads it."""
RAW = ["_value", "_topic", "_partition", "_offset", "_kafka_timestamp"]


def place_refused_records(
    layout: Layout, pipeline: CompiledPipeline, producer: str, rows: pa.Table
) -> pa.Table:
    """Return ``at``, ``producer`` and the parts of the event id of refused records of one source; NULL if not known.

    They are in any order, the parts named as ``list_own_ids`` has them. ``rows`` are of the quarantine; ``producer`` is
    the column that names one, "" for none.
    """
    costly = pc.is_in(rows["_reason"], pa.array(LEFT_OUT))
    parsed = parse_refused_records(layout, pipeline, rows.filter(pc.invert(costly)).select(RAW))
    left_out, kept = pc.sum(costly).as_py() or 0, {*parsed.column_names}
    return pa.table(
        {
            "at": pad(parsed, pipeline.source.event_time, INSTANT, left_out),
            "producer": pad(parsed, producer, pa.string(), left_out),
            **{
                name: pad(parsed, column, parsed[column].type if column in kept else pa.null(), left_out)
                for name, column in list_own_ids(pipeline).items()
            },
        }
    )


def parse_refused_records(layout: Layout, pipeline: CompiledPipeline, raw: pa.Table) -> pa.Table:
    """Parse records, each as far as it can be, and do nothing else with them."""
    plain = replace(
        pipeline.record,
        lookups=(),
        derived=(),
        rules=(),
        sides=(),
        where=None,
        transform=None,
        dedup=False,
        ruling=(),
    )
    config = configure_validation(replace(pipeline, record=plain))
    reader = open_reader(config.pipeline, open_kept_schemas(layout))
    for name, column in reader.columns(raw["_value"]).items():
        raw = raw.append_column(name, column)
    raw = raw.append_column("_processing_time", pa.nulls(raw.num_rows, INSTANT))
    with open_duckdb() as con:
        return read_by(reader, con, parse_sql, raw, config)


def pad(parsed: pa.Table, name: str, type: pa.DataType, more: int) -> pa.ChunkedArray:
    """Return a column, NULL where there is none, with so many NULLs behind it."""
    found = parsed[name] if name in parsed.column_names else pa.nulls(parsed.num_rows, type)
    chunks = found.cast(type).chunks if isinstance(found, pa.ChunkedArray) else [found]
    return pa.chunked_array([*chunks, pa.nulls(more, type)], type)
