"""A task of the fast path: partial states of a share of the master's files, by the kernel's own SQL."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import duckdb
import numpy as np
import pyarrow as pa

from seamline.lake.engine import states
from seamline.lake.engine.accepted_rows import selected_sql
from seamline.lake.store.locations import Location
from seamline.model.compile.compiled_pipeline import CompiledView
from seamline.model.time.intervals import EPOCH, format_utc_instant
from seamline.model.time.zone_clock import MICROSECOND
from seamline.plan.batch.work_shares import Counts
from seamline.runtime.failpoints import hit_failpoint
from seamline.spark.build.repeated_ids import NO_PLACES, Places
from seamline.spark.build.share_rows import APART, CELL, PLACE, REPEATED, ROW_BITS, SPARE, Share, ShareTask
from seamline.spark.build.spilled_states import spill_states
from seamline.spark.tasks.spread import Row

COUNTS, STATES, PARTS = "counts", "states/", "parts/"


@dataclass(frozen=True)
class Partials(ShareTask):
    """Computes the partial states of shares in a Spark task."""

    folders: Mapping[str, Location]
    """The folder of each generation, where states are spilled, by version id."""
    most: int
    """Bytes of states of one view that are reported directly; more are spilled."""
    repeats: Places = NO_PLACES
    """The rows that repeat an event id, where no share is alone."""

    def __call__(self, number: int) -> Iterator[Row]:
        """Report the states and counts of one share."""
        con, share = self.open_duckdb(), self.shares[number]
        repeats = self.repeats.read(number)
        con.register(REPEATED, pa.table({PLACE: repeats}))
        files = np.unique(repeats >> ROW_BITS).tolist()
        rows = f"({self.rows_sql(share, files)})"
        if share.alone:
            con.execute(f"CREATE OR REPLACE TEMP TABLE fused_rows AS {rows}")
            rows = "fused_rows"
        try:
            for counts in self.counted(con, share, rows, files):
                yield COUNTS, json.dumps(encode_counts(counts)).encode()
            for view in self.pipeline.views:
                found = states.compute_row_states(con, view, f"(SELECT * FROM {rows} WHERE NOT {SPARE})")
                hit_failpoint("partials")
                yield report_states(found, view, self.most, self.folders)
        finally:
            if share.alone:
                con.execute("DROP TABLE fused_rows")
            con.unregister("blank")
            con.unregister(REPEATED)

    def counted(
        self, con: duckdb.DuckDBPyConnection, share: Share, rows: str, repeated: Collection[int]
    ) -> Iterator[dict[str, Counts]]:
        """Count a share's ``rows`` by interval id: those that are known only as far as views leave some out."""
        if not share.known:
            yield self.count_read(con, rows)
            return
        if share.own or share.again:
            looked = replace(share, known={})
            yield self.count_read(con, f"({self.rows_sql(looked, repeated)})")
        yield from self.count_taken(con, share, repeated)

    def count_read(self, con: duckdb.DuckDBPyConnection, rows: str) -> dict[str, Counts]:
        """Count what was read, by interval id."""
        plain = [view for view in self.pipeline.views if view.where and not view.explode]
        exploding = [view for view in self.pipeline.views if view.explode]
        taken = f"NOT {SPARE} AND {selected_sql(self.pipeline)}"
        left = [f"count(*) FILTER (NOT {SPARE} AND {left_out_sql(view)})" for view in plain]
        columns = ", ".join(
            [CELL, "count(*)", f"count(*) FILTER ({SPARE})", f"count(*) FILTER ({taken})", *left]
        )
        items = {view.id: items_of(con, view, f"(SELECT * FROM {rows} WHERE {taken})") for view in exploding}
        found = {}
        for cell, read, spare, records, *numbers in con.execute(
            f"SELECT {columns} FROM {rows} GROUP BY {CELL}"
        ).fetchall():
            not_selected = dict(zip((view.id for view in plain), numbers, strict=True))
            exploded = {}
            for view in exploding:
                count, refusals = items[view.id].get(cell, (0, 0))
                exploded[view.id] = count - records
                if view.where:
                    not_selected[view.id] = read - spare - records + refusals
            found[name_cell(cell)] = Counts(read, spare, not_selected, exploded)
        return found

    def count_taken(
        self, con: duckdb.DuckDBPyConnection, share: Share, repeated: Collection[int]
    ) -> Iterator[dict[str, Counts]]:
        """Count the repeated rows of files of which every row counts, and those that each view with a condition takes.

        What is taken is reported below zero, to be added to the rows that are known (``GatheredReports.add_known``).
        """
        parts = self.known_rows_sql(share, self.columns, repeated)
        choosy = [view for view in self.pipeline.views if view.where]
        if any(number >= len(share.own) + len(share.again) for number in repeated):
            for cell, count in con.execute(counting_sql(SPARE, share, parts)).fetchall():
                yield {name_cell(cell): Counts(0, count, {view.id: -count for view in choosy}, {})}
        for view in choosy:
            assert view.where
            condition = f"NOT {SPARE} AND {view.where.duckdb}" if repeated else view.where.duckdb
            found = con.execute(counting_sql(condition, share, parts)).fetchall()
            yield {name_cell(cell): Counts(0, 0, {view.id: -count}, {}) for cell, count in found}


def report_states(found: pa.Table, view: CompiledView, most: int, folders: Mapping[str, Location]) -> Row:
    """Report the states of a view: themselves, or the file to which they are spilled where they are many bytes.

    ``folders`` are those of generations, by version id.
    """
    if found.nbytes <= most:
        return STATES + view.id, to_bytes(found)
    return PARTS + view.id, spill_states(found, view, folders[view.id])


def counting_sql(where: str, share: Share, parts: Sequence[str]) -> str:
    """Spell how many rows of known files meet a condition, by interval.

    Of few intervals each is counted by itself, which takes a third of the time of filtering and grouping.
    """
    if len(share.known) > APART:
        return f"SELECT {CELL}, count_if({where}) FROM ({' UNION ALL '.join(parts)}) GROUP BY {CELL}"
    return " UNION ALL ".join(
        f"SELECT {at}::BIGINT, count_if({where}) FROM ({rows})"
        for at, rows in zip(share.known, parts, strict=True)
    )


def name_cell(cell: int) -> str:
    """Return the id of the interval that starts so many microseconds after 1970."""
    return format_utc_instant(EPOCH + cell * MICROSECOND)


def encode_counts(counts: Mapping[str, Counts]) -> dict[str, object]:
    """Encode counts as they are reported."""
    return {interval: asdict(counted) for interval, counted in counts.items()}


def left_out_sql(view: CompiledView) -> str:
    """Write the condition that a view leaves a row out."""
    return f"NOT coalesce({view.where.duckdb}, FALSE)" if view.where else "FALSE"


def items_of(con: duckdb.DuckDBPyConnection, view: CompiledView, records: str) -> dict[int, tuple[int, int]]:
    """Count the rows that an exploding view makes of records, and which of them it leaves out, by cell."""
    rows = states.exploded_rows_sql(view, records)
    found = con.execute(
        f"SELECT {CELL}, count(*), count(*) FILTER ({left_out_sql(view)}) FROM {rows} GROUP BY {CELL}"
    )
    return {cell: (count, left) for cell, count, left in found.fetchall()}


def to_bytes(table: pa.Table) -> bytes:
    """Write a table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    found: bytes = sink.getvalue().to_pybytes()
    return found
