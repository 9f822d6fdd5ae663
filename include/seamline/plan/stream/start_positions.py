"""Where a stream starts to read: what someone wants, and what is passed over by it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from seamline.model.errors import BadRange
from seamline.model.protocol.holes import Gap
from seamline.model.protocol.offsets import Lane, Vector
from seamline.model.time.intervals import parse_moment

ONE = re.compile(r"(?:(?P<topic>[^/:,]+)/)?(?P<partition>\d+):(?P<offset>\d+)")


class From(StrEnum):
    """A kind of place. LEDGER: where the log ends, and the beginning of what it never read."""

    LEDGER = "ledger"
    EARLIEST = "earliest"
    LATEST = "latest"
    TIMESTAMP = "timestamp"
    OFFSETS = "offsets"


@dataclass(frozen=True)
class StartPlace:
    """Where to start."""

    kind: From = From.LEDGER
    """How the place is described."""
    instant: datetime | None = None
    """For TIMESTAMP, by Kafka's own time; None otherwise."""
    offsets: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """The next offset to read, by topic and partition; the topic is empty where the pipeline reads only one."""

    @classmethod
    def parse(cls, text: str) -> StartPlace:
        """Read a word, an instant, or offsets like ``0:1200,1:1180`` or ``topic/0:1200``; BadRange."""
        words = text.strip()
        if words in (From.LEDGER, From.EARLIEST, From.LATEST):
            return cls(From(words))
        if ONE.match(words):
            return cls(From.OFFSETS, offsets=offsets_of(words))
        try:
            return cls(From.TIMESTAMP, parse_moment(words))
        except BadRange:
            raise BadRange(
                f"{text!r} is not a start position.",
                hint="write ledger, earliest, latest, an instant (2026-03-01T06:00Z), or offsets (0:1200,1:1180).",
            ) from None


def offsets_of(text: str) -> dict[tuple[str, int], int]:
    """Read explicit offsets; BadRange."""
    found = {}
    for each in text.split(","):
        one = ONE.fullmatch(each.strip())
        if one is None:
            raise BadRange(f"{each!r} is not PARTITION:OFFSET.", hint="write 0:1200,1:1180 or topic/0:1200.")
        found[one["topic"] or "", int(one["partition"])] = int(one["offset"])
    return found


def resolve_offsets(place: StartPlace, topics: Mapping[str, str]) -> dict[Lane, int]:
    """Turn explicit offsets into a vector; ``topics`` are ids by name. BadRange for a topic that is not there."""
    found = {}
    for (topic, partition), offset in place.offsets.items():
        if not topic and len(topics) > 1:
            raise BadRange(
                f"Partition {partition} is given without its topic.",
                hint=f"write TOPIC/{partition}:..., where TOPIC is one of {', '.join(topics)}.",
            )
        name = topic or next(iter(topics))
        if name not in topics:
            raise BadRange(
                f"The pipeline does not read topic {name!r}.", hint=f"it reads {', '.join(topics)}."
            )
        found[Lane(topics[name], partition)] = offset
    return found


def find_skipped_gaps(held: Vector, beginnings: Vector, ends: Vector, wanted: Vector) -> tuple[Gap, ...]:
    """List what lies between where each lane is read to and where it shall go on.

    ``held`` are the log's end offsets, ``beginnings`` and ``ends`` Kafka's. A lane that is not wanted elsewhere goes
    on where it is. Nothing is read twice: BadRange for an offset below the log's end, or that Kafka does not have.
    """
    found = []
    for lane, place in sorted(wanted.items()):
        if lane not in ends:
            raise BadRange(
                f"There is no partition {lane.partition} of topic id {lane.topic_id}.",
                hint=f"available: {', '.join(str(each.partition) for each in sorted(ends))}.",
            )
        at = held.get(lane, beginnings[lane])
        if place < at and lane in held:
            raise BadRange(
                f"Partition {lane.partition} has been read to offset {at}, and {place} is before that.",
                hint="records in the log are never read again; `seamline holes fill` reads what was passed over, "
                "a rebuild counts again, and `seamline stream fork` makes another pipeline from an earlier position.",
            )
        if not min(at, beginnings[lane]) <= place <= ends[lane]:
            raise BadRange(
                f"Kafka has offsets {beginnings[lane]} to {ends[lane]} of partition {lane.partition}, not {place}.",
                hint="choose an offset in that range.",
            )
        if place > at:
            found.append(Gap(lane, at, place))
    return tuple(found)
