"""Records of the log that are sent as dead letters: raw as they were read, in the order in which they were.

Neither the quarantine nor the master ever lets go of a committed row: whatever upkeep has packed, an epoch's rows are
found by its number in the newest version of the table (rule 33).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.engine.accepted_rows import READ_ORDER
from seamline.lake.engine.duckdb_connections import open_beside
from seamline.lake.engine.duckdb_scans import quote_literal, read_parquet_sql
from seamline.lake.engine.pane_ranges import to_unix_micros
from seamline.lake.read.sinks.served_changes import BATCH, MEMORY
from seamline.lake.storage.arrow_types import COORDINATES
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.parquet_files import read_parquet_footer
from seamline.lake.storage.table_cache import Files, read_cached_table
from seamline.lake.tables.log_tails import UNREAD
from seamline.model.compile.record_rules import SIDE
from seamline.model.protocol.sinks.dead_letters import LATE, REJECTED, LettersOf

TOLD = ("reason", "detail", "event_time", "mark", "unread")
"""Columns of a letter beside the record's own: why it is sent, what was wrong with it, its event time, the watermark
behind which it was, and whether the log does not have its bytes."""
NONE = "NULL::BIGINT"
PACKED = 8 << 20
"""Bytes, as files have them, that are read at a time: a record may be of many megabytes."""


def iterate_letters(
    layout: Layout, of: str, epochs: Sequence[LettersOf], skip: int = 0
) -> Iterator[pa.Table]:
    """Read the records of some epochs that are sent, in the order in which they were read, without the first ``skip``.

    What is sorted is written to disk where it is much.
    """
    files = list_letter_files(layout, of, epochs) if epochs else None
    if files is None or not files.actions.num_rows:
        return
    at_once = max(1, min(BATCH, PACKED * files.rows // (pc.sum(files.actions["size_bytes"]).as_py() or 1)))
    with open_beside(1) as con:
        con.execute(f"SET memory_limit = '{MEMORY}'")
        con.register("wanted", list_wanted(epochs))
        with con.sql(write_letters_query(of, files.paths)).to_arrow_reader(at_once) as reader:
            for batch in reader:
                found = pa.Table.from_batches([batch]).slice(skip)
                skip -= batch.num_rows - found.num_rows
                if found.num_rows:
                    yield found


def list_letter_files(layout: Layout, of: str, epochs: Sequence[LettersOf]) -> Files | None:
    """List the files that may have records of some epochs, by their statistics; None without a table."""
    root = layout.table("quarantine" if of == REJECTED else "master")
    # After the log was read: what it lists is in the files by then.
    files = read_cached_table(root, "files", Files.of)
    if files is None or not files.actions.num_rows:
        return files
    first, last = (side("_epoch").cast(pa.int64()) for side in (files.low, files.high))
    files = files.keep(
        pc.and_kleene(pc.greater_equal(last, epochs[0].number), pc.less_equal(first, epochs[-1].number))
    )
    if of in (REJECTED, LATE) or not files.actions.num_rows:
        return files
    files = files.keep(pc.less(files.nulls(SIDE).cast(pa.int64()), files.actions["num_records"]))
    # A file that is older than the first side has no such column.
    has = [SIDE in read_parquet_footer(path).schema.to_arrow_schema().names for path in files.paths]
    return files.keep(pa.chunked_array([pa.array(has, pa.bool_())]))


def list_wanted(epochs: Sequence[LettersOf]) -> pa.Table:
    """List epochs with their watermarks, in microseconds."""
    marks = [None if each.mark is None else to_unix_micros(each.mark) for each in epochs]
    return pa.table(
        {
            "number": pa.array([each.number for each in epochs], pa.int64()),
            "mark": pa.array(marks, pa.int64()),
        }
    )


def write_letters_query(of: str, paths: Sequence[str]) -> str:
    """Write the query of the records that are sent, as ``TOLD`` has them."""
    time = "epoch_us(_event_time)"
    if of == REJECTED:
        told, which = ("_reason", "_detail", NONE, NONE, f"coalesce({UNREAD}, false)"), "true"
    elif of == LATE:
        told, which = (quote_literal(LATE), "NULL::VARCHAR", time, "mark", "false"), f"{time} < mark"
    else:
        told = (quote_literal(f"side {of}"), "NULL::VARCHAR", time, NONE, "false")
        which = f"{SIDE} = {quote_literal(of)}"
    columns = ", ".join(f"{each} AS {name}" for each, name in zip(told, TOLD, strict=True))
    return (
        f"SELECT {', '.join(COORDINATES.names)}, {columns} "
        f"FROM {read_parquet_sql(paths, uneven=True)} JOIN wanted ON _epoch = number "
        f"WHERE {which} ORDER BY {', '.join((*READ_ORDER, '_topic_id'))}"
    )
