"""States that Spark has no aggregate for: its tasks run the kernel's code, before and after one shuffle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import cast

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from seamline.kernel.raw import combine_small_batches
from seamline.lake.engine import states
from seamline.lake.engine.duckdb_connections import open_duckdb
from seamline.lake.engine.signed_states import compute_signed_states
from seamline.model.compile.changes.compiled_changelog import SIGN
from seamline.model.compile.compiled_pipeline import NUMBER, CompiledView
from seamline.model.time.window_arithmetic import Gaps
from seamline.spark.tasks.task import limit_task_memory

NEEDED = ("_event_time", "_partition", "_offset")


def arrow_states(rows: DataFrame, view: CompiledView, by: Sequence[str], memory: str) -> DataFrame:
    """Compute the states of rows: each task makes partial ones, and merges its share of the keys, in ``memory``."""
    # The kernel's code finds the numbers of count windows where the survey writes them.
    rows = rows.withColumnRenamed(NUMBER, view.numbered) if view.counts else rows
    # Emitted rows have no place: no measure of theirs goes by one.
    always = NEEDED[:1] if view.process else (*NEEDED, SIGN) if view.changelog else NEEDED
    columns = [f"`{name}`" for name in [*by, *always, *sorted(read_by(view) - {*by, *always})]]
    needed = rows.select(*columns)
    schema = schema_of(rows, view, by)
    made = needed.mapInArrow(
        limit_task_memory(lambda batches: compute_arrow_states(batches, view, by), memory), schema
    )
    together = [*by, *(key.name for key in view.keys), *([] if isinstance(view.windows, Gaps) else ["pane"])]
    spread = made.repartition(*(f"`{name}`" for name in together)) if together else made.coalesce(1)
    return spread.mapInArrow(
        limit_task_memory(lambda batches: merge_arrow_states(batches, view, by), memory), schema
    )


def read_by(view: CompiledView) -> set[str]:
    """List the columns of a row that a view reads."""
    expressions = [view.where, *(state.expression for state in view.states)]
    read = {key.name for key in view.ordered_by}.union(*(each.columns for each in expressions if each))
    if view.counts:
        return read | {view.numbered}
    if view.explode is None:
        return read
    return (read - view.explode.made) | view.explode.array.columns


def list_read_columns(views: Iterable[CompiledView]) -> list[str]:
    """List the columns of a row that any of some views reads, and those that states need."""
    return [*NEEDED, *sorted(set[str]().union(*map(read_by, views)) - {*NEEDED})]


def schema_of(rows: DataFrame, view: CompiledView, by: Sequence[str]) -> StructType:
    """Return Spark's schema of the states."""
    types = {name: rows.schema[name].dataType.simpleString() for name in by}
    types |= {key.name: key.type.spark for key in view.keys}
    types |= dict.fromkeys(["pane", "_last"] if isinstance(view.windows, Gaps) else ["pane"], "TIMESTAMP")
    types |= {"rows": "BIGINT", **{part.name: part.type for part in view.parts}}
    return cast(
        "StructType", StructType.fromDDL(", ".join(f"`{name}` {type}" for name, type in types.items()))
    )


def compute_arrow_states(
    batches: Iterable[pa.RecordBatch], view: CompiledView, by: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Make states of rows, a bounded number at a time."""
    with open_duckdb() as con:
        for chunk in combine_small_batches(batches):
            con.register("chunk", chunk)
            compute = compute_signed_states if view.changelog else states.compute_row_states
            yield from compute(con, view, "chunk", by=by).to_batches()
            con.unregister("chunk")


def merge_arrow_states(
    batches: Iterable[pa.RecordBatch], view: CompiledView, by: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Merge the states of one share of the keys, a bounded number at a time."""
    held: list[pa.Table] = []
    for chunk in combine_small_batches(batches):
        held = [states.combine_states(view, [*held, chunk], by=by)]
    for table in held:
        yield from table.to_batches()
