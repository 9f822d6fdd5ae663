"""The newest record of each lane that the log keeps, found by the statistics of its files."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.engine.duckdb_connections import register_tables
from seamline.lake.engine.duckdb_scans import read_parquet_sql
from seamline.lake.storage.table_cache import Files
from seamline.model.protocol.log_tail import Tail, hash_record_value
from seamline.model.protocol.offsets import Lane, Vector

NEAR = 64
"""Offsets: how far before its end a lane's newest record is looked for. Markers of transactions have none."""
UNREAD = "_reason = 'kernel error' AND _key IS NULL AND _value IS NULL AND _headers IS NULL"
"""What the quarantine may have of a record that was passed over unread: its Kafka timestamp is that of its passing."""


def find_log_tails(master: Files, quarantine: Files, ends: Vector) -> dict[Lane, Tail]:
    """Find the newest record below each lane's end that was read; a lane that has none near it is left out."""
    found: dict[Lane, Tail] = {}
    for lane, end in ends.items():
        known = (
            find_newest_record(master, lane, end, whole=True),
            find_newest_record(quarantine, lane, end, whole=False),
        )
        if there := [each for each in known if each]:
            found[lane] = max(there, key=lambda each: each.offset)
    return found


def find_newest_record(files: Files, lane: Lane, end: int, *, whole: bool) -> Tail | None:
    """Find the newest record of a lane near its end in a table, whose values are ``whole``, or less than was read."""
    if not files.actions.num_rows or end <= 0:
        return None
    low, high = (
        {column: side(column).cast(pa.int64()) for column in ("_partition", "_offset")}
        for side in (files.low, files.high)
    )
    may = pc.and_(
        pc.and_(
            pc.less_equal(low["_partition"], lane.partition),
            pc.greater_equal(high["_partition"], lane.partition),
        ),
        pc.and_(pc.less(low["_offset"], end), pc.greater_equal(high["_offset"], end - NEAR)),
    )
    if not (files := files.keep(may)).actions.num_rows:
        return None
    kept = "" if whole else f"AND NOT coalesce({UNREAD}, false)"
    query = (
        f"SELECT _offset, epoch_ms(_kafka_timestamp), _value FROM {read_parquet_sql(files.paths, uneven=True)} "
        f"WHERE _topic_id = ? AND _partition = ? AND _offset >= ? AND _offset < ? {kept} "
        "ORDER BY _offset DESC LIMIT 1"
    )
    with register_tables() as con:
        rows = con.execute(query, [lane.topic_id, lane.partition, end - NEAR, end]).fetchall()
    return next(
        (Tail(offset, at, hash_record_value(value) if whole else "") for offset, at, value in rows), None
    )
