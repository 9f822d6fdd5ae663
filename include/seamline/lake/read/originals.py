"""The master's rows behind one number: how many should count, from which side, and the rows themselves."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.engine import states
from seamline.lake.engine.accepted_rows import READ_ORDER, record_version_sql, repeated_id_sql
from seamline.lake.engine.duckdb_connections import register_tables
from seamline.lake.engine.duckdb_scans import read_parquet_sql
from seamline.lake.engine.pane_ranges import to_unix_micros
from seamline.lake.engine.states import quote_identifier
from seamline.lake.joins.emitted_rows import read_emitted_rows
from seamline.lake.joins.original_pairs import read_derived_rows
from seamline.lake.joins.restated_rows import Judge
from seamline.lake.log.log_files import files_of
from seamline.lake.read.answer_ways import IntervalAnswer
from seamline.lake.read.original_changes import count_change_rows
from seamline.lake.storage.arrow_types import arrow_type
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import Files, read_cached_table
from seamline.lake.tables.reprocessed import REASON, Reprocessed, rows_schema
from seamline.model.compile.changes.compiled_changelog import SIGN
from seamline.model.compile.compiled_join import KIND
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.compile.record_rules import SELECTED, SOURCE
from seamline.model.protocol.seam import NOTHING
from seamline.model.time.intervals import Interval, parse_moment
from seamline.model.time.reached_intervals import widen_by_reach

TOPIC_ID = "_topic_id"
"""A column that says of a row whether it was read of a topic or imported; of joined and emitted rows it is left out."""
SHOWN = ("_partition", "_offset", "_epoch", "_event_time", "_kafka_timestamp")
IN_ORDER = [(name, "ascending") for name in READ_ORDER]
"""How rows are sorted that are shown: in the order in which they were read."""
OF_ONE = [
    (name, "ascending")
    for name in (KIND, "_right_epoch", "_right_partition", "_right_offset", "_right_topic")
]
"""How the derived rows of one left row are sorted after it."""
BY_TIME = [(name, "ascending") for name in ("_event_time", "_partition", "_offset", "_topic")]
"""How emitted rows are sorted: by their own time, then as the records were that their calls were given."""


@dataclass(frozen=True)
class CountedRecords:
    """How many rows of one interval belong in the number."""

    batch: int
    """Rows up to the cut, duplicates left out."""
    speed: int
    """Rows above the cut."""
    duplicates: int
    """Rows up to the cut whose event id an earlier row of the interval has."""


def read_original_rows(
    pipeline: CompiledPipeline,
    view: CompiledView,
    layout: Layout,
    key: Mapping[str, Any],
    window: Interval,
    intervals: Mapping[str, IntervalAnswer],
    *,
    again: Mapping[str, Judge],
    page: int = 0,
    size: int = 20,
) -> tuple[dict[str, CountedRecords], list[dict[str, Any]]]:
    """Count the rows of a key and window per interval, and return one page of them in the order they came.

    ``again`` says, by interval id, what restatements changed in the rows up to the cut.
    """
    if view.changelog:
        signed, rows = count_change_rows(pipeline, view, layout, seek_key(view, key), key, intervals)
        found = rows.sort_by([*IN_ORDER, (SIGN, "ascending")]).slice(page * size, size)
        return {id: CountedRecords(*each, 0) for id, each in signed.items()}, found.to_pylist()
    files = [
        read_cached_table(layout.table("master"), "files", Files.of),
        Reprocessed(pipeline, layout).files(),
    ]
    counted: dict[str, CountedRecords] = {}
    shown: list[pa.Table] = []
    for id, way in intervals.items():
        interval = Interval(parse_moment(id), parse_moment(id) + pipeline.grid.length)
        wide = widen_by_reach(pipeline.grid, interval, view) if view.process else interval
        paths = [path for each in files if each for path in files_of(each, wide, way.complete_to)]
        if not paths:
            counted[id] = CountedRecords(0, 0, 0)
            continue
        if view.netted:
            counted[id], rows = read_changed_interval(
                pipeline, view, layout, key, window, interval, way, again.get(id)
            )
            shown.append(rows)
            continue
        if view.join:
            sought = seek_key(view, key)
            rows = read_derived_rows(
                pipeline, view, layout, sought, key, window, interval, way.complete_to, again.get(id)
            )
        else:
            rows = read_interval_rows(
                pipeline, view, paths, key, window, interval, way.complete_to, way.cut, again.get(id)
            )
        spare = pc.and_(rows["_spare"], pc.less_equal(rows["_epoch"], way.cut))
        below = pc.less_equal(rows["_epoch"], way.cut)
        counted[id] = CountedRecords(
            batch=count_true_rows(pc.and_(below, pc.invert(spare))),
            speed=count_true_rows(pc.invert(below)),
            duplicates=count_true_rows(spare),
        )
        shown.append(rows)
    if not shown:
        return counted, []
    within = [("_ordinal", "ascending")] if view.explode else []
    order = BY_TIME if view.process else [*IN_ORDER, *(OF_ONE if view.join else within)]
    whole = pa.concat_tables(shown).sort_by(order)
    return counted, whole.slice(page * size, size).to_pylist()


def read_changed_interval(
    pipeline: CompiledPipeline,
    view: CompiledView,
    layout: Layout,
    key: Mapping[str, Any],
    window: Interval,
    interval: Interval,
    way: IntervalAnswer,
    judge: Judge | None,
) -> tuple[CountedRecords, pa.Table]:
    """Read the rows of a key and window in one interval as they are now; the speed layer counts the difference.

    It is negative if late rows withdrew some since the cut.
    """
    sought, read = seek_key(view, key), read_emitted_rows if view.process else read_derived_rows
    made, rows = [], pa.table({})
    for until in (way.cut, way.complete_to):
        if until > NOTHING:
            rows = read(pipeline, view, layout, sought, key, window, interval, until, judge)
        made.append(rows.num_rows)
    return CountedRecords(batch=made[0], speed=made[1] - made[0], duplicates=0), rows


def list_shown_columns(pipeline: CompiledPipeline, sources: Collection[str] = ()) -> list[str]:
    """List what is shown of rows: where they are from, then the columns that those of ``sources`` have.

    Of a pipeline of one source those are all columns.
    """
    own = {
        field.name for each in pipeline.alone if each.source.name in sources for field in each.schema.fields
    }
    columns = [field.name for field in pipeline.schema.fields if not pipeline.alone or field.name in own]
    return [*([SOURCE] if pipeline.alone else []), "_topic", *SHOWN, *columns]


def count_true_rows(mask: pa.ChunkedArray) -> int:
    """Count the rows for which a mask is true."""
    return pc.sum(mask.cast(pa.int64())).as_py() or 0


def read_interval_rows(
    pipeline: CompiledPipeline,
    view: CompiledView,
    paths: list[str],
    key: Mapping[str, Any],
    window: Interval,
    interval: Interval,
    until: int,
    cut: int,
    again: Judge | None,
) -> pa.Table:
    """Read the rows of a key and window in one interval; ``_spare`` marks repeated event ids up to the cut."""
    spare = f"_epoch <= {cut} AND {repeated_id_sql(pipeline)}"
    columns = ", ".join(map(quote_identifier, [*list_shown_columns(pipeline, view.of), TOPIC_ID]))
    # A column that no file has yet comes from ``blank``.
    given = {
        "blank": rows_schema(pipeline).empty_table(),
        "sought": seek_key(view, key),
    }
    matches = [
        f"rows.{quote_identifier(name)} IS NOT DISTINCT FROM sought.{quote_identifier(name)}" for name in key
    ]
    matches += [
        f"epoch_us(rows._event_time) >= {to_unix_micros(window.start)}",
        f"epoch_us(rows._event_time) < {to_unix_micros(window.end)}",
    ]
    chosen = f"({view.where.duckdb})" if view.where else "true"
    if pipeline.record.selective:
        columns += f", {quote_identifier(SELECTED)}"
    source = (
        f"(SELECT * FROM {read_parquet_sql(paths, uneven=True)} UNION ALL BY NAME SELECT * FROM blank) "
        f"WHERE {record_version_sql(pipeline.record_version)} AND {REASON} IS NULL AND _epoch <= {until} "
        f"AND epoch_us(_event_time) >= {to_unix_micros(interval.start)} "
        f"AND epoch_us(_event_time) < {to_unix_micros(interval.end)}"
    )
    if again is not None:
        with register_tables(blank=given["blank"]) as con:
            whole = con.sql(f"SELECT * FROM {source}").to_arrow_table()
        built = pc.less_equal(whole["_epoch"], cut)
        parts = [again(whole.filter(built)), whole.filter(pc.invert(built))]
        given, source = {**given, "restated": pa.concat_tables(parts)}, "restated"
    with register_tables(**given) as con:
        return con.sql(
            f"WITH read AS (SELECT {columns}, {spare} AS _spare FROM {source}), "
            f"rows AS ({numbered_rows_sql(view, 'read')}) "
            f"SELECT rows.*{hidden_columns_sql(view)} "
            f"FROM (SELECT * FROM {states.exploded_rows_sql(view, 'rows')} WHERE {chosen}) rows, sought "
            f"WHERE {' AND '.join(matches)}"
        ).to_arrow_table()


def hidden_columns_sql(view: CompiledView) -> str:
    """Write what an explanation leaves out of rows: which item a row is, where each is a whole record.

    Where a transform gave the rows their columns are shown, and not the ARRAY of all that it gave for the record.
    """
    if view.explode is None:
        return " EXCLUDE (_ordinal)"
    if not view.explode.parts:
        return ""
    hidden = sorted({view.explode.item.name, *view.explode.array.columns})
    return f" EXCLUDE ({', '.join(map(quote_identifier, hidden))})"


def numbered_rows_sql(view: CompiledView, relation: str) -> str:
    """Write the reading of rows, with the number of their window where windows are of so many events."""
    if not view.counts:
        return f"SELECT * FROM {relation}"
    counts = f"({view.where.duckdb}) IS TRUE AND NOT _spare" if view.where else "NOT _spare"
    keys = ", ".join([f"({counts})", *(quote_identifier(key.name) for key in view.ordered_by)])
    place = f"row_number() OVER (PARTITION BY {keys} ORDER BY {', '.join(READ_ORDER)})"
    return (
        f"SELECT *, CASE WHEN {counts} THEN ({place} - 1) // {view.counts} + 1 END "
        f"AS {quote_identifier(view.numbered)} FROM {relation}"
    )


def seek_key(view: CompiledView, key: Mapping[str, Any]) -> pa.Table:
    """Return a table of one row with the values of a key."""
    return pa.table(
        {name: pa.array([value], key_type(view, name)) for name, value in key.items()} or {"_": [0]}
    )


def key_type(view: CompiledView, name: str) -> pa.DataType:
    """Return the Arrow type of a key."""
    return next(arrow_type(each.type.spark) for each in view.keys if each.name == name)
