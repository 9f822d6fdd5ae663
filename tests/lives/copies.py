"""Lives in which copies of joined rows come: the definition, which rows are copies, and what Spark computes of them.

Which rows are copies is worked out row by row, by what was sent and by the watermark that epochs state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from random import Random
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
from tests.lives.definitions import Shape
from tests.lives.derived.joined import logged
from tests.lives.frames import Frame

from seamline.kernel.marks import PLACE
from seamline.kernel.validation import REPEATED
from seamline.lake.engine.accepted_rows import READ_ORDER
from seamline.lake.storage.data_files import DataFile
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.reprocessed import REASON
from seamline.model.compile.compiled_join import CompiledJoin
from seamline.model.compile.compiled_pipeline import CompiledPipeline, compile_pipeline
from seamline.model.compile.record_rules import SELECTED, SOURCE
from seamline.model.protocol.epoch import Epoch
from seamline.model.time.intervals import EPOCH, parse_duration
from seamline.model.time.zone_clock import MICROSECOND
from seamline.spark.build import derived_path, reprocessing
from seamline.spark.build.joined_copies import Copies

SHARE = 0.5
"""Of so many lives with joined rows these have event ids."""
HORIZONS = ("30 minutes", "6 hours", "3 days")
EVER = 2**62
Row = Mapping[str, Any]


def deduplicating(shape: Shape, seed: int) -> Shape:
    """Return the definition of a life with joined rows with event ids; as it was in the others."""
    chance = Random(f"{seed}/copies")
    if not shape.joined or chance.random() > SHARE:
        return shape
    definition, within = shape.pipeline.definition, chance.choice(HORIZONS)
    sources = [replace(each, event_id=[shape.id], dedup_within=within) for each in definition.sources]
    join = replace(definition.derive[0], copies=chance.random() < 0.5)
    pipeline = compile_pipeline(replace(definition, source=sources, derive=[join]))
    return replace(shape, unique=True, within=parse_duration(within), pipeline=pipeline)


def cell_of(pipeline: CompiledPipeline, row: Row) -> int:
    """Return the start of the interval of a row, in microseconds."""
    return (pipeline.grid.of(row["_event_time"]).start - EPOCH) // MICROSECOND


def later_ones(pipeline: CompiledPipeline, rows: Sequence[Row]) -> Iterator[Row]:
    """Yield the rows that have the id of an earlier one of their interval."""
    seen = set()
    for row in sorted(rows, key=lambda row: [row[name] for name in READ_ORDER]):
        id = (cell_of(pipeline, row), *(row[name] for name in pipeline.event_id))
        if id in seen:
            yield row
        seen.add(id)


def count_joined_copies(rows: Frame, pipeline: CompiledPipeline, join: CompiledJoin) -> Mapping[int, Copies]:
    """Count the copies that the derived rows of each interval may be made of."""
    sources = {side.source for side in join.sides}
    joined = [row for row in rows.toArrow().to_pylist() if row[SELECTED] and row[SOURCE] in sources]
    found: dict[int, Copies] = {}
    for row in later_ones(pipeline, joined):
        at = row["_event_time"]
        first, last = (pipeline.grid.of(each).start for each in (at - join.after, at + join.before))
        while first <= last:
            cell = (first - EPOCH) // MICROSECOND
            known = found.get(cell, Copies(0, f"{row['_topic']}/{row['_partition']}@{row['_offset']}"))
            found[cell] = replace(known, rows=known.rows + 1)
            first += pipeline.grid.length
    return found


def log_of(_: object, pipeline: CompiledPipeline, layout: Layout) -> Frame:
    """Return all rows of the log as the record version has them."""
    return Frame(logged(pipeline, layout, EVER))


def find_repeated_records(
    pipeline: CompiledPipeline,
    root: Any,
    written: Sequence[DataFile],
    known: Frame,
    block: Sequence[Epoch],
) -> pa.Table:
    """Find the places of rows just written that repeat the id of an earlier row of their interval."""
    numbers = {each.number for each in block}
    fresh = [row for file in written for row in pq.read_table(str(root / file.path)).to_pylist()]
    rows = [row for row in fresh if row[REASON] is None and row[SELECTED]]
    rows += [
        row
        for row in known.toArrow().to_pylist()
        if row[SELECTED] and row["_epoch"] < max(numbers) and row["_epoch"] not in numbers
    ]
    later = [row for row in later_ones(pipeline, rows) if row["_epoch"] in numbers]
    found = pa.Table.from_pylist([{name: row[name] for name in PLACE.names} for row in later], PLACE)
    return found.append_column(REPEATED, pa.repeat(pa.scalar(True), found.num_rows))


@contextmanager
def sparkless_copies() -> Iterator[None]:
    """Look for copies without Spark where the stream does not."""
    with (
        patch.object(derived_path, "count_joined_copies", count_joined_copies),
        patch.object(reprocessing, "log_of", log_of),
        patch.object(reprocessing, "find_repeated_records", find_repeated_records),
    ):
        yield
