"""What producers say that they have sent of one interval, beside what was read of it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import pairwise
from operator import itemgetter
from typing import Any

from seamline.model.protocol.counts.statement import SentCount, list_unstated_spans
from seamline.model.time.intervals import Interval

LISTED = 100
"""How many producers, gaps and spans a certificate lists; more are counted."""


class Outcome(StrEnum):
    """What comes of a comparison."""

    COMPLETE = "complete"
    """What was read is what was sent."""
    MISSING = "missing"
    """Less was read."""
    SURPLUS = "surplus"
    """More was read."""
    NOT_STATED = "not stated"
    """A producer that is expected to has not said how much it has sent."""


@dataclass(frozen=True)
class Read:
    """What was read of a span of event time."""

    accepted: int = 0
    """Records in the master."""
    repeated: int = 0
    """Those of them that repeat an event id of the span."""
    refused: int = 0
    """Records in the quarantine whose event time and producer are known."""

    @property
    def counted(self) -> int:
        """What a statement is compared with: events where they have ids, else records, refused ones with them."""
        return self.accepted - self.repeated + self.refused

    def __add__(self, other: Read) -> Read:
        return Read(
            self.accepted + other.accepted, self.repeated + other.repeated, self.refused + other.refused
        )


@dataclass(frozen=True)
class CountGap:
    """A span of which another number was read than was sent."""

    window: Interval
    """The span of event time."""
    said: int
    """What was sent, by the statements."""
    read: int
    """What was read."""


@dataclass(frozen=True)
class Unstated:
    """A span of which a producer has said nothing."""

    producer: str
    """Its name."""
    window: Interval
    """The span of event time."""


@dataclass(frozen=True)
class ProducerCount:
    """One producer's interval, or that of all producers together where records do not name theirs."""

    producers: tuple[str, ...]
    """The names."""
    said: int
    """What was sent, by all statements of the interval."""
    read: Read
    """What was read of the interval."""
    gaps: tuple[CountGap, ...] = ()
    """Where the two differ, in order of time."""
    unstated: tuple[Unstated, ...] = ()
    """What nothing was said of."""

    @property
    def outcome(self) -> Outcome:
        """What comes of it: records that are missing are worse than any other."""
        if any(each.read < each.said for each in self.gaps):
            return Outcome.MISSING
        if self.gaps:
            return Outcome.SURPLUS
        return Outcome.NOT_STATED if self.unstated else Outcome.COMPLETE


