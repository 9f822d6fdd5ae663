"""The rows of a span as a definition has them: those of the log, or its records validated again by the kernel."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from seamline.kernel.epoch_kernel import open_worker_duckdb, validate_records
from seamline.kernel.formats import open_readers
from seamline.kernel.halving import validate_by_halves
from seamline.kernel.kernel_config import configure_validation
from seamline.lake.engine.duckdb_connections import open_beside
from seamline.lake.engine.duckdb_scans import read_parquet_sql
from seamline.lake.engine.pane_ranges import to_unix_micros
from seamline.lake.joins.event_times import Times, within_sql
from seamline.lake.joins.joined_rows import log_rows_sql
from seamline.lake.joins.restated_rows import CHUNK, RAW
from seamline.lake.log.log_files import files_of
from seamline.lake.storage.arrow_types import COORDINATES, INSTANT, master_schema
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import Files, read_cached_table
from seamline.lake.tables.reprocessed import rows_schema
from seamline.lake.tables.schemas.kept_schemas import open_kept_schemas
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.time.intervals import Interval

MOST_REFUSED = 500_000
"""Refused records that are validated again at most: they have no event time to choose them by."""


def count_refused(layout: Layout) -> int:
    """Count the records in quarantine."""
    files = read_cached_table(layout.table("quarantine"), "files", Files.of)
    return files.rows if files and files.actions.num_rows else 0


@contextmanager
def open_sampled_rows(
    con: duckdb.DuckDBPyConnection,
    pipeline: CompiledPipeline,
    layout: Layout,
    span: Interval,
    cut: int,
    *,
    again: bool,
) -> Iterator[str]:
    """Write the rows of a span up to an epoch, as SQL that the connection can read while the block runs.

    With ``again`` all its records are validated by the definition, refused ones too if there are not too many.
    """
    times: Times = (to_unix_micros(span.start), to_unix_micros(span.end))
    con.register("blank", rows_schema(pipeline).empty_table())
    try:
        if not again:
            yield log_rows_sql(pipeline, layout, [times], cut)
            return
        con.execute(
            f"CREATE OR REPLACE TEMP TABLE validated AS SELECT * EXCLUDE ({', '.join(RAW)}) FROM blank"
        )
        for rows in validate_again(pipeline, layout, span, times, cut):
            con.register("more", rows)
            con.execute(f"INSERT INTO validated BY NAME SELECT * FROM more WHERE {within_sql(times)}")
            con.unregister("more")
        yield "(SELECT * FROM validated)"
        con.execute("DROP TABLE validated")
    finally:
        con.unregister("blank")


def validate_again(
    pipeline: CompiledPipeline, layout: Layout, span: Interval, times: Times, cut: int
) -> Iterator[pa.Table]:
    """Validate the records that were accepted into a span, and the refused ones; yield the rows that they make."""
    readers, config = open_readers(pipeline, open_kept_schemas(layout)), configure_validation(pipeline)
    wanted = [name for name in master_schema(pipeline).names if name not in RAW]
    con = open_worker_duckdb()

    def judge(raw: pa.Table) -> tuple[pa.Table, pa.Table]:
        return validate_records(con, raw, config, readers)

    for raw in read_raw_records(pipeline, layout, span, times, cut):
        for accepted, _ in validate_by_halves(raw, judge):
            yield accepted.select(wanted)


def read_raw_records(
    pipeline: CompiledPipeline, layout: Layout, span: Interval, times: Times, cut: int
) -> Iterator[pa.Table]:
    """Read raw records as the kernel takes them, some at a time."""
    master, refused = (
        read_cached_table(layout.table(name), "files", Files.of) for name in ("master", "quarantine")
    )
    own = files_of(master, span, cut) if master else []
    more = refused.paths if refused and count_refused(layout) <= MOST_REFUSED else []
    sources = [(own, within_sql(times)), (more, "true")]
    columns = ", ".join(COORDINATES.names)
    for paths, condition in sources:
        if not paths:
            continue
        with open_beside(1) as con:
            files = read_parquet_sql(paths, uneven=True)
            query = f"SELECT {columns} FROM {files} WHERE _epoch <= {cut} AND {condition}"
            for batch in con.sql(query).to_arrow_reader(CHUNK):
                yield name_record_version(pa.Table.from_batches([batch]), pipeline.record_version)


def name_record_version(raw: pa.Table, version: str) -> pa.Table:
    """Say of raw records that a record version validates them."""
    at = raw.schema.get_field_index("_record_version")
    said = pa.repeat(pa.scalar(version), raw.num_rows)
    moment = pc.cast(raw["_kafka_timestamp"], INSTANT)
    raw = raw.set_column(raw.schema.get_field_index("_kafka_timestamp"), "_kafka_timestamp", moment)
    return raw.set_column(at, "_record_version", said)
