"""When the records were sent that the log has of some lanes: which of them another cluster gives again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.engine.duckdb_connections import register_tables
from seamline.lake.engine.duckdb_scans import read_parquet_sql
from seamline.lake.storage.arrow_types import INSTANT
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import Files, read_cached_table
from seamline.lake.tables.log_tails import NEAR, UNREAD
from seamline.model.protocol.offsets import Lane, Vector
from seamline.model.time.intervals import EPOCH, Interval

MICROSECOND = timedelta(microseconds=1)
TRUNCATED = timedelta(seconds=1)
"""By how much less than it is a file may say that its latest instant is, and more: statistics have milliseconds."""
Keep = Callable[[Files], Files]
"""Chooses files by their statistics."""


@dataclass(frozen=True)
class LastRecord:
    """The newest record that the log has of a lane."""

    topic: str
    """The topic's name as it was read."""
    at: datetime
    """When it was sent, by Kafka's own time."""


@dataclass(frozen=True)
class SentSince:
    """Records from the first of each lane on that was sent at or after some instant."""

    accepted: int = 0
    """Those that the master has."""
    refused: int = 0
    """Those that the quarantine has."""
    span: Interval | None = None
    """The event times of the accepted ones; None for none."""


def find_last_records(layout: Layout, ends: Vector) -> dict[Lane, LastRecord]:
    """Find the newest record of each lane, accepted or refused; a lane of which the log has none is left out.

    It is looked for near the end of the lane in the log, and of lanes that have none there in all files.
    """
    near = {lane: end - NEAR for lane, end in ends.items()}
    found = {
        lane: each
        for lane, each in find_newest(layout, lambda files: keep_from(files, near)).items()
        if lane in near and each[0] >= near[lane]
    }
    if far := ends.keys() - found.keys():
        found |= {lane: each for lane, each in find_newest(layout).items() if lane in far}
    return {lane: last for lane, (_, last) in found.items()}


def find_newest(layout: Layout, keep: Keep | None = None) -> dict[Lane, tuple[int, LastRecord]]:
    """Find the newest record of each lane among some files, and its offset."""
    query = (
        "SELECT _topic_id, _partition, max(_offset), any_value(_topic), arg_max(epoch_us(_kafka_timestamp), _offset) "
        "FROM {} WHERE {} GROUP BY ALL"
    )
    found = dict[Lane, tuple[int, LastRecord]]()
    for table in ("master", "quarantine"):
        for id, part, offset, topic, at in query_records(layout, table, query, keep):
            lane = Lane(id, part)
            if lane not in found or found[lane][0] < offset:
                found[lane] = offset, LastRecord(topic, EPOCH + at * MICROSECOND)
    return found


def keep_from(files: Files, firsts: Mapping[Lane, int]) -> Files:
    """Keep the files that may have records of lanes from an offset of each on."""
    high, masks = files.high("_offset").cast(pa.int64()), []
    for lane, first in firsts.items():
        masks.append(pc.and_(may_have(files, lane), pc.greater_equal(high, first)))
    return files.keep(reduce(pc.or_kleene, masks)) if masks else files


def may_have(files: Files, lane: Lane) -> pa.ChunkedArray:
    """Return which files may have records of a lane, by their partitions."""
    low, high = (side("_partition").cast(pa.int64()) for side in (files.low, files.high))
    return pc.and_(pc.less_equal(low, lane.partition), pc.greater_equal(high, lane.partition))


def count_sent_since(layout: Layout, since: Mapping[Lane, datetime]) -> SentSince:
    """Count the records of lanes from the first on that was sent at or after an instant of each.

    Kafka finds that one by its time and gives all that is behind it, however old: producers' clocks differ.
    """
    if not since:
        return SentSince()
    sent = join_lanes_sql({lane: (at.astimezone(UTC) - EPOCH) // MICROSECOND for lane, at in since.items()})
    least = min(since.values()) - TRUNCATED
    firsts = f"SELECT _topic_id, _partition, min(_offset) FROM {sent} AND epoch_us(_kafka_timestamp) >= asked.bound"
    first: dict[Lane, int] = {}
    for table in ("master", "quarantine"):
        for id, part, offset in query_records(
            layout, table, f"{firsts} GROUP BY ALL", lambda files: keep_sent(files, least)
        ):
            lane = Lane(id, part)
            first[lane] = min(offset, first.get(lane, offset))
    if not first:
        return SentSince()
    of = f"{join_lanes_sql(first)} AND _offset >= asked.bound"
    times = "min(epoch_us(_event_time)), max(epoch_us(_event_time))"

    def keep(files: Files) -> Files:
        return keep_from(files, first)

    [(accepted, low, high)] = query_records(
        layout, "master", f"SELECT count(*), {times} FROM {of}", keep
    ) or [(0, None, None)]
    [(refused,)] = query_records(layout, "quarantine", f"SELECT count(*) FROM {of}", keep) or [(0,)]
    span = Interval(EPOCH + low * MICROSECOND, EPOCH + (high + 1) * MICROSECOND) if accepted else None
    return SentSince(accepted, refused, span)


def keep_sent(files: Files, since: datetime) -> Files:
    """Keep the files that may have records that were sent at an instant or later."""
    return files.keep(
        pc.greater_equal(files.high("_kafka_timestamp").cast(INSTANT), pa.scalar(since, INSTANT))
    )


def join_lanes_sql(bounds: Mapping[Lane, int]) -> str:
    """Write a table's rows of some lanes, as ``query_records`` reads them, each with its lane's ``asked.bound``."""
    values = ", ".join(
        f"('{lane.topic_id}', {lane.partition}, {bound})" for lane, bound in sorted(bounds.items())
    )
    same = "_topic_id = asked.topic_id AND _partition = asked.part"
    return f"{{}} JOIN (VALUES {values}) AS asked(topic_id, part, bound) ON {same} WHERE {{}}"


def query_records(layout: Layout, table: str, query: str, keep: Keep | None = None) -> list[tuple[Any, ...]]:
    """Run a query over the rows of a table, ``FROM {} WHERE {}``, of some files; nothing where there is none."""
    files = read_cached_table(layout.table(table), "files", Files.of)
    if files and files.actions.num_rows and keep:
        files = keep(files)
    if not files or not files.actions.num_rows:
        return []
    read = "true" if table == "master" else f"NOT coalesce({UNREAD}, false)"
    with register_tables() as con:
        return con.execute(query.format(read_parquet_sql(files.paths, uneven=True), read)).fetchall()
