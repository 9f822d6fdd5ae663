"""Records of several sources in one table: each is validated as its source says, and the rows are one table again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seamline.kernel.formats import Reader
from seamline.kernel.raw import filter_rows, reject_all_rows
from seamline.lake.engine.pane_ranges import to_unix_micros
from seamline.lake.storage.arrow_types import master_schema
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.record_rules import SOURCE

AT = "_at"
"""The number of a record among those of all sources."""
FOREIGN = "topic of no source"


def split_by_source(
    rows: pa.Table, pipeline: CompiledPipeline, readers: Sequence[Reader]
) -> Iterator[tuple[CompiledPipeline, Reader, pa.Table]]:
    """Yield each source that has records among ``rows``, alone, with its reader and its records and their ``AT``."""
    for alone, reader in zip(pipeline.by_source, readers, strict=True):
        own = filter_rows(rows, pc.is_in(rows["_topic"], pa.array(alone.source.topics, pa.string())))
        if own.num_rows:
            yield alone, reader, own


def reject_foreign_rows(rows: pa.Table, pipeline: CompiledPipeline) -> pa.Table:
    """Refuse the records of topics that no source reads any more: they were read by an earlier definition."""
    known = pa.array(pipeline.definition.topics, pa.string())
    return reject_all_rows(filter_rows(rows, pc.invert(pc.is_in(rows["_topic"], known))), FOREIGN, "")


def number_rows(rows: pa.Table) -> pa.Table:
    """Add ``AT``."""
    return rows.append_column(AT, pa.arange(0, rows.num_rows))


def merge_sources(
    pipeline: CompiledPipeline, made: Sequence[tuple[pa.Table, pa.Table]], foreign: pa.Table
) -> tuple[pa.Table, pa.Table]:
    """Put accepted rows and refused ones of all sources together, those in the order in which the records came.

    ``foreign`` are refused too.
    """
    refused = pa.concat_tables([*(some for _, some in made if some.num_rows), foreign])
    if not made:
        return master_schema(pipeline).empty_table(), refused.drop_columns([AT])
    accepted = pa.concat_tables([some for some, _ in made], promote_options="default")
    places = accepted[AT].to_numpy()
    if (places[1:] < places[:-1]).any():
        accepted = accepted.take(pa.array(np.argsort(places)))
    for each in master_schema(pipeline):
        if each.name not in accepted.column_names:
            accepted = accepted.append_column(each, pa.nulls(accepted.num_rows, each.type))
    return accepted.drop_columns([AT]), refused.drop_columns([AT])


def find_very_late(
    accepted: pa.Table, times: np.ndarray, pipeline: CompiledPipeline, watermark: datetime
) -> np.ndarray:
    """Return which rows are further behind the watermark than ``very_late`` of their source."""
    if not pipeline.alone:
        return times < to_unix_micros(watermark - pipeline.very_late)
    very = np.zeros(len(times), dtype=bool)
    for alone in pipeline.alone:
        own = pc.equal(accepted[SOURCE], alone.source.name).to_numpy()
        very |= own & (times < to_unix_micros(watermark - alone.very_late))
    return very
