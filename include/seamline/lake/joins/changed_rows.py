"""The rows of the log that are changes of a table, as an index of the table is made of them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from seamline.lake.engine.changed_index import ChangedIndex, image_schema
from seamline.lake.engine.derived_rows import DUCKDB
from seamline.lake.joins.joined_rows import logged_rows
from seamline.lake.joins.log_stamps import LogStamps
from seamline.lake.storage.layout import Layout
from seamline.lake.store.drafted_files import open_draft
from seamline.model.compile.changes.compiled_changelog import CompiledChangelog
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.derived_rows import side_rows_sql
from seamline.plan.stream.epoch_numbers import step_end

STEP, EPOCHS = 2_000_000, 10_000
"""Rows of the log that an index takes in at once, about, and epochs at most."""
IMAGES = "images 1"
"""How snapshots are kept, and made: another number where something else comes to be known of a row."""
BATCH = 50_000
"""Rows of a snapshot that pass memory at once."""


def fill_changed_index(
    index: ChangedIndex,
    pipeline: CompiledPipeline,
    layout: Layout,
    stamps: LogStamps,
    above: int,
    until: int,
) -> None:
    """Take the rows above an epoch and up to another into an index, a few epochs at a time; each step has its stamp."""
    with index.on_all_cores():
        while above < until:
            sizes = stamps.writer.ledger.read_sizes(above, EPOCHS)
            last = step_end({number: rows for number, rows in sizes.items() if number <= until}, above, STEP)
            if last == above:
                return
            take_step(index, pipeline, layout, stamps, above, last)
            above = last


def take_step(
    index: ChangedIndex,
    pipeline: CompiledPipeline,
    layout: Layout,
    stamps: LogStamps,
    above: int,
    last: int,
) -> None:
    """Take the rows above an epoch and up to another into an index."""
    changelog, row = index.changelog, stamps.find_row(last)
    stamp = stamps.stamp(row, None).to_json() if row else ""
    everything = [(None, None)]
    with logged_rows(index.con, changelog, pipeline, layout, everything, last, above=above) as logged:
        rows = side_rows_sql(changelog, changelog.sides[0], logged, DUCKDB)
        index.con.execute(f"CREATE OR REPLACE TEMP TABLE filled AS {rows}")
    index.take_relation("filled", stamp)
    index.con.execute("DROP TABLE filled")


def load_snapshot(index: ChangedIndex, paths: list[str], stamp: str) -> None:
    """Let an index begin with what files of a snapshot know; OSError or ArrowException where one is broken."""
    with pq.ParquetFile(paths[0], page_checksum_verification=True) as file:
        batches = pa.RecordBatchReader.from_batches(image_schema(index.changelog), file.iter_batches(BATCH))
        index.con.register("loaded", batches)
        try:
            index.load("loaded", stamp)
        finally:
            index.con.unregister("loaded")


def write_snapshot(path: Path, changelog: CompiledChangelog, batches: pa.RecordBatchReader) -> None:
    """Write what is known of a table's rows as a file, whole or not at all, and also after a power cut."""
    schema = image_schema(changelog)
    with (
        open_draft(path) as file,
        pq.ParquetWriter(file, schema, compression="zstd", write_page_checksum=True) as writer,
    ):
        for batch in batches:
            writer.write_batch(batch.cast(schema))
