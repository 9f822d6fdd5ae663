"""The survey: a first pass over an epoch's records for what depends on the records before them.

A pipeline has one only where it asks for it: duplicates within a horizon, or count windows. The tasks validate the
records. Their ids go to parts, which say which of them the master contains (``id_index``); the keys of views that count
go to the driver, which sees all of them in order (``register``). What was found the kernel is passed as marks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import duckdb
import pyarrow as pa

from seamline.kernel.epoch_kernel import validate_records
from seamline.kernel.formats import open_readers
from seamline.kernel.kernel_config import KernelConfig
from seamline.kernel.marks import PLACE, join_marks
from seamline.kernel.raw import combine_small_batches, select_new_records
from seamline.kernel.stray_intervals import StrayIntervals
from seamline.lake.engine.states import quote_identifier
from seamline.lake.storage.arrow_types import INSTANT, arrow_type
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.compile.record_rules import SELECTED
from seamline.model.types.schema import Field


def survey_fields(pipeline: CompiledPipeline) -> tuple[Field, ...]:
    """List the columns of a row that a survey reports: the event id, and the keys of views that count."""
    ids = pipeline.event_id if pipeline.record.dedup else ()
    keys = (key.name for view in pipeline.views if view.counts for key in view.ordered_by)
    names = dict.fromkeys([*ids, *keys])
    known = (*pipeline.record.flags, *pipeline.schema.fields)
    return tuple(field for name in names for field in known if field.name == name)


def survey_schema(pipeline: CompiledPipeline) -> pa.Schema:
    """Return the columns of a survey: where a record is, when, its ids and keys, and in which views it is."""
    own = [pa.field(field.name, arrow_type(field.type.spark)) for field in survey_fields(pipeline)]
    counting = [pa.field(view_flag_column(view), pa.bool_()) for view in pipeline.views if view.counts]
    return pa.schema([("_topic", pa.string()), *PLACE, ("_event_time", INSTANT), *own, *counting])


def view_flag_column(view: CompiledView) -> str:
    """Name the column that says whether a view counts a record."""
    return f"_in_{view.fingerprint}"


def survey_records(
    con: duckdb.DuckDBPyConnection, batches: Iterable[pa.RecordBatch], config: KernelConfig
) -> Iterator[pa.Table]:
    """Judge raw records as the kernel will, and report those that are accepted and selected."""
    pipeline, readers = config.pipeline, open_readers(config.pipeline, config.kept)
    schema, strays = survey_schema(pipeline), StrayIntervals(pipeline)
    for raw in combine_small_batches(batches):
        rows = join_marks(con, select_new_records(raw, config), pipeline, None)
        if not rows.num_rows:
            continue
        accepted, _ = strays.split(validate_records(con, rows, config, readers)[0])
        con.register("accepted", accepted)
        found = con.sql(
            f"SELECT {', '.join(survey_columns_sql(pipeline))} FROM accepted{survey_where_sql(pipeline)}"
        )
        yield found.to_arrow_table().select(schema.names).cast(schema)
        con.unregister("accepted")


def survey_columns_sql(pipeline: CompiledPipeline) -> Iterator[str]:
    """Write the columns of a survey over rows with coordinates."""
    yield from ("_topic", *PLACE.names, "_event_time")
    yield from (quote_identifier(field.name) for field in survey_fields(pipeline))
    for view in pipeline.views:
        if view.counts:
            flag = quote_identifier(view_flag_column(view))
            yield f"({view.where.duckdb if view.where else 'true'}) IS TRUE AS {flag}"


def survey_where_sql(pipeline: CompiledPipeline) -> str:
    """Write the condition that keeps the rows that are in any view at all."""
    return f" WHERE {SELECTED}" if pipeline.record.selective else ""
