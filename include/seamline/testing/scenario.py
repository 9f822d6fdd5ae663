"""A scenario: records, epochs, crashes and builds, one after another, and what can be seen after each."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from seamline.asking.answer_values import encode_answer
from seamline.asking.questions import AskedRow, Outcome
from seamline.model.compile.compiled_pipeline import CompiledPipeline, compile_pipeline
from seamline.model.compile.evolution import is_compatible_version
from seamline.model.definition.pipeline import Pipeline
from seamline.model.errors import BadRange, NotFound
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.offsets import Lane, OffsetRange
from seamline.model.protocol.restatement import Restatement
from seamline.model.protocol.seam import Side
from seamline.model.time.intervals import Interval, format_utc_instant, parse_duration, parse_moment
from seamline.testing.engine import PHASES, RAW, Engine
from seamline.testing.plain import Plain
from seamline.testing.timeline import Event, draw_timeline

ID_OF = "id of "
Value = Mapping[str, Any] | bytes | str | None


@dataclass(frozen=True)
class Refused:
    """One record in quarantine."""

    topic: str
    """Where it was read."""
    partition: int
    """Of the topic."""
    offset: int
    """Of the partition."""
    reason: str
    """As quarantine states it."""
    detail: str
    """What was wrong with the record."""


class Scenario:
    """One pipeline's life, told step by step.

    Runs in plain Python and DuckDB in milliseconds; with another ``engine`` the same lines run on Spark and
    Delta. Records that were sent wait in their topic until ``epoch`` reads all of them. ``now`` is the wall
    clock: records arrive at it, and ``wait`` moves it on.
    """

    def __init__(self, pipeline: Pipeline, engine: Engine | None = None, *, now: str = "") -> None:
        self.pipeline: CompiledPipeline = compile_pipeline(pipeline)
        self.engine = engine or Plain(self.pipeline)
        self.topics = pipeline.topics
        self.now = parse_moment(now) if now else datetime.now(UTC)
        self.waiting: list[dict[str, Any]] = []
        self.ends: dict[Lane, int] = {}
        self.events: list[Event] = []
        self.runs = 0

    def send(
        self,
        *values: Value,
        partition: int = 0,
        offset: int | None = None,
        key: bytes | None = None,
        headers: Mapping[str, bytes] | None = None,
        at: str = "",
        topic: str = "",
    ) -> None:
        """Put records at the end of a partition: dictionaries as JSON, text as UTF-8, bytes and None as they are.

        ``offset`` leaves a gap before them, as compaction does; ``at`` is their Kafka timestamp. BadRange for
        an offset that is taken, NotFound for a topic that the pipeline does not read.
        """
        name = topic or self.topics[0]
        if name not in self.topics:
            raise NotFound(
                f"The pipeline does not read {name!r}.", hint=f"it reads {', '.join(self.topics)}."
            )
        lane = lane_of(name, partition)
        following = self.ends.get(lane, 0)
        if offset is not None and offset < following:
            raise BadRange(
                f"Offset {offset} of {name}/{partition} is taken.", hint=f"the next is {following}."
            )
        for place, value in enumerate(values, following if offset is None else offset):
            self.waiting.append(
                {
                    "key": key,
                    "value": bytes_of(value),
                    "headers": headers and encode_headers(headers),
                    "topic": name,
                    "partition": partition,
                    "offset": place,
                    "timestamp": parse_moment(at) if at else self.now,
                }
            )
            self.ends[lane] = place + 1

    def reply(
        self, ask: str, offset: int, at: str, *, partition: int = 0, error: str = "", **columns: object
    ) -> None:
        """Put into its topic the answer, or an ``error``, about a record of the source, whose event time is ``at``."""
        asked = next(each for each in self.pipeline.asks if each.name == ask)
        source = next(each for each in self.pipeline.definition.sources if each.name == asked.definition.of)
        row = AskedRow(lane_of(source.topics[0], partition).topic_id, partition, offset, at, 0)
        self.send(encode_answer(asked, row, Outcome({} if error else columns, error)), topic=asked.topic)

    def epoch(self, *, edge: bool = True) -> Epoch:
        """Read all that waits as one epoch; an edge, unless said otherwise."""
        found = self._commit(edge=edge)
        assert found is not None
        return found

    def crash(self, after: str) -> Epoch | None:
        """Read all that waits and die after a step of the epoch, then start again.

        The steps are planned, files, slices, quarantine, master, ledger. What was not committed is read
        again by the next epoch; None is returned then.
        """
        if after not in PHASES:
            raise BadRange(f"{after!r} is not a step of an epoch.", hint=f"use one of {', '.join(PHASES)}.")
        found = self._commit(edge=True, dies_after=after)
        self.restart()
        return found

    def restart(self) -> None:
        """Start the stream again."""
        self.engine.restart()
        self.events.append(Event("restart", "the stream starts again"))

    def redefine(self, pipeline: Pipeline) -> None:
        """Start the stream again with another definition, which keeps the views and may add some.

        If it changes what a record means, the next build validates again what was read before, and the views answer by
        their new versions. BadRange if it is another pipeline, reads other topics, drops a view, or changes only
        the view: both versions would run, and a scenario asks one.
        """
        made = compile_pipeline(pipeline)
        if (made.name, {*pipeline.topics}) != (self.pipeline.name, {*self.topics}):
            raise BadRange(f"{made.name} over {', '.join(pipeline.topics)} is another pipeline.")
        kept = is_compatible_version(made.record_version, self.pipeline.record_version)
        if lost := [
            each.name
            for each in self.pipeline.views
            if made.view(each.name) is None or (kept and each.id not in {one.id for one in made.views})
        ]:
            raise BadRange(
                f"View {lost[0]} is another version in the new definition, or gone.",
                hint="declare the changed view under another name and keep the old one.",
            )
        before = {each.name for each in self.pipeline.views}
        self.pipeline = made
        self.engine.redefine(made)
        new = ", ".join(each.name for each in made.views if each.name not in before)
        self.events.append(Event("define", f"record version {made.record_version}{new and f', new: {new}'}"))

    def wait(self, duration: str) -> Epoch:
        """Let time pass and commit an empty edge, as an idle stream does: lanes fall idle by then."""
        self.now += parse_duration(duration)
        return self.epoch()

    def batch(self, start: str = "", end: str = "") -> list[str]:
        """Build, certify and publish the interval at ``start``, those until ``end``, or the dirty ones.

        Returns the ids of those published; an open one is left out. CertificateFailed if one is red.
        """
        asked = self._span(start, end) if start else None
        self.runs += 1
        name = f"run-{self.runs}"
        try:
            done = self.engine.build(asked, name)
        except Exception as error:
            self.events.append(Event("batch", f"{name} {asked or 'dirty'}: {str(error).splitlines()[0]}"))
            raise
        cut = max((epoch.number for epoch in self.ledger if epoch.edge), default=-1)
        published = ", ".join(done) or "nothing"
        self.events.append(Event("batch", f"{name} {asked or 'dirty'}: published {published} at cut {cut}"))
        return done

    def restate(self, lookup: str, start: str, end: str = "", *, reason: str = "corrected") -> Restatement:
        """Let the next build take what was read of an interval, or of those until ``end``, as a table has it now.

        Raises what ``seamline restate`` raises.
        """
        made = self.engine.restate(lookup, self._span(start, end), reason)
        self.events.append(Event("restate", str(made)))
        return made

    def answer(self, view: str = "", side: str = "merged", **where: Any) -> list[dict[str, Any]]:
        """Ask a view (the first if not named), ordered by window and key; ``where`` keeps rows by key."""
        chosen = self.pipeline.view(view) if view else self.pipeline.views[0]
        if chosen is None:
            names = ", ".join(each.name for each in self.pipeline.views)
            raise NotFound(f"There is no view {view!r}.", hint=f"available: {names}.")
        rows = self.engine.answer(chosen.name, Side(side))
        kept = [row for row in rows if all(row[name] == value for name, value in where.items())]
        order = ["window_start", *(key.name for key in chosen.keys)]
        return sorted(kept, key=lambda row: [str(row[name]) for name in order])

    def quarantine(self) -> list[Refused]:
        """List the refused records, in the order of their places."""
        rows = self.engine.quarantine()
        found = [
            Refused(row["_topic"], row["_partition"], row["_offset"], row["_reason"], row["_detail"])
            for row in rows
        ]
        return sorted(found, key=lambda each: (each.topic, each.partition, each.offset))

    @property
    def ledger(self) -> Sequence[Epoch]:
        """The epochs that are committed."""
        return self.engine.ledger()

    @property
    def watermark(self) -> datetime | None:
        """How far event time has come."""
        ledger = self.ledger
        return ledger[-1].watermark if ledger else None

    def timeline(self) -> str:
        """Draw what has happened, a line for each step."""
        return draw_timeline(self.pipeline.name, self.events, self.engine.cuts())

    def _span(self, start: str, end: str) -> Interval:
        first = self.pipeline.grid.of(parse_moment(start))
        return Interval(first.start, parse_moment(end) if end else first.end)

    def _commit(self, *, edge: bool, dies_after: str = "") -> Epoch | None:
        raw = pa.Table.from_pylist(self.waiting, schema=RAW)
        held = find_lane_ends(self.ledger)
        ranges = tuple(
            OffsetRange(lane, held.get(lane, 0), end)
            for lane, end in sorted(self.ends.items())
            if end > held.get(lane, 0)
        )
        blank = Epoch(
            number=-1,
            token=0,
            committed_at=self.now,
            record_version=self.pipeline.record_version,
            edge=edge,
            ranges=ranges,
            clock=self.pipeline.clock,
        )
        found = self.engine.commit(blank, raw, dies_after=dies_after)
        if found is not None:
            self.waiting = []
            self.events.append(Event("epoch", epoch_line(found)))
        if dies_after:
            lost = "held" if found else "not held: its records wait"
            self.events.append(Event("crash", f"killed after {dies_after}, {lost}"))
        return found


def epoch_line(epoch: Epoch) -> str:
    """Describe what an epoch read, accepted and refused."""
    lanes = [(str(part.lane).removeprefix(ID_OF), part) for part in epoch.ranges]
    read = " ".join(f"{lane}[{part.start},{part.end})" for lane, part in lanes) or "nothing"
    accepted = " ".join(f"{interval[:10]}:+{rows}" for interval, rows in sorted(epoch.accepted.items()))
    refused = " ".join(f"{reason}:{count}" for reason, count in sorted(epoch.refused.items()))
    mark = format_utc_instant(epoch.watermark) if epoch.watermark else "none"
    parts = [
        f"{epoch.number}{' edge' if epoch.edge else ''}",
        read,
        accepted,
        refused and f"refused {refused}",
    ]
    return "  ".join(part for part in [*parts, f"watermark {mark}"] if part)


def find_lane_ends(ledger: Sequence[Epoch]) -> dict[Lane, int]:
    """Find the end of every lane."""
    return {part.lane: part.end for epoch in ledger for part in epoch.ranges}


def lane_of(topic: str, partition: int) -> Lane:
    """Name a lane of a scenario's topic."""
    return Lane(f"{ID_OF}{topic}", partition)


def bytes_of(value: Value) -> bytes | None:
    """Write a record's value."""
    if isinstance(value, Mapping):
        return json.dumps(value, default=str).encode()
    return value.encode() if isinstance(value, str) else value


def encode_headers(headers: Mapping[str, bytes]) -> str:
    """Encode headers as the stream reads them."""
    return json.dumps(
        [{"key": name, "value": base64.b64encode(value).decode()} for name, value in headers.items()]
    )
