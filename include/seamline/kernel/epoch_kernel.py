"""The epoch kernel: one pass over raw Kafka records in each task.

It validates every record, writes the accepted and the refused ones as Parquet files into the tables' folders,
and reports the files, the counts and the partial states. It commits nothing and needs no Spark.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seamline.kernel.by_source import (
    find_very_late,
    merge_sources,
    number_rows,
    reject_foreign_rows,
    split_by_source,
)
from seamline.kernel.formats import Reader, open_readers
from seamline.kernel.formats.reader import decode_utf8, decode_utf8_column
from seamline.kernel.item_errors import validate_items
from seamline.kernel.joined_rows import add_joined_rows
from seamline.kernel.kernel_config import KernelConfig
from seamline.kernel.kernel_result import KernelResult
from seamline.kernel.marks import join_marks
from seamline.kernel.raw import (
    combine_small_batches,
    filter_rows,
    reject_all_rows,
    select_new_records,
)
from seamline.kernel.raw_queries import bind_lookups, query_raw_table, read_by
from seamline.kernel.record_bounds import split_oversized_explosions, split_oversized_records
from seamline.kernel.rule_records import split_wrong_rules
from seamline.kernel.stray_intervals import TIMES, StrayIntervals
from seamline.kernel.transforming import apply_transform
from seamline.kernel.validation import REPEATED, parse_sql, validate_transformed_sql, validation_sql
from seamline.lake.engine import states
from seamline.lake.engine.duckdb_connections import open_duckdb
from seamline.lake.engine.pane_ranges import to_unix_micros
from seamline.lake.log.record_files import Sink
from seamline.lake.storage.arrow_types import INSTANT, QUARANTINE, master_schema
from seamline.model.compile.compiled_pipeline import CompiledView
from seamline.model.errors import MeasureFailed
from seamline.model.protocol.offsets import Lane
from seamline.model.time.intervals import EPOCH, format_utc_instant
from seamline.model.time.zone_clock import MICROSECOND
from seamline.runtime.failpoints import fail_on_poison, hit_failpoint

OF_VALUES = (ValueError, TypeError, ArithmeticError, RuntimeError)
"""What values may be wrong with."""
LANE = ("_topic_id", "_partition")
"""The columns that name a ``Lane``."""


def run(batches: Iterable[pa.RecordBatch], config: KernelConfig, *, task: int = 0) -> KernelResult:
    """Judge, write and aggregate raw records (key, value, topic, partition, offset, timestamp, headers)."""
    con = open_worker_duckdb()
    result = KernelResult()
    readers = open_readers(config.pipeline, config.kept)
    views = [view for view in config.pipeline.views if view.id in config.views and not view.derived]
    strays = StrayIntervals(config.pipeline)
    schema = master_schema(config.pipeline)
    master = Sink(config.master, file_name(config, task), schema, dry=config.dry)
    quarantine = Sink(config.quarantine, file_name(config, task), QUARANTINE, dry=config.dry)
    for raw in combine_small_batches(config.read(iter(batches)) if config.read else batches):
        result.record_bytes = max(result.record_bytes, raw.nbytes // raw.num_rows)
        rows = join_marks(con, select_new_records(raw, config), config.pipeline, config.marks)
        if not rows.num_rows:
            continue
        if not config.condemned:
            fail_on_poison(rows["_value"])
        accepted, refused = validate_records(con, rows, config, readers)
        if config.until is not None:
            accepted = filter_rows(
                accepted, pc.less(accepted["_event_time"], pa.scalar(config.until, INSTANT))
            )
        accepted, astray = strays.split(accepted)
        refused = (
            pa.concat_tables([refused, astray.select(refused.column_names)]) if astray.num_rows else refused
        )
        master.write(accepted)
        quarantine.write(refused)
        hit_failpoint("half")
        count_refused(refused, result)
        if accepted.num_rows:
            count_accepted(accepted, config, result)
            add_partial_states(con, accepted, views, result)
            add_joined_rows(con, accepted, config.pipeline, result)
    result.master, result.quarantine = master.close(), quarantine.close()
    for view in views if not config.parts else []:
        with isolate_view_failure(view, result):
            if view.id in result.states:
                result.states[view.id] = [states.combine_if_several(view, result.states[view.id])]
    return result


def file_name(config: KernelConfig, task: int) -> str:
    """Name a task's file by token and epoch (rule 16)."""
    return f"{config.token:06d}-{config.epoch:012d}-{task:05d}-{uuid.uuid4().hex}.parquet"


