"""An answer: the table, and what is known of how far it is right."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.engine.windowing import Numbers
from seamline.lake.read.answer_ways import STATUSES, Ways
from seamline.model.protocol.seam import Phase, Side, Status
from seamline.model.time.intervals import format_utc_instant


@dataclass(frozen=True)
class Answer:
    """The presented rows of a view and how far they are right.

    ``table`` has the columns ``grouping`` (of a view with several sets), keys, columns of look-ups,
    ``window_start``, ``window_end``, measures, ``batch_part`` and ``speed_part`` (rows counted from either side),
    ``epoch`` (the last up to which the row is right), ``certified``, ``complete`` (the watermark is past the
    window's end) and ``phase`` (a ``seam.Phase``).
    """

    view: str
    """The qualified name: ``pipeline.view``."""
    version: str
    """The fingerprint of the version that answered."""
    side: Side
    """The layers that answered."""
    table: pa.Table
    """One row for each window and key."""
    states: pa.Table
    """The merged states, before presentation, in the order of ``table``."""
    intervals: Ways
    """How each interval was answered, by interval id."""
    whole: frozenset[str] | None
    """Ids of the intervals of which every window that starts in them is in ``table``; None for all."""
    epoch: int
    """The last epoch that was committed, or the one as of which the answer is."""
    until: int
    """The last epoch whose slices count, at most ``epoch``: slices may lag behind the master."""
    manifest_version: int
    """The version of the manifest's table that the answer is from."""
    has_event_id: bool
    """Whether rows have an event id, by which builds remove all duplicates; those of joins have none of their own."""
    dedup_within: str = ""
    """The span within which the stream drops duplicates, as the definition spells it; empty if it keeps them."""
    lookups: Mapping[str, str] = field(default_factory=dict)
    """Versions of the look-ups whose columns are in ``table``, by look-up name."""
    served_at: datetime | None = None
    """The instant whose answer this repeats; None for an answer of now."""
    as_of: bool = False
    """Whether today's publications answer for an epoch of the past."""
    beyond: Mapping[str, str] = field(default_factory=dict)
    """By column that has a total as text, because no DECIMAL can hold it: the column of that total."""
    total: int | None = None
    """The rows of a streamed answer, which are not in ``table``; None where they are there."""
    overflowed: Mapping[str, int] | None = None
    """By column of ``beyond``, of a streamed answer: how many such totals it had; None where they are in ``table``."""
    seen_at: datetime | None = None
    """In a bucket, when its tables were last asked for what is new: all that had been committed by then is counted."""
    borders: tuple[datetime, ...] = ()
    """Until when rows of its intervals were imported of files, where these and the topic's are told by time alone."""

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return self.table.num_rows if self.total is None else self.total

    @property
    def answered(self) -> Numbers:
        """The places of the intervals that have a number; those still building are left out."""
        return self.intervals.of(*(each for each in STATUSES if each is not Status.BUILDING))

    @property
    def complete_to(self) -> int:
        """The epoch up to which every interval is right: the least over the intervals."""
        return int(self.intervals.complete_to[self.answered].min()) if len(self.answered) else self.until

    @property
    def complete_to_max(self) -> int:
        """The epoch up to which the furthest interval is right."""
        return int(self.intervals.complete_to[self.answered].max()) if len(self.answered) else self.until

    @property
    def exact_duplicates_to(self) -> int | None:
        """The epoch up to which duplicates are taken out exactly; None if no event id is declared, or for a join."""
        if not self.has_event_id:
            return None
        return least_cut(self.intervals, self.answered)

    @property
    def certified(self) -> list[str]:
        """The ids of the intervals that are certified and untouched since."""
        return self.intervals.ids(self.intervals.of(Status.CERTIFIED))

    @property
    def final(self) -> bool:
        """True if every interval is certified and nothing came from the speed layer, which was asked."""
        return self.side is Side.MERGED and [*self.intervals.tally()] == [Status.CERTIFIED]

    def only(self, phases: Collection[Phase]) -> Answer:
        """Keep the rows whose window has come so far."""
        kept = pc.is_in(self.table["phase"], pa.array([each.value for each in phases], pa.string()))
        return replace(self, table=self.table.filter(kept), states=self.states.filter(kept))

    def summary(self) -> str:
        """Describe in a sentence or two how far the answer can be trusted."""
        then = f"As served at {format_utc_instant(self.served_at)}: " if self.served_at else ""
        then = f"As of epoch {self.epoch}, by what is published now: " if self.as_of else then
        return then + self.told()

    def told(self) -> str:
        """Describe how far the rows are right."""
        if not self.intervals:
            return f"No rows up to epoch {self.until}."
        far = f"epoch {self.complete_to}"
        if self.complete_to_max > self.complete_to:
            far += f" (some intervals to {self.complete_to_max})"
        said = [f"Counts every event up to {far}, {SIDES[self.side]}"]
        said.append("; final: " if self.final else "; ")
        said.append(", ".join(f"{n} {status}" for status, n in self.tally().items()) + ".")
        exact = self.exact_duplicates_to
        if exact == -1:
            said.append(" Duplicates are not removed in every interval yet")
        elif exact is not None:
            said.append(f" Duplicates are removed exactly up to epoch {exact}")
        if exact is not None:
            said.append(f", and within {self.dedup_within} after." if self.dedup_within else ".")
        elif self.dedup_within:
            said.append(f" Duplicates are removed within {self.dedup_within}.")
        said.extend(self.list_overflows())
        if missing := int(self.intervals.missing.max()):
            said.append(
                f" A number may lack up to {missing} records that Kafka had lost before they were read, or that are "
                "still to be imported."
            )
        said.extend(
            f" Rows of before {format_utc_instant(border)} were imported: records of the topic from before it "
            "count twice if the files have them too."
            for border in self.borders
        )
        if building := self.tally().get("building"):
            said.append(f" {building} building: no number is given for them.")
        return "".join(said)

    def list_overflows(self) -> Iterator[str]:
        """List which totals no DECIMAL holds."""
        for name, total in self.beyond.items():
            if count := self.count_overflows(name):
                yield f" {count} of {total} have more digits than a DECIMAL: NULL, and {name} has them as text."

    def count_overflows(self, name: str) -> int:
        """Count the totals of a column of ``beyond``."""
        if self.overflowed is not None:
            return self.overflowed.get(name, 0)
        return len(self.table) - int(self.table[name].null_count)

    def tally(self) -> dict[str, int]:
        """Count the intervals by status, those that occur."""
        return {status.value: count for status, count in self.intervals.tally().items()}


def least_cut(ways: Ways, answered: Numbers) -> int:
    """Return the least cut of generations that answer; -1 where one of the intervals has none."""
    if len(ways.told) < len(answered):
        return -1
    found = [ways.at(place) for place in answered.tolist()]
    return min((each.cut if each.generation else -1 for each in found), default=-1)


SIDES = {
    Side.MERGED: "batch and speed merged",
    Side.BATCH: "by the batch layer alone",
    Side.SPEED: "by the speed layer alone",
}
