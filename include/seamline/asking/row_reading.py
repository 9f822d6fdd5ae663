"""What a process that asks reads: rows of the log, decisions, and the topic of its answers."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain, takewhile
from typing import Any

import pyarrow as pa

from seamline.asking.questions import AskedRow, Place
from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.transactions import read_committed_tail
from seamline.lake.engine.duckdb_connections import open_duckdb
from seamline.lake.engine.duckdb_scans import quote_literal
from seamline.lake.engine.pane_ranges import to_unix_micros
from seamline.lake.joins.asked_rows import (
    EVER,
    find_block_end,
    find_time_bounds,
    read_asked_rows,
    read_unanswered_rows,
    recorded_rows,
)
from seamline.lake.joins.event_times import Times
from seamline.lake.log.epoch_log import each_epoch, read_condensed_log
from seamline.lake.log.master import Master
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import read_cached_table
from seamline.lake.tables.control_table import ControlTable
from seamline.lake.tables.decided import list_ask_decisions, list_fills
from seamline.lake.tables.reprocessed import Reprocessed, read_reprocessed_log
from seamline.model.compile.asks.compiled_ask import CompiledAsk
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.errors import BadRange
from seamline.model.protocol.condensed import find_last_loss, first_of
from seamline.model.protocol.control import AskDecision
from seamline.model.protocol.holes import list_filling_ranges, list_missing_ranges
from seamline.model.protocol.offsets import Lane, OffsetRange, subtract_offset_ranges
from seamline.model.protocol.seam import NOTHING
from seamline.model.time.intervals import Interval, format_utc_instant
from seamline.model.types.exact_json import load_exact_json
from seamline.plan.batch.reprocessing_plan import list_outdated_epochs

Asked = tuple[AskedRow, dict[str, Any]]
"""A row, and what is asked about it."""
PLACE = ("topic_id", "partition", "offset")


@dataclass(frozen=True)
class Block:
    """The rows of a block of epochs."""

    rows: list[Asked]
    """The rows that are asked about."""
    until: int
    """The last epoch of the block."""
    above: int
    """The epoch before its first."""
    times: Sequence[Times]
    """The span of their event times; none without rows."""
    amends: bool = False
    """Whether an epoch of it reads what was passed over: there may be older records of its rows."""


class RowReader:
    """Reads for one question of a pipeline; from one thread at a time, others wait."""

    def __init__(
        self, ask: CompiledAsk, pipeline: CompiledPipeline, layout: Layout, connection: KafkaConnection
    ) -> None:
        self.ask, self.pipeline, self.layout, self.connection = ask, pipeline, layout, connection
        self.con, self.lock = open_duckdb(), threading.Lock()
        self.lost: set[OffsetRange] = set()
        """Ranges of the topic that were passed over, and that Kafka no longer has."""
        self.readable = math.inf
        """The epoch up to which rows may be of another record version."""
        with TopicAdmin(connection) as admin:
            self.topic_id = admin.topic_id(ask.topic)
            self.answering = {admin.topic_id(each.topic) for each in pipeline.asks}

    def list_intervals(self, span: Interval) -> list[Interval]:
        """List the intervals of a decision's span that have rows.

        It is the span itself where intervals have had another length when it was decided.
        """
        log = read_reprocessed_log(self.pipeline, self.layout)
        filled = {id for epoch in log for id in epoch.accepted}
        try:
            return [each for each in self.pipeline.grid.within(span) if each.id in filled]
        except BadRange:
            return [span]

    def read_position(self, partitions: Iterable[int]) -> tuple[int, Mapping[int, int]]:
        """Return E, and up to which offset of each of some partitions the epochs up to it have read the topic."""
        lanes = {each: Lane(self.topic_id, each) for each in partitions}

        def see(table: Any) -> tuple[int, Mapping[int, int]]:
            master = Master(table)
            held = master.position(lanes.values())
            return master.epoch, {each: held[lane] for each, lane in lanes.items() if lane in held}

        found = read_cached_table(self.layout.table("master"), ("asked", *lanes.values()), see)
        return found or (NOTHING, {})

    def fetch_ends(self) -> Mapping[int, int]:
        """Fetch the end offset of each partition that is not empty, open transactions included."""
        with TopicAdmin(replace(self.connection, isolation_level="read_uncommitted")) as admin:
            begins, ends = admin.beginning_offsets(self.ask.topic), admin.end_offsets(self.ask.topic)
        return {each: end for each, end in ends.items() if end > begins.get(each, 0)}

    def find_reading_epoch(self, ends: Mapping[int, int]) -> int | None:
        """Return E where the epochs up to it have read the topic up to some offsets; None where they have not."""
        held, read = self.read_position(ends)
        return held if all(read.get(each, 0) >= end for each, end in ends.items()) else None

    def list_passed_over(self) -> list[OffsetRange]:
        """List what the stream has passed over of the topic, if Kafka still has it."""
        missing = [
            part
            for parts in list_missing_ranges(read_condensed_log(self.layout)).values()
            for part in parts
            if part.lane.topic_id == self.topic_id and len(part) and part not in self.lost
        ]
        if not missing:
            return []
        with TopicAdmin(self.connection) as admin:
            begins = admin.beginning_offsets(self.ask.topic)
        # Where a partition begins never goes back.
        self.lost.update(part for part in missing if part.end <= begins.get(part.lane.partition, part.end))
        kept = (part for part in missing if part not in self.lost)
        return [replace(part, start=max(part.start, begins[part.lane.partition])) for part in kept]

    def request_fills(self) -> bool:
        """Let the stream read what it has passed over of the topic; return whether there is something left to read.

        A row would count twice that is asked about again while its answer can still be read.
        """
        passed = self.list_passed_over()
        if new := subtract_offset_ranges(passed, list_fills(self.layout)):
            reason, now = f"each row has one answer of {self.ask.name}", datetime.now(UTC)
            ControlTable.ensure(self.layout).fill(new, actor="stream", reason=reason, now=now)
        return bool(passed)

    def read_tail(self) -> tuple[int, frozenset[Place]]:
        """Return E, and the rows of which the topic has a record that the epochs up to it have not read."""
        # What was passed over will be read after all; it is listed first, so that it is not read in between.
        passed = self.list_passed_over()
        held, read = self.read_position(self.fetch_ends())
        named = [self.ask.definition.named(each) for each in (*PLACE, "version")]
        found = set()
        holes = (
            read_committed_tail(self.connection, self.ask.topic, {at: part.start}, {at: part.end})
            for part in passed
            for at in [part.lane.partition]
        )
        for value in chain(read_committed_tail(self.connection, self.ask.topic, read), *holes):
            *place, version = (load_exact_json(value.decode()).get(name) for name in named)
            if version == self.ask.definition.version:
                found.add((str(place[0]), int(place[1]), int(place[2])))
        return held, frozenset(found)

    def find_early_records(self, held: int) -> frozenset[Place]:
        """Find the rows that epochs up to one have read a record of, but not yet the row itself.

        There are none unless the master has lost epochs: the rows come again, and may come after what was read of them.
        """
        lost = find_last_loss(read_condensed_log(self.layout))
        if lost is None:
            return frozenset()
        with self.lock, self.recorded(above=lost, until=held) as records:
            newest = f'SELECT topic_id, partition, max("offset") FROM ({records}) GROUP BY ALL'
            found = {Lane(topic, each): last for topic, each, last in self.con.sql(newest).fetchall()}

            def see(table: Any) -> Mapping[Lane, int]:
                return Master(table).position(found)

            ends = read_cached_table(self.layout.table("master"), ("early", *sorted(found)), see) or {}
            early = (
                f"topic_id = {quote_literal(lane.topic_id)} AND partition = {lane.partition} "
                f'AND "offset" >= {ends.get(lane, 0)}'
                for lane, last in found.items()
                if last >= ends.get(lane, 0)
            )
            where = " OR ".join(early) or "false"
            places = f'SELECT topic_id, partition, "offset" FROM ({records}) WHERE {where}'
            return frozenset(self.con.sql(places).fetchall())

    def recorded(
        self, *, above: int, until: int, times: Sequence[Times] = EVER
    ) -> AbstractContextManager[str]:
        """Write the records of answers of some epochs and event times; see ``recorded_rows``."""
        return recorded_rows(
            self.con, self.ask, self.pipeline, self.layout, above=above, until=until, times=times
        )

    def read_block(self, above: int, until: int) -> Block:
        """Read the rows of the next epochs above one, as many as are looked at together."""
        with self.lock:
            until = self.find_last_readable(above, until)
            if until <= above:
                return Block([], above, above, ())
            end = find_block_end(self.pipeline, self.layout, above, until)
            found = read_asked_rows(
                self.con, self.ask, self.pipeline, self.layout, above=above, until=end, times=EVER
            )
        newest = takewhile(lambda each: each.number > above, reversed(read_condensed_log(self.layout)))
        amends = any(list_filling_ranges(each) and first_of(each) <= end for each in newest)
        return Block(self.list_rows(found), end, above, find_time_bounds(found), amends)

    def find_last_readable(self, above: int, until: int) -> int:
        """Return the epoch up to which rows are as this definition has them; later ones wait to be validated again.

        What this driver reads is so; it is asked once where that begins.
        """
        if above >= self.readable:
            return until
        version, log = self.pipeline.record_version, read_condensed_log(self.layout)
        self.readable = log[-1].number if log else NOTHING
        if not list_outdated_epochs((each for each in log if each.number > above), version, ()):
            return until
        judged = Reprocessed(self.pipeline, self.layout).verdicts()
        epochs = (each for each in each_epoch(self.layout) if each.number > above)
        waiting = (
            each.number
            for each in list_outdated_epochs(epochs, version, judged, until=until)
            if any(part.lane.topic_id not in self.answering for part in each.ranges)
        )
        return next(waiting, until + 1) - 1

    def find_recorded(self, block: Block, until: int) -> set[Place]:
        """Find the rows of a block of which the epochs up to another have read a record: after them, or ever."""
        if not block.rows:
            return set()
        above = NOTHING if block.amends else block.above
        with self.lock, self.recorded(above=above, until=until, times=block.times) as records:
            found = self.con.sql(f'SELECT topic_id, partition, "offset" FROM ({records})').fetchall()
        return set(found)

    def read_unanswered(self, decision: AskDecision, span: Interval, until: int) -> pa.Table:
        """Read the rows of an interval that a decision means, without an answer in the epochs up to one."""
        times = ((to_unix_micros(span.start), to_unix_micros(span.end)),)
        with self.lock:
            return read_unanswered_rows(
                self.con,
                self.ask,
                self.pipeline,
                self.layout,
                until=until,
                times=times,
                only_errors=decision.only_errors,
            )

    def list_decisions(self) -> tuple[AskDecision, ...]:
        """List the decisions to ask again, of all questions."""
        return list_ask_decisions(self.layout)

    def list_rows(self, found: pa.Table, *, decided: bool = False) -> list[Asked]:
        """List rows with what is asked about each."""
        names = [name for name, _ in self.ask.request]
        columns = [list_values(column) for column in found.columns]
        return [
            (
                AskedRow(topic_id, partition, offset, format_utc_instant(at), epoch, decided),
                dict(zip(names, request, strict=True)),
            )
            for topic_id, partition, offset, epoch, at, *request in zip(*columns, strict=True)
        ]


def list_values(column: pa.ChunkedArray) -> list[Any]:
    """List values as Python has them, those of a column with an instant that is none of Python's as text."""
    try:
        found: list[Any] = column.to_pylist()
    except (OverflowError, ValueError):
        found = column.cast(pa.string()).to_pylist()
    return found