@cache
def open_worker_duckdb() -> duckdb.DuckDBPyConnection:
    """Open one DuckDB per process: a worker keeps it from task to task."""
    return open_duckdb()


def validate_records(
    con: duckdb.DuckDBPyConnection, rows: pa.Table, config: KernelConfig, readers: Sequence[Reader]
) -> tuple[pa.Table, pa.Table]:
    """Part records into master rows and quarantine rows, in the order they came; ``readers`` are of each source.

    Of those refused the ones out of bounds, and those of which an item is in error, are last.
    """
    if config.condemned:
        return master_schema(config.pipeline).empty_table(), reject_all_rows(
            rows, "kernel error", config.condemned
        )
    if not config.pipeline.alone:
        return validate_source_records(con, rows, config, readers[0])
    rows = number_rows(rows)
    made = [
        validate_source_records(con, own, replace(config, pipeline=alone), reader)
        for alone, reader, own in split_by_source(rows, config.pipeline, readers)
    ]
    return merge_sources(config.pipeline, made, reject_foreign_rows(rows, config.pipeline))


def validate_source_records(
    con: duckdb.DuckDBPyConnection, rows: pa.Table, config: KernelConfig, reader: Reader
) -> tuple[pa.Table, pa.Table]:
    """Part the records of one source."""
    late, source = [], config.pipeline.source
    if config.bounded:
        rows, large = split_oversized_records(rows, source, parts=reader.parts)
        late.append(large)
    accepted, refused = parse_and_validate(con, rows, config, reader)
    if config.bounded:
        accepted, wide = split_oversized_explosions(con, accepted, config.pipeline.views, source)
        late.append(wide)
    accepted, wrong = validate_items(con, accepted, config.pipeline)
    late.append(wrong)
    accepted, unruly = split_wrong_rules(accepted, config.pipeline)
    more = [each.select(refused.column_names) for each in (*late, unruly) if each.num_rows]
    return accepted, pa.concat_tables([refused, *more]) if more else refused


def parse_and_validate(
    con: duckdb.DuckDBPyConnection, rows: pa.Table, config: KernelConfig, reader: Reader
) -> tuple[pa.Table, pa.Table]:
    """Let the reader and the definition part records that are within bounds."""
    config = bind_lookups(config)
    own = [REPEATED] if config.pipeline.record.dedup else []
    raw = rows.select(["_value", "_topic", "_partition", "_offset", "_kafka_timestamp", *own])
    for name, column in {
        **decode_key_and_headers(rows, config.pipeline.record.metadata),
        **reader.columns(rows["_value"]),
    }.items():
        raw = raw.append_column(name, column)
    # A record that is reprocessed was processed when it was.
    if "_processing_time" in rows.column_names:
        raw = raw.append_column("_processing_time", rows["_processing_time"])
    else:
        raw = raw.append_column("_processing_time", pa.repeat(pa.scalar(config.at, INSTANT), rows.num_rows))
    if config.pipeline.record.transform is None:
        found = read_by(reader, con, validation_sql, raw, config)
    else:
        made = apply_transform(read_by(reader, con, parse_sql, raw, config), config.pipeline.record.transform)
        found = query_raw_table(con, validate_transformed_sql(config.pipeline, "raw"), made, config)
    verdict = found["_judged"]
    good = pc.is_null(verdict)
    parsed = filter_rows(found.drop_columns(["_judged"]), good)
    accepted = filter_rows(rows, good)
    for name in parsed.column_names:
        accepted = accepted.append_column(name, parsed[name])
    bad = pc.invert(good)
    why = verdict.filter(bad)
    refused = rows.filter(bad).append_column("_reason", pc.list_element(why, 0))
    return accepted, refused.append_column("_detail", pc.list_element(why, 1))


