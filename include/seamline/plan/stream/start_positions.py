"""Where a stream starts to read: what someone wants, and what is passed over by it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from seamline.model.errors import BadRange
from seamline.model.protocol.holes import Gap
from seamline.model.protocol.offsets import Lane, Vector
from seamline.model.time.intervals import parse_moment

ONE = re.compile(r"(?:(?P<topic>[^/:,]+)/)?(?P<partition>\d+):(?P<offset>\d+)")
GROUP_PREFIX = "group:"
SHOWN = 200
"""Letters that are shown of what is no JSON of offsets."""


class From(StrEnum):
    """A kind of place. LEDGER: where the log ends, and the beginning of what it never read.

    GROUP: where the members of a consumer group would go on.
    """

    LEDGER = "ledger"
    EARLIEST = "earliest"
    LATEST = "latest"
    TIMESTAMP = "timestamp"
    OFFSETS = "offsets"
    GROUP = "group"


@dataclass(frozen=True)
class StartPlace:
    """Where to start."""

    kind: From = From.LEDGER
    """How the place is described."""
    instant: datetime | None = None
    """For TIMESTAMP, by Kafka's own time; None otherwise."""
    offsets: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """The next offset to read, by topic and partition; the topic is empty where the pipeline reads only one."""
    group: str = ""
    """For GROUP, its id; else empty."""

    @classmethod
    def parse(cls, text: str) -> StartPlace:
        """Read a word, ``group:ID``, an instant, or offsets; BadRange.

        Offsets are ``0:1200,1:1180``, ``topic/0:1200``, or JSON as Spark has it: ``{"topic": {"0": 1200}}``.
        """
        words = text.strip()
        if group := words.removeprefix(GROUP_PREFIX).strip() if words.startswith(GROUP_PREFIX) else "":
            return cls(From.GROUP, group=group)
        if words.startswith("{"):
            return cls(From.OFFSETS, offsets=parse_spark_offsets(words))
        if words in (From.LEDGER, From.EARLIEST, From.LATEST):
            return cls(From(words))
        if ONE.match(words):
            return cls(From.OFFSETS, offsets=offsets_of(words))
        try:
            return cls(From.TIMESTAMP, parse_moment(words))
        except BadRange:
            raise BadRange(
                f"{text!r} is not a start position.",
                hint="write ledger, earliest, latest, group:ID, an instant (2026-03-01T06:00Z), or offsets "
                '(0:1200,1:1180, or {"topic": {"0": 1200}}).',
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


def parse_spark_offsets(text: str) -> dict[tuple[str, int], int]:
    """Read offsets in JSON, as Spark's ``startingOffsets`` and the last line of its checkpoints have them; BadRange."""
    shown = repr(text if len(text) <= SHOWN else f"{text[:SHOWN]}...")
    try:
        found = {
            (topic, parse_partition(partition)): whole_number(offset)
            for topic, offsets in json.loads(text, object_pairs_hook=read_distinct_names).items()
            for partition, offset in offsets.items()
        }
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise BadRange(
            f"{shown} is not a JSON object of offsets by topic and partition, each of them once.",
            hint='write {"topic": {"0": 1200, "1": 1180}}.',
        ) from None
    if not found:
        raise BadRange(
            f"{shown} names no offset.", hint='write {"topic": {"0": 1200}}, or earliest, or latest.'
        )
    if negative := [f"{topic}/{partition}" for (topic, partition), at in found.items() if at < 0]:
        raise BadRange(
            f"{', '.join(negative)}: -1 and -2 mean the end and the beginning, and are no offsets.",
            hint="write earliest or latest for all partitions, or the offset of each.",
        )
    return found


def read_distinct_names(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    """Return an object of JSON; ValueError for a name that is there twice, of which one would be passed over."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is there twice")
    return found


def parse_partition(text: str) -> int:
    """Read a partition as JSON's names have it; ValueError."""
    found = int(text)
    if str(found) != text or found < 0:
        raise ValueError(text)
    return found


def whole_number(value: object) -> int:
    """Return a number of JSON that is whole; ValueError."""
    if type(value) is not int:
        raise ValueError(value)
    return value


@dataclass(frozen=True)
class StartOffsets:
    """Where each lane goes on that does not go on where it is."""

    chosen: Vector
    """The first offset to read."""
    notes: tuple[str, ...] = ()
    """What is to be known about it, a line each."""


def place_group(
    group: str, recorded: Mapping[Lane, int], held: Vector, beginnings: Vector, names: Mapping[str, str]
) -> StartOffsets:
    """Decide where each lane goes on that a group has read; ``names`` are the topics by id.

    ``held`` are the log's end offsets: what it has is not read again. A lane without an offset of the group's goes on
    where it is, and one that Kafka has cut past the group's place is read from what is left. BadRange where the group
    has recorded nothing of any topic.
    """
    if not recorded:
        raise BadRange(
            f"The consumer group {group!r} has recorded no offset of {' or '.join(sorted(names.values()))}.",
            hint="check its id, and that it commits to Kafka; Spark keeps offsets in the last lines of the newest file "
            'in CHECKPOINT/offsets: pass these, {"topic": {"0": 1200}}, instead.',
        )
    chosen, notes = {}, []
    for lane, begins in sorted(beginnings.items()):
        of = f"{names[lane.topic_id]}/{lane.partition}"
        at, log = recorded.get(lane), held.get(lane)
        if at is None:
            where = f"read from {begins}, the first there is" if log is None else f"read on from {log}"
            notes.append(f"{of}: the group has recorded no offset; it is {where}")
            continue
        chosen[lane] = max(at, begins if log is None else log)
        if log is not None and log > at:
            notes.append(f"{of}: the group is at {at}, and the log has been read to {log}: it goes on there")
        elif at < begins:
            notes.append(f"{of}: the group is at {at}, and Kafka has nothing before {begins} any more")
            chosen[lane] = max(chosen[lane], begins)
    return StartOffsets(chosen, tuple(notes))


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
