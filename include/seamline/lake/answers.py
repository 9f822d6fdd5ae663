"""An answer: the table, and what is known of how far it is right."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from seamline.model.intervals import stamp
from seamline.model.seam import Phase, Side, Status


@dataclass(frozen=True)
class IntervalAnswer:
    """How one interval was answered: ``rows_since`` are the rows counted from slices, above the cut.

    ``restated`` is how many restatements the build of the generation knew; ``note`` says who decided that it answers,
    where that was not its certificate alone. ``missing`` bounds how many records its numbers may lack: offsets that
    Kafka had lost before they were read, and that may belong to it.
    """

    status: Status
    cut: int
    generation: str
    rows_since: int
    complete_to: int
    restated: int = 0
    note: str = ""
    missing: int = 0


@dataclass(frozen=True)
class Answer:
    """
    The presented rows of a view and how far they are right.

    ``table``: ``grouping`` (of a view with several sets), keys, columns of look-ups, ``window_start``,
    ``window_end``, measures, ``batch_part`` and ``speed_part`` (rows counted from either side), ``epoch`` (each
    row's own ``complete_to``), ``certified``, ``complete`` (the watermark is past the window's end), ``phase`` (a
    ``seam.Phase``).
    ``states``: the merged states on the same rows. ``version`` is the fingerprint that answered; ``whole`` are
    the intervals of which every window that starts in them is there, None for all. ``lookups`` are the versions
    of the look-ups whose columns are there, by name. ``served_at`` is the instant whose answer it is, if one was
    asked for; ``as_of`` tells that today's publications answer for an epoch of the past.
    """

    view: str
    version: str
    side: Side
    table: pa.Table
    states: pa.Table
    intervals: Mapping[str, IntervalAnswer]
    whole: frozenset[str] | None
    epoch: int
    until: int
    manifest_version: int
    has_event_id: bool
    dedup_within: str = ""
    lookups: Mapping[str, str] = field(default_factory=dict)
    served_at: datetime | None = None
    as_of: bool = False

    @property
    def answered(self) -> list[IntervalAnswer]:
        """The intervals that have a number; those still building are left out."""
        return [each for each in self.intervals.values() if each.status is not Status.BUILDING]

    @property
    def complete_to(self) -> int:
        """The epoch up to which every interval is right: the least over the intervals."""
        return min((each.complete_to for each in self.answered), default=self.until)

    @property
    def complete_to_max(self) -> int:
        """The epoch up to which the furthest interval is right."""
        return max((each.complete_to for each in self.answered), default=self.until)

    @property
    def exact_duplicates_to(self) -> int | None:
        """The epoch up to which duplicates are taken out exactly; None where no event id is declared."""
        if not self.has_event_id:
            return None
        return (
            min((each.cut for each in self.answered if each.generation), default=-1)
            if all(each.generation for each in self.answered)
            else -1
        )

    @property
    def certified(self) -> list[str]:
        """The ids of the intervals that are certified and untouched since."""
        return [id for id, each in self.intervals.items() if each.status is Status.CERTIFIED]

    @property
    def final(self) -> bool:
        """True if every interval is certified and nothing came from the speed layer, which was asked."""
        return (
            self.side is Side.MERGED and bool(self.intervals) and len(self.certified) == len(self.intervals)
        )

    def only(self, phases: Collection[Phase]) -> Answer:
        """Keep the rows whose window has come so far."""
        kept = pc.is_in(self.table["phase"], pa.array([each.value for each in phases], pa.string()))
        return replace(self, table=self.table.filter(kept), states=self.states.filter(kept))

    def summary(self) -> str:
        """Say in a sentence or two how far the answer can be trusted."""
        then = f"As served at {stamp(self.served_at)}: " if self.served_at else ""
        then = f"As of epoch {self.epoch}, by what is published now: " if self.as_of else then
        return then + self.told()

    def told(self) -> str:
        """Say how far the rows are right."""
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
        if missing := max((each.missing for each in self.intervals.values()), default=0):
            said.append(
                f" A number may lack up to {missing} records that Kafka had lost before they were read."
            )
        if building := self.tally().get("building"):
            said.append(f" {building} building: no number is given for them.")
        return "".join(said)

    def tally(self) -> dict[str, int]:
        """Count the intervals by status, those that occur."""
        found = [each.status for each in self.intervals.values()]
        return {status.value: found.count(status) for status in Status if status in found}


SIDES = {
    Side.MERGED: "batch and speed merged",
    Side.BATCH: "by the batch layer alone",
    Side.SPEED: "by the speed layer alone",
}