@dataclass(frozen=True)
class SourceCounts:
    """What the producers of one source say of an interval, beside what was read of it up to a cut."""

    source: str
    """The source's name; empty for the only one."""
    counts: tuple[ProducerCount, ...]
    """By producer, those that are not complete first; no more than ``LISTED``."""
    outcomes: Mapping[str, int]
    """How many of all there are of each outcome, by its value."""
    said: int
    """What all producers have sent, by their statements."""
    read: int
    """What was read of them."""
    others: int = 0
    """Records of the interval that name no producer that is expected."""
    unplaced: int = 0
    """Records of about that time that were refused, and whose event time or producer is not known."""

    @property
    def complete(self) -> bool:
        """Whether somebody has said what was sent, and all of it was read."""
        return bool(self.counts) and self.outcomes.keys() <= {Outcome.COMPLETE.value}

    @property
    def only_unstated(self) -> bool:
        """Whether nothing contradicts what was read."""
        return not self.outcomes.keys() & {Outcome.MISSING.value, Outcome.SURPLUS.value}

    def to_row(self) -> dict[str, Any]:
        """Return it as a certificate keeps it, in JSON."""
        return {
            **vars(self),
            "counts": [
                {
                    "producers": list(each.producers),
                    "outcome": each.outcome.value,
                    "said": each.said,
                    **vars(each.read),
                    "gaps": [[str(one.window), one.said, one.read] for one in each.gaps],
                    "unstated": [[one.producer, str(one.window)] for one in each.unstated],
                }
                for each in self.counts
            ],
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> SourceCounts:
        """Read what ``to_row`` returned."""
        counts = tuple(
            ProducerCount(
                tuple(each["producers"]),
                each["said"],
                Read(each["accepted"], each["repeated"], each["refused"]),
                tuple(CountGap(Interval.parse(window), said, read) for window, said, read in each["gaps"]),
                tuple(Unstated(name, Interval.parse(window)) for name, window in each["unstated"]),
            )
            for each in row["counts"]
        )
        return cls(**{**row, "counts": counts})


Found = Mapping[str, Mapping[datetime, Read]]
"""What was read of an interval: by producer, or under "" where records do not name theirs, by the start of a step."""


def compare_counts(
    source: str,
    interval: Interval,
    stated: Mapping[str, Sequence[SentCount]],
    expected: Iterable[str],
    found: Found,
    *,
    named: bool,
    others: int = 0,
    unplaced: int = 0,
) -> SourceCounts:
    """Compare what was read of an interval with the statements that hold of it.

    ``stated`` are those of each producer, sorted; ``expected`` are the producers that should have made some; ``named``
    is whether records name their producers. Without that all producers are compared as one.
    """
    producers = sorted({*stated, *expected})
    groups = [(name,) for name in producers] if named else [tuple(producers)] if producers else []
    judged = [
        compare_group(
            interval,
            {name: stated.get(name, ()) for name in group},
            found.get(group[0] if named else "", {}),
        )
        for group in groups
    ]
    ordered = sorted(judged, key=lambda each: (each.outcome is Outcome.COMPLETE, each.producers))
    outcomes = [each.outcome.value for each in judged]
    return SourceCounts(
        source,
        tuple(ordered[:LISTED]),
        {name: outcomes.count(name) for name in dict.fromkeys(outcomes)},
        sum(each.said for each in judged),
        sum(each.read.counted for each in judged),
        others,
        unplaced,
    )


def compare_group(
    interval: Interval, stated: Mapping[str, Sequence[SentCount]], found: Mapping[datetime, Read]
) -> ProducerCount:
    """Compare producers whose records are counted together."""
    unstated = [
        Unstated(name, span) for name, each in stated.items() for span in list_unstated_spans(interval, each)
    ]
    known, steps = list(stated.values()), sorted(found.items(), key=itemgetter(0))
    gaps = []
    for span in list_common_spans(known):
        said = sum(each.count for some in known for each in list_within(some, span))
        read = sum_reads(steps, span).counted
        if said != read:
            gaps.append(CountGap(span, said, read))
    return ProducerCount(
        tuple(stated),
        sum(each.count for some in known for each in some),
        sum_reads(steps, interval),
        tuple(gaps[:LISTED]),
        tuple(unstated[:LISTED]),
    )


def list_common_spans(stated: Sequence[Sequence[SentCount]]) -> list[Interval]:
    """List the shortest spans of all of which every one of some producers says how much it sent, in order."""
    bounds = [{bound for each in known for bound in (each.window.start, each.window.end)} for known in stated]
    common = sorted(set.intersection(*bounds)) if bounds else []
    spans = [Interval(start, end) for start, end in pairwise(common)]
    return [span for span in spans if all(covers(known, span) for known in stated)]


def list_within(statements: Sequence[SentCount], span: Interval) -> Sequence[SentCount]:
    """List those of sorted statements whose windows begin in a span."""
    start = bisect_left(statements, span.start, key=lambda each: each.window.start)
    return statements[start : bisect_left(statements, span.end, key=lambda each: each.window.start)]


def covers(statements: Sequence[SentCount], span: Interval) -> bool:
    """Return whether sorted statements tell of all of a span of whose bounds each is one of a window's."""
    told = (each.window.end - each.window.start for each in list_within(statements, span))
    return sum(told, timedelta(0)) == span.end - span.start


def sum_reads(steps: Sequence[tuple[datetime, Read]], span: Interval) -> Read:
    """Sum up what was read of a span, by the sorted starts of steps."""
    start = bisect_left(steps, span.start, key=itemgetter(0))
    end = bisect_left(steps, span.end, key=itemgetter(0))
    return sum((each for _, each in steps[start:end]), Read())