def decode_key_and_headers(rows: pa.Table, wanted: Collection[str]) -> dict[str, pa.ChunkedArray]:
    """Return key and headers as expressions see them: text, NULL where it is none; of one name the last header."""
    found = {}
    if "_key" in wanted:
        found["_key"] = decode_utf8_column(rows["_key"])
    if "_headers" in wanted:
        lists = rows["_headers"].to_pylist()
        pairs = [
            each
            and list(
                {one["key"]: decode_utf8(one["value"]) for one in each if one["key"] is not None}.items()
            )
            for each in lists
        ]
        found["_headers"] = pa.chunked_array([pa.array(pairs, pa.map_(pa.string(), pa.string()))])
    return found


def count_accepted(accepted: pa.Table, config: KernelConfig, result: KernelResult) -> None:
    """Count accepted rows per interval and find the largest event time per partition."""
    times = accepted["_event_time"].cast(INSTANT).cast(pa.int64()).to_numpy()
    size = config.pipeline.grid.length // MICROSECOND
    starts = times // size * size
    result.accepted.update(count_by_interval(starts))
    if config.watermark is not None:
        late = times < to_unix_micros(config.watermark)
        very = find_very_late(accepted, times, config.pipeline, config.watermark)
        result.late.update(count_by_interval(starts[late & ~very]))
        result.very_late.update(count_by_interval(starts[very]))
    latest = accepted.group_by(list(LANE), use_threads=False).aggregate([("_event_time", "max")])
    for at, *lane in zip(*(latest[name].to_pylist() for name in ("_event_time_max", *LANE)), strict=True):
        result.add(KernelResult(max_event_time={Lane(*lane): at}))


def count_refused(refused: pa.Table, result: KernelResult) -> None:
    """Count refused records by reason, and those of a wrong clock by partition too."""
    reasons = refused["_reason"].to_pylist()
    result.refused.update(Counter(reasons))
    if not TIMES.isdisjoint(reasons):
        lanes = zip(*(refused[name].to_pylist() for name in LANE), strict=True)
        result.astray.update(
            Lane(*lane) for reason, lane in zip(reasons, lanes, strict=True) if reason in TIMES
        )


def count_by_interval(starts: np.ndarray) -> dict[str, int]:
    """Count rows by the interval whose start, in microseconds, each has."""
    found = (part.to_pylist() for part in pc.value_counts(pa.array(starts)).flatten())
    return {format_utc_instant(EPOCH + at * MICROSECOND): count for at, count in zip(*found, strict=True)}


def add_partial_states(
    con: duckdb.DuckDBPyConnection, accepted: pa.Table, views: Iterable[CompiledView], result: KernelResult
) -> None:
    """Add the partial states of every view."""
    tables = {"accepted": accepted}
    for view in views:
        with isolate_view_failure(view, result):
            found = states.compute_row_states(con, view, "accepted", tables=tables)
            result.states.setdefault(view.id, []).append(found)


@contextmanager
def isolate_view_failure(view: CompiledView, result: KernelResult) -> Iterator[None]:
    """Note what fails for a view; it is behind then, and harms no other (rule 6).

    That memory does not suffice is no trouble of a view's: it is a record, or the epoch is too large.
    """
    try:
        yield
    except (duckdb.OutOfMemoryException, MemoryError):
        raise
    except (duckdb.Error, pa.ArrowException, MeasureFailed, *OF_VALUES) as error:
        result.failed[view.id] = f"{type(error).__name__}: {error}"
