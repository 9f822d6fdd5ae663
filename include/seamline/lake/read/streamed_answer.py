"""An answer in parts, of one state of the tables: each part is final, and only one is in memory at a time."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from deltalake.exceptions import DeltaError

from seamline.lake.engine.duckdb_connections import open_beside
from seamline.lake.engine.pane_ranges import Span, extend_bounds_forward
from seamline.lake.engine.windowing import of_set
from seamline.lake.read.answer_blocks import Block, list_blocks, total_size
from seamline.lake.read.answer_cache import REMEMBERED
from seamline.lake.read.answer_ways import Ways
from seamline.lake.read.answering_files import Unsettled
from seamline.lake.read.answers import Answer
from seamline.lake.read.counted_states import find_state_scans
from seamline.lake.read.decorations import add_lookup_columns, load_shown_lookups
from seamline.lake.read.merged_read import (
    add_carried_columns,
    filter_windows,
    keep_counted_states,
    read_snapshot_answer,
    read_windows,
    retry_unstable_read,
)
from seamline.lake.read.presentation import present_windows
from seamline.lake.read.session_reach import Reach
from seamline.lake.read.snapshot import Snapshot
from seamline.lake.read.spilled_states import Divided, sample_borders, stream_counted_states
from seamline.lake.read.standings import CountedIntervals, ways_of
from seamline.lake.storage.arrow_types import INSTANT
from seamline.lake.storage.kept.table_reading import read_side_by_side
from seamline.lake.storage.layout import Layout
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.errors import ReadUnstable
from seamline.model.protocol.read_request import ReadRequest
from seamline.model.time.window_arithmetic import LAST, Gaps
from seamline.runtime.deadline import in_time
from seamline.runtime.spill_folder import open_spill_folder
from seamline.runtime.storage_failures import explain_storage_failure

MEMORY = 256 << 20
"""Bytes that a stream takes at most beside what the process has, where nobody says otherwise."""
COPIES = 16
"""Of the states of a part there are at most so many times their size in memory, while they are merged and presented."""
LEAST = 64 << 20
"""Bytes that DuckDB has for a scan at least."""
ROWS = 65_536
"""Rows of a batch at most."""
OPEN = 128
"""Parts of a block at most, each of which is a file that is open."""


@dataclass
class StreamedAnswer:
    """An answer as it comes: an iterator over parts, which are answers themselves, in the order of their windows.

    What is told of the whole (``told``) is known at the end.
    """

    snapshot: Snapshot
    """What it is read from."""
    request: ReadRequest
    """The question."""
    layout: Layout
    """Where the tables are."""
    memory: int = MEMORY
    """Bytes that it may take."""
    rows: int = 0
    """Rows that were given."""
    overflowed: dict[str, int] = field(default_factory=dict)
    """By column of totals that no DECIMAL holds: how many were given."""

    def __post_init__(self) -> None:
        self.counted, self.left = CountedIntervals(), False
        self.lookups = load_shown_lookups(self.snapshot.view, self.layout)
        self.span = Span.between(self.request.start, self.request.end)
        self.panes = self.span.panes(self.snapshot.view)
        self.blocks = list_blocks(self.snapshot, self.span, self.request.side, self.memory // COPIES)
        self.remaining = self.read()
        # Read while it may still be read again from other versions.
        self.first = next(self.remaining)

    def __iter__(self) -> Iterator[Answer]:
        """Give the parts, once; ReadUnstable where a file of the pinned state is gone."""
        # Nothing here has a part any more when the next one is made.
        part, self.first = self.first, without_rows(self.first)
        self.count(part)
        yield part
        try:
            del part
            for part in self.remaining:
                if self.left:
                    self.remaining.close()
                    return
                self.count(part)
                yield part
                del part
        except (Unsettled, DeltaError, duckdb.IOException, OSError) as problem:
            if known := explain_storage_failure(problem):
                raise known from problem
            if isinstance(problem, OSError) and not isinstance(problem, FileNotFoundError):
                raise
            raise ReadUnstable(
                f"The tables of {self.snapshot.view.qualified} changed while they were streamed: {problem}",
                hint="read again; files that were replaced are kept for a day.",
            ) from problem

    @property
    def is_whole(self) -> bool:
        """Return whether its first part has all of it."""
        return total_size(self.blocks) <= self.memory // COPIES

    def close(self) -> None:
        """End before all parts were given; a thread that is at one ends it when it has it."""
        self.left = True
        with suppress(ValueError):
            self.remaining.close()

    def count(self, part: Answer) -> None:
        """Count the rows that are given."""
        self.rows += part.table.num_rows
        for name in part.beyond:
            column = part.table[name]
            self.overflowed[name] = self.overflowed.get(name, 0) + len(column) - column.null_count

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Give the rows."""
        for part in self:
            table = part.table
            del part
            yield from table.to_batches(max_chunksize=ROWS)
            del table

    def reader(self, metadata: Mapping[str, str] | None = None) -> pa.RecordBatchReader:
        """Return a reader of the rows."""
        schema = self.first.table.schema.with_metadata(metadata)
        return pa.RecordBatchReader.from_batches(
            schema, (batch.replace_schema_metadata(metadata) for batch in self.batches())
        )

    def told(self) -> Answer:
        """Return what is known of the whole, once all parts were given, without its rows."""
        known = replace(without_rows(self.first), total=self.rows, overflowed=self.overflowed)
        if not self.counted.pieces:
            return known
        return replace(known, intervals=self.counted.ways(self.snapshot, self.panes, self.request.side))

    def read(self) -> Generator[Answer, None, None]:
        """Read the parts: a small answer as it is read whole, one block after the other, or a block from disk."""
        if self.is_whole:
            yield self.finish(self.remembered())
            return
        lows = [block.first for block in self.blocks[1:]]
        given = False
        for block, low in in_time(zip(self.blocks, [*lows, LAST], strict=True)):
            parts = (
                self.direct(block, low)
                if block.size <= 2 * self.memory // COPIES
                else self.spilled(block, low)
            )
            for part in parts:
                if part.table.num_rows or not given:
                    given, finished = True, self.finish(part)
                    del part
                    yield finished
                    del finished
        if not given:
            yield self.finish(self.remembered())

    def finish(self, part: Answer) -> Answer:
        """Add the look-ups' columns, and keep the phases that are asked for."""
        whole = add_lookup_columns(part, self.snapshot.view, self.layout, self.lookups)
        return whole.only(self.request.phases) if self.request.phases else whole

    def remembered(self) -> Answer:
        """Answer whole, or as was answered before."""
        where, side = self.request.where, self.request.side
        question = (self.layout, self.snapshot.view.id, self.span, side, where)

        def read() -> Answer:
            return read_snapshot_answer(snapshot=self.snapshot, span=self.span, side=side, where=where)

        return REMEMBERED.answer(question, self.snapshot, read)

    def direct(self, block: Block, low: int) -> Iterator[Answer]:
        """Answer for a block that fits."""
        snapshot, side, where = self.snapshot, self.request.side, self.request.where
        found, taken, panes = read_windows(snapshot, [*block.panes], side, where, extend_bounds_forward)
        self.counted.add(taken.filter(is_before(taken, low)))
        if isinstance(snapshot.view.windows, Gaps):
            self.panes = panes
        asked = filter_windows(snapshot.view, block.span.of(snapshot.view, found), where)
        ways = ways_of(snapshot, taken, panes, side)
        del found, taken
        yield present_windows(snapshot, asked, ways, side, None)

    def spilled(self, block: Block, low: int) -> Iterator[Answer]:
        """Answer for a block that does not fit, part by part."""
        snapshot, side, where = self.snapshot, self.request.side, self.request.where
        view, reached = snapshot.view, Reach()
        with open_spill_folder() as folder, ExitStack() as files:
            sets, ways = self.divide(block, low, folder, files)
            for each in sets:
                for states in in_time(each.parts()):
                    windows = of_set(view, states, each.keys)
                    del states
                    if isinstance(view.windows, Gaps):
                        reached.add(windows)
                    found = block.span.of(view, windows)
                    del windows
                    part = present_windows(snapshot, filter_windows(view, found, where), ways, side, None)
                    del found
                    yield part
                    del part
                    pa.default_memory_pool().release_unused()
        if isinstance(view.windows, Gaps):
            self.panes = reached.extend(view.windows, self.panes)
            self.counted = self.counted.within(self.panes)

    def divide(self, block: Block, low: int, folder: Path, files: ExitStack) -> tuple[list[Divided], Ways]:
        """Put a block's states on disk, by set and part, into files that are closed with ``files``."""
        snapshot, side, view = self.snapshot, self.request.side, self.snapshot.view
        most, counted, sets = self.memory // COPIES, CountedIntervals(), []
        # Where a session ends is not known before all of it is read.
        panes = [(block.first, LAST)] if isinstance(view.windows, Gaps) else block.panes
        parts = min(-(-block.size // most), max(OPEN // len(view.sets), 1))
        with open_beside() as con:
            con.execute(f"SET memory_limit = '{max(self.memory // 4, LEAST) >> 20}MiB'")
            scans = find_state_scans(snapshot, panes, side, self.request.where)
            for number, keys in enumerate(view.sets):
                borders = sample_borders(con, view, scans, keys, parts)
                (own := folder / str(number)).mkdir()
                sets.append(Divided(view, keys, borders, own))
                files.callback(sets[-1].files.close)
            for taken in stream_counted_states(con, scans, most // 2):
                counted.add(taken)
                self.counted.add(taken.filter(is_before(taken, low)))
                rows = add_carried_columns(keep_counted_states(snapshot, taken, side))
                for each in sets:
                    each.write(rows)
                del taken, rows
        return sets, counted.ways(snapshot, panes, side)


def without_rows(found: Answer) -> Answer:
    """Return what is known of an answer without its rows."""
    return replace(found, table=found.table.schema.empty_table(), states=found.states.schema.empty_table())


def is_before(taken: pa.Table, low: int) -> pa.ChunkedArray:
    """Return which states are of panes before an instant."""
    return pc.less(taken["pane"].cast(INSTANT).cast(pa.int64()), low)


def stream_merged_answer(
    pipeline: CompiledPipeline,
    view: CompiledView,
    layout: Layout,
    request: ReadRequest,
    *,
    memory: int = MEMORY,
) -> StreamedAnswer:
    """Answer a question in parts, from one state of the tables.

    Pins, reads the first part, and pins again where a table was cleaned up meanwhile; ReadUnstable after several
    attempts.
    """

    def once() -> StreamedAnswer:
        with read_side_by_side((layout, view.name, request.side)):
            return StreamedAnswer(Snapshot.pin(pipeline, view, layout, request), request, layout, memory)

    return retry_unstable_read(view, once)
