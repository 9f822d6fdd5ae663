"""Copies that are joined: rows of a build that repeat an event id, which the stream had forgotten when they came."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from seamline.lake.engine.accepted_rows import READ_ORDER
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.event_ids import list_id_expressions
from seamline.model.compile.processes.compiled_process import CompiledProcess, Derived
from seamline.model.compile.record_rules import SELECTED, SOURCE
from seamline.model.time.intervals import Grid
from seamline.model.time.zone_clock import MICROSECOND
from seamline.spark.build.share_rows import CELL
from seamline.spark.tasks.measures import quote_column


@dataclass(frozen=True)
class Copies:
    """Copies in the reach of one interval."""

    rows: int = 0
    """How many there are."""
    first: str = ""
    """Where the first one is: ``topic/partition@offset``."""


def cell_of(grid: Grid, away: timedelta = timedelta(0)) -> Column:
    """Return the start of the interval in which a row is, or of that so far ``away`` from it, in microseconds."""
    moment = f.unix_micros(f.col("_event_time")) + f.lit(away // MICROSECOND)
    return moment - f.pmod(moment, f.lit(grid.length // MICROSECOND))


def last_cell_of(grid: Grid, derived: Derived) -> Column:
    """Return the start of the last interval in whose reach a row is: of a fold that is the last of its span."""
    if not isinstance(derived, CompiledProcess) or derived.begin <= grid.length:
        return cell_of(grid, derived.before)
    moment, size = f.unix_micros(f.col("_event_time")), f.lit(derived.size)
    return moment - f.pmod(moment, size) + size - f.lit(grid.length // MICROSECOND)


def count_joined_copies(
    rows: DataFrame, pipeline: CompiledPipeline, derived: Derived
) -> Mapping[int, Copies]:
    """Count, by the start of an interval in microseconds, the copies that its derived rows may be made of.

    ``rows`` are all of whole intervals. A row is a copy if an earlier one of its interval has its event id.
    """
    event_id = [f.expr(each) for each in list_id_expressions(pipeline, quote_column)]
    if not event_id:
        return {}
    grid, sources = pipeline.grid, sorted({side.source for side in derived.sides})
    earlier = Window.partitionBy(CELL, *event_id).orderBy(*READ_ORDER)
    joined = rows.where(f.col(SELECTED) & f.col(SOURCE).isin(sources)).withColumn(CELL, cell_of(grid))
    copies = joined.withColumn("_number", f.row_number().over(earlier)).where("_number > 1")
    first, last = cell_of(grid, -derived.after), last_cell_of(grid, derived)
    starts = f.sequence(first, last, f.lit(grid.length // MICROSECOND))
    reached = copies.select(*READ_ORDER, f.explode(starts).alias(CELL))
    table = reached.groupBy(CELL).agg(f.count(f.lit(1)), f.min(f.struct(*READ_ORDER))).toArrow()
    return {
        cell: Copies(count, f"{place['_topic']}/{place['_partition']}@{place['_offset']}")
        for cell, count, place in zip(*(column.to_pylist() for column in table.columns), strict=True)
    }
