"""Taking producers' statements from their topics into the warehouse, each once, beside the stream and never in it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from seamline.kafka.connections import KafkaConnection, read_airflow_connection
from seamline.kafka.topic_ends import TopicEnds, ends_of
from seamline.kafka.whole_records import Piece, WholeRecord, read_whole_records
from seamline.lake.storage.commit_conflicts import retry_overtaken
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.counts.statements_table import LaneState, StatementsTable, count_stated
from seamline.lake.tables.decided import find_connection
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.counts.counting_sources import list_counting_sources
from seamline.model.definition.counts import Counts
from seamline.model.definition.sources import Source
from seamline.model.errors import RecordsReplaced, SeamlineError
from seamline.model.protocol.counts.statement import BadStatement, TakenStatement, parse_statement
from seamline.model.protocol.offsets import Lane, Vector
from seamline.model.time.intervals import EPOCH, Grid

ANSWERS_WITHIN = 8.0
SHOWN = 500
"""Letters that are kept of a record that is no statement."""
LOST = "Kafka deleted statements before they were taken"


@dataclass(frozen=True)
class Taken:
    """What was taken of one source's topic."""

    topic: str
    """The topic of the statements."""
    statements: int
    """How many statements."""
    bad: int
    """How many records that are none."""

    def __str__(self) -> str:
        bad = f", and {self.bad} records that are none" if self.bad else ""
        return f"took {self.statements} statements of {self.topic}{bad}"


def take_statements(
    compiled: CompiledPipeline,
    layout: Layout,
    source: Source,
    counts: Counts,
    *,
    env: Mapping[str, str] = os.environ,
    stopping: Callable[[], bool] = lambda: False,
) -> Taken:
    """Take what is new in the topic of a source's statements, by the connection that is in force.

    Several may do so at once: one of them commits each record. What is left when it is ``stopping`` is taken later.
    KafkaUnavailable, KafkaRefused, TopicMissing.
    """
    connection = read_airflow_connection(find_connection(source.connection, layout), env)
    ends = ends_of(connection, [counts.topic], timeout=ANSWERS_WITHIN)
    topic = Topic(connection, counts.topic, ends, StatementsTable.ensure(layout), stopping)
    return retry_overtaken(partial(topic.take, source.name, compiled.grid))


def describe_taking(
    compiled: CompiledPipeline,
    layout: Layout,
    *,
    env: Mapping[str, str] = os.environ,
    stopping: Callable[[], bool] = lambda: False,
) -> list[str]:
    """Take the statements of all sources and say in lines what came of it.

    What cannot be taken now is taken later, and harms nothing, no other source's statements either.
    """
    said = []
    for source, counts in list_counting_sources(compiled):
        if stopping():
            break
        try:
            taken = take_statements(compiled, layout, source, counts, env=env, stopping=stopping)
        except SeamlineError as error:
            said.append(f"statements of {counts.topic} were not taken: {error.message}")
        except Exception as error:  # noqa: BLE001 - whoever asks has more to do than this
            said.append(f"statements of {counts.topic} were not taken: {type(error).__name__}: {error}")
        else:
            said += [str(taken)] if taken.statements or taken.bad else []
    return said


@dataclass(frozen=True)
class Topic:
    """One topic of statements, where it ends now, and the table that has what was taken of it."""

    connection: KafkaConnection
    """How it is reached."""
    name: str
    """Its name."""
    ends: TopicEnds
    """Where its partitions begin and end."""
    table: StatementsTable
    """What was taken."""
    stopping: Callable[[], bool] = lambda: False
    """Whether no more is to be taken now."""

    def take(self, source: str, grid: Grid) -> Taken:
        """Take what is new, a commit for each piece; Overtaken if another has taken some of it meanwhile."""
        self.table.table.refresh()
        states = {lane.partition: (lane, self.table.lane(lane)) for lane in self.ends.ends}
        ranges = {
            part: (self.ends.beginnings[lane] if state.end is None else state.end, self.ends.ends[lane])
            for part, (lane, state) in states.items()
        }
        self.require_kept({lane: state.end for lane, state in states.values() if state.end is not None})
        known = {part: state for part, (_, state) in states.items()}
        statements = bad = 0
        # A generator that is left holds its consumer until it is closed.
        with closing(read_whole_records(self.connection, self.name, ranges)) as pieces:
            for piece in pieces:
                if self.stopping():
                    break
                stated, reached = self.read_piece(piece, known, grid)
                marks = {states[part][0]: state for part, state in reached.items()}
                self.table.append(source, stated, marks, now=datetime.now(UTC))
                known |= reached
                good, wrong = count_stated(stated)
                statements, bad = statements + good, bad + wrong
        return Taken(self.name, statements, bad)

    def require_kept(self, taken: Vector) -> None:
        """Raise RecordsReplaced if a partition ends below what was taken of it: what comes there would be passed over.

        Another may have taken more since the ends were asked for, so they are asked for once more.
        """
        if all(end <= self.ends.ends[lane] for lane, end in taken.items()):
            return
        now = ends_of(self.connection, [self.name], timeout=ANSWERS_WITHIN).ends
        for lane, end in taken.items():
            if end > now.get(lane, end):
                raise RecordsReplaced(
                    f"Partition {lane.partition} of {self.name!r} ends at {now[lane]}, and statements were taken up to "
                    f"{end}: Kafka has lost records.",
                    hint="make the topic again and send its statements again: they are taken from its beginning.",
                )

    def read_piece(
        self, piece: Piece, known: Mapping[int, LaneState], grid: Grid
    ) -> tuple[list[TakenStatement], dict[int, LaneState]]:
        """Read the records of a piece, after what is known of each partition; return how far each is taken then."""
        lanes = {lane.partition: lane for lane in self.ends.ends}
        stated, reached = list[TakenStatement](), dict[int, LaneState]()
        for part, end in piece.reached.items():
            state, lane = known[part], lanes[part]
            own = [each for each in piece.records if each.partition == part]
            stated += list_lost(lane, state, self.ends.beginnings[lane])
            made = list(read_records(own, lane, state.latest, grid))
            reached[part] = LaneState(end, made[-1].at if made else state.latest)
            stated += made
        return stated, reached


def list_lost(lane: Lane, state: LaneState, beginning: int) -> Sequence[TakenStatement]:
    """Say that a partition begins after what was taken of it: statements may have been lost."""
    if state.end is None or state.end >= beginning:
        return ()
    said = f"offsets {state.end} to {beginning - 1}"
    return (TakenStatement(lane, state.end, state.latest, None, LOST, said),)


def read_records(
    records: Sequence[WholeRecord], lane: Lane, latest: datetime, grid: Grid
) -> Iterator[TakenStatement]:
    """Read records as statements, each with the largest timestamp of its partition up to it."""
    at = max(latest, EPOCH)
    for each in records:
        at = max(at, each.at)
        try:
            yield TakenStatement(lane, each.offset, at, parse_statement(each.value, grid))
        except BadStatement as bad:
            text = (each.value or b"")[:SHOWN].decode("utf-8", "backslashreplace")
            yield TakenStatement(lane, each.offset, at, None, str(bad), text)
