"""Rows of the log as decisions have them, beside those that none is about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

import duckdb
import pyarrow as pa

from seamline.lake.engine.duckdb_connections import open_beside
from seamline.lake.engine.pane_ranges import to_unix_micros
from seamline.lake.joins.event_times import Times, within_sql
from seamline.model.compile.processes.compiled_process import Derived
from seamline.model.protocol.restatement import Restatement

RAW = ("_key", "_value", "_headers")
"""Columns of the bytes that rows are validated again from, which no join reads."""
CHUNK = 100_000
"""Rows that are validated again at once."""


class Judge(Protocol):
    """What makes rows again."""

    @property
    def decisions(self) -> Sequence[Restatement]:
        """The decisions by which it does."""

    def __call__(self, rows: pa.Table) -> pa.Table:
        """Return rows of the log as the decisions have them; NotRestatable for one that cannot be."""


@contextmanager
def restated_rows(
    con: duckdb.DuckDBPyConnection,
    derived: Derived,
    blank: pa.Table,
    rows: str,
    times: Sequence[Times],
    judge: Judge | None,
) -> Iterator[str]:
    """Write what ``rows`` reads, of some times, as a judge has it; the connection can read it while the block runs.

    Decisions about look-ups that are not those of ``derived`` leave rows as they are. ``blank`` has the columns. What
    is made again is a table of the connection: it passes memory chunk by chunk.
    """
    made = judge.decisions if judge else ()
    mine = [each for each in made if each.lookup in derived.lookups and meets_times(each, times)]
    if judge is None or not mine:
        yield rows
        return
    meant = " OR ".join(map(meant_sql, mine))
    con.execute(f"CREATE OR REPLACE TEMP TABLE restated AS SELECT * EXCLUDE ({', '.join(RAW)}) FROM blank")
    try:
        with open_beside(1) as reading:
            reading.register("blank", blank)
            reader = reading.sql(f"SELECT * FROM {rows} WHERE {meant}").to_arrow_reader(CHUNK)
            for batch in reader:
                con.register("judged", judge(pa.Table.from_batches([batch])).drop_columns(list(RAW)))
                con.execute("INSERT INTO restated BY NAME SELECT * FROM judged")
                con.unregister("judged")
        yield f"(SELECT * FROM {rows} WHERE ({meant}) IS NOT TRUE UNION ALL BY NAME SELECT * FROM restated)"
    finally:
        con.execute("DROP TABLE restated")


def meant_sql(decision: Restatement) -> str:
    """Write the condition that a decision is about a row."""
    times = to_unix_micros(decision.span.start), to_unix_micros(decision.span.end)
    return f"(_epoch <= {decision.epoch} AND {within_sql(times)})"


def meets_times(decision: Restatement, times: Sequence[Times]) -> bool:
    """Return whether a decision is about rows of some times."""
    start, end = to_unix_micros(decision.span.start), to_unix_micros(decision.span.end)
    return any((first is None or first < end) and (last is None or last > start) for first, last in times)
