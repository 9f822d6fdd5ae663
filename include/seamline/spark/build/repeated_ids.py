"""Which rows repeat an event id, found through Spark's shuffle: of each id one row counts, whichever tasks read them.

Each task sends the hashes of its ids, eight bytes a row, to the part that the hash says. A part sorts them, and tells
which are there twice: mostly none, or few. Only rows with such a hash are compared, by their ids and in the order of
reading (``READ_ORDER``): a hash decides nothing. Where too many are there twice, all rows are compared.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from seamline.lake.engine.accepted_rows import READ_ORDER, selected_sql
from seamline.lake.engine.states import quote_identifier
from seamline.lake.store.data_writing import DataTarget
from seamline.lake.store.fetched_files import localize_file
from seamline.lake.store.locations import Location
from seamline.plan.batch.work_shares import count_parts
from seamline.runtime.failpoints import hit_failpoint
from seamline.spark.build.hash_parts import scatter, send_to_parts
from seamline.spark.build.share_rows import CELL, PLACE, ShareTask
from seamline.spark.tasks.spread import Row

HASH, SHARE = "_hash", "_share"
TWICE, MANY, PLACES, FILE = "twice", "many", "places", "file"
BATCH = 1_000_000
"""Rows that are read, hashed and sent at once."""
COMPARED = 250_000
"""Rows that are sent at once where whole ids are."""
MOST_TWICE = 500_000
"""Hashes that go through the driver; where more are there twice, all rows are compared."""
INLINE = 1_000_000
"""Bytes of places that a part reports; more are written to a file."""
ALL_INLINE = 16_000_000
"""Bytes of places that all parts may report to the driver together."""
GROUP = 100_000
"""Rows in a row group of such a file: a task reads those that have some of its own."""
COMPARED_TIMES = 8
"""A row that is compared takes so many times the memory of a hash."""
FEW_TWICE = 1_000_000
"""Bytes of hashes whose rows are worth a part of their own."""


@dataclass(frozen=True)
class Places:
    """Places of rows in the files of shares (``share_rows.PLACE``)."""

    told: Mapping[int, bytes] = field(default_factory=dict)
    """By share."""
    paths: tuple[str, ...] = ()
    """Files that have more."""

    def read(self, share: int) -> np.ndarray:
        """Return those in one share, in order."""
        found = [np.frombuffer(self.told.get(share, b""), np.int64)]
        for path in self.paths:
            mine = pq.read_table(localize_file(path), filters=[(SHARE, "=", share)], partitioning=None)
            found.append(mine[PLACE].to_numpy())
        return np.sort(np.concatenate(found))


NO_PLACES = Places()


@dataclass(frozen=True)
class HashedIds(ShareTask):
    """Sends the hashes of event ids to parts in a Spark task."""

    parts: int
    """How many there are."""

    def __call__(self, number: int) -> Iterator[tuple[int, bytes]]:
        """Send what one share has."""
        con = self.open_duckdb()
        try:
            with con.sql(self.hashes_sql(number)).to_arrow_reader(BATCH) as batches:
                for batch in batches:
                    hashes = batch.column(0).to_numpy()
                    for part, rows in scatter(hashes, self.parts):
                        yield part, hashes[rows].tobytes()
                    hit_failpoint("hashed")
        finally:
            con.unregister("blank")

    def hashes_sql(self, number: int, *columns: str) -> str:
        """Write the query for the hashes of the selected rows' ids and intervals, and ``columns``."""
        share, where = self.shares[number], selected_sql(self.pipeline)
        wanted = [*dict.fromkeys([*self.event_id, *(each for each in columns if each not in (CELL, PLACE))])]
        parts = self.known_rows_sql(share, wanted, where=where)
        if share.own or share.again:
            parts.append(self.looked_sql(share, wanted, where=where))
        ids = ", ".join([CELL, *self.id_expressions])
        more = "".join(f", {quote_identifier(each)}" for each in columns)
        return f"SELECT hash({ids}) AS {HASH}{more} FROM ({' UNION ALL '.join(parts)})"


def find_hashes_twice(chunks: Iterator[bytes], most: int = MOST_TWICE) -> Iterator[Row]:
    """Report the hashes that are there more than once, or that they are more than ``most``; runs in a task."""
    hashes = np.frombuffer(b"".join(chunks), np.uint64).copy()
    hit_failpoint("sorted")
    hashes.sort()
    twice = np.unique(hashes[1:][hashes[1:] == hashes[:-1]])
    if len(twice) > most:
        yield MANY, b""
    elif len(twice):
        yield TWICE, twice.tobytes()


