"""When the records were sent that the log has of some lanes: which of them another cluster gives again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from seamline.lake.engine.duckdb_connections import register_tables
from seamline.lake.engine.duckdb_scans import read_parquet_sql
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import Files, read_cached_table
from seamline.lake.tables.log_tails import UNREAD
from seamline.model.protocol.offsets import Lane
from seamline.model.time.intervals import EPOCH, Interval

MICROSECOND = timedelta(microseconds=1)


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


def find_last_records(layout: Layout, lanes: Iterable[Lane]) -> dict[Lane, LastRecord]:
    """Find the newest record of each lane, accepted or refused; a lane of which the log has none is left out."""
    wanted, found = {*lanes}, dict[Lane, tuple[int, LastRecord]]()
    query = (
        "SELECT _topic_id, _partition, max(_offset), any_value(_topic), arg_max(epoch_us(_kafka_timestamp), _offset) "
        "FROM {} WHERE {} GROUP BY ALL"
    )
    for row in [*query_records(layout, "master", query), *query_records(layout, "quarantine", query)]:
        lane, offset = Lane(row[0], row[1]), row[2]
        if lane in wanted and (lane not in found or found[lane][0] < offset):
            found[lane] = offset, LastRecord(row[3], EPOCH + row[4] * MICROSECOND)
    return {lane: last for lane, (_, last) in found.items()}


def count_sent_since(layout: Layout, since: Mapping[Lane, datetime]) -> SentSince:
    """Count the records of lanes from the first on that was sent at or after an instant of each.

    Kafka finds that one by its time and gives all that is behind it, however old: producers' clocks differ.
    """
    if not since:
        return SentSince()
    sent = join_lanes_sql({lane: (at.astimezone(UTC) - EPOCH) // MICROSECOND for lane, at in since.items()})
    firsts = f"SELECT _topic_id, _partition, min(_offset) FROM {sent} AND epoch_us(_kafka_timestamp) >= asked.bound"
    first: dict[Lane, int] = {}
    for table in ("master", "quarantine"):
        for id, part, offset in query_records(layout, table, f"{firsts} GROUP BY ALL"):
            lane = Lane(id, part)
            first[lane] = min(offset, first.get(lane, offset))
    if not first:
        return SentSince()
    of = f"{join_lanes_sql(first)} AND _offset >= asked.bound"
    times = "min(epoch_us(_event_time)), max(epoch_us(_event_time))"
    [(accepted, low, high)] = query_records(layout, "master", f"SELECT count(*), {times} FROM {of}") or [
        (0, None, None)
    ]
    [(refused,)] = query_records(layout, "quarantine", f"SELECT count(*) FROM {of}") or [(0,)]
    span = Interval(EPOCH + low * MICROSECOND, EPOCH + (high + 1) * MICROSECOND) if accepted else None
    return SentSince(accepted, refused, span)


def join_lanes_sql(bounds: Mapping[Lane, int]) -> str:
    """Write a table's rows of some lanes, as ``query_records`` reads them, each with its lane's ``asked.bound``."""
    values = ", ".join(
        f"('{lane.topic_id}', {lane.partition}, {bound})" for lane, bound in sorted(bounds.items())
    )
    same = "_topic_id = asked.topic_id AND _partition = asked.part"
    return f"{{}} JOIN (VALUES {values}) AS asked(topic_id, part, bound) ON {same} WHERE {{}}"


def query_records(layout: Layout, table: str, query: str) -> list[tuple[Any, ...]]:
    """Run a query over the rows of a table, ``FROM {} WHERE {}``; nothing where it has no file."""
    files = read_cached_table(layout.table(table), "files", Files.of)
    if not files or not files.actions.num_rows:
        return []
    read = "true" if table == "master" else f"NOT coalesce({UNREAD}, false)"
    with register_tables() as con:
        return con.execute(query.format(read_parquet_sql(files.paths, uneven=True), read)).fetchall()