@dataclass(frozen=True)
class ComparedRows(HashedIds):
    """Sends rows to be compared to parts in a Spark task: ids, the order of reading, and places."""

    twice: bytes | None
    """The hashes whose rows are sent; None for all rows."""

    def __call__(self, number: int) -> Iterator[tuple[int, bytes]]:
        """Send what one share has."""
        con = self.open_duckdb()
        query = self.hashes_sql(number, CELL, *self.event_id, *READ_ORDER, PLACE)
        try:
            if self.twice is not None:
                con.register("twice", pa.table({HASH: np.frombuffer(self.twice, np.uint64)}))
                query = f"SELECT * FROM ({query}) WHERE {HASH} IN (FROM twice)"
            query = f"SELECT {number}::INT AS {SHARE}, * FROM ({query})"
            with con.sql(query).to_arrow_reader(COMPARED) as batches:
                for batch in batches:
                    for part, rows in scatter(batch.column(HASH).to_numpy(), self.parts):
                        yield part, encode_batch(batch.take(pa.array(rows)))
        finally:
            con.unregister("blank")
            if self.twice is not None:
                con.unregister("twice")


def encode_batch(batch: pa.RecordBatch) -> bytes:
    """Write a batch as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    found: bytes = sink.getvalue().to_pybytes()
    return found


@dataclass(frozen=True)
class RepeatingRows(ShareTask):
    """Finds the rows that repeat the id of an earlier one, in a part of all that are compared."""

    folder: Location
    """Where to write many."""
    most: int
    """Bytes of places that are reported; more are written."""

    def __call__(self, chunks: Iterator[bytes]) -> Iterator[Row]:
        """Report the places of those that repeat one, by share; or the file that has them."""
        con = self.open_duckdb()
        same = ", ".join([CELL, *self.id_expressions])
        first = f"row_number() OVER (PARTITION BY {same} ORDER BY {', '.join(READ_ORDER)})"
        try:
            if not hold_chunks(con, chunks):
                return
            hit_failpoint("compared")
            found = con.sql(
                f"SELECT {SHARE}, {PLACE} FROM compared QUALIFY {first} > 1 ORDER BY {SHARE}, {PLACE}"
            ).to_arrow_table()
        finally:
            con.execute("DROP TABLE IF EXISTS compared")
            con.unregister("blank")
        if found.nbytes <= self.most:
            yield PLACES, encode_batch(found.combine_chunks().to_batches()[0]) if found.num_rows else b""
        else:
            target = DataTarget(self.folder / f"{uuid.uuid4().hex}.parquet")
            pq.write_table(found, target.sink, compression="zstd", compression_level=1, row_group_size=GROUP)
            target.finish()
            yield FILE, str(target.place).encode()


def hold_chunks(con: duckdb.DuckDBPyConnection, chunks: Iterable[bytes]) -> bool:
    """Put chunks of rows into the table ``compared``, on disk where memory does not hold it; False without any."""
    begin = "CREATE OR REPLACE TEMP TABLE compared AS"
    for chunk in chunks:
        con.register("chunk", pa.ipc.open_stream(chunk).read_all())
        con.execute(f"{begin} FROM chunk")
        con.unregister("chunk")
        begin = "INSERT INTO compared"
    return begin.startswith("INSERT")


def find_repeated_rows(
    spark: SparkSession, work: ShareTask, rows: int, slots: int, folder: Location
) -> Places:
    """Return the places of the rows of some shares that repeat an id; ``rows`` are as many as there may be."""
    given = (work.pipeline, work.shares, work.spans, work.cut)
    memory, count = work.pipeline.definition.stream.worker_memory, len(work.shares)
    parts = count_parts(rows, slots)
    hashed = HashedIds(*given, parts)
    # Hashes are even over the parts: of twice its share, all are too many.
    find = partial(find_hashes_twice, most=2 * MOST_TWICE // parts)
    told = send_to_parts(spark, hashed, count, find, parts, memory)
    if not told:
        return NO_PLACES
    twice = b"".join(payload for _, payload in told)
    many = len(twice) > 8 * MOST_TWICE or any(kind == MANY for kind, _ in told)
    parts = (
        count_parts(rows * COMPARED_TIMES, slots) if many else count_parts(len(twice), slots, least=FEW_TWICE)
    )
    compared = ComparedRows(*given, parts, None if many else twice)
    repeating = RepeatingRows(*given, folder, min(INLINE, ALL_INLINE // parts))
    return gather_places(send_to_parts(spark, compared, count, repeating, parts, memory))


def gather_places(told: Iterable[Row]) -> Places:
    """Gather what parts report."""
    found, paths = defaultdict(list), []
    for kind, payload in told:
        if kind == FILE:
            paths.append(payload.decode())
        elif payload:
            table = pa.ipc.open_stream(payload).read_all()
            shares, places = table[SHARE].to_numpy(), table[PLACE].to_numpy()
            for share in np.unique(shares).tolist():
                found[share].append(places[shares == share].tobytes())
    return Places({share: b"".join(some) for share, some in found.items()}, tuple(paths))
