"""How intervals are answered, in columns: what an answer says of each, whatever their number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from datetime import timedelta

import numpy as np

from seamline.lake.engine.windowing import Numbers
from seamline.model.errors import BadRange
from seamline.model.protocol.seam import Status
from seamline.model.time.intervals import EPOCH, format_utc_instant, parse_moment

Flags = np.ndarray[tuple[int], np.dtype[np.bool_]]
STATUSES = tuple(Status)


@dataclass(frozen=True)
class IntervalAnswer:
    """How one interval was answered."""

    status: Status
    """Whether it is open, provisional, certified or building."""
    cut: int
    """The last epoch that slices do not answer; the generation counts every epoch up to it. -1 for none."""
    generation: str
    """The generation's name; empty if none answers."""
    rows_since: int
    """Rows counted from slices, above the cut."""
    complete_to: int
    """The last epoch up to which the answer has every row of the interval."""
    restated: int = 0
    """How many restatements the build of the generation knew."""
    note: str = ""
    """Who decided that this generation answers, and why; empty if its certificate alone decides."""
    missing: int = 0
    """The most records that the numbers may lack: offsets that Kafka lost before they were read."""


@dataclass(frozen=True, eq=False)
class Ways(Mapping[str, IntervalAnswer]):
    """The intervals of an answer by id, in the order of their starts, with one column for each fact."""

    starts: Numbers
    """Microseconds since 1970, ascending; every other column has the same length and order."""
    statuses: Numbers
    """Places in STATUSES."""
    cuts: Numbers
    """The last epoch that slices do not answer; -1 for none."""
    rows_since: Numbers
    """Rows counted from slices."""
    complete_to: Numbers
    """Epochs, inclusive."""
    missing: Numbers
    """The most records that each interval may lack."""
    told: MutableMapping[int, IntervalAnswer]
    """By place: the answers of the intervals that the manifest mentions."""

    def __len__(self) -> int:
        return len(self.starts)

    def __iter__(self) -> Iterator[str]:
        return map(format_interval_id, self.starts.tolist())

    def __getitem__(self, id: str) -> IntervalAnswer:
        try:
            start = (parse_moment(id) - EPOCH) // timedelta(microseconds=1)
        except BadRange:
            raise KeyError(id) from None
        place = int(np.searchsorted(self.starts, start))
        if place == len(self) or self.starts[place] != start:
            raise KeyError(id)
        return self.at(place)

    def at(self, place: int) -> IntervalAnswer:
        """Return the interval at a place."""
        if place in self.told:
            return self.told[place]
        return IntervalAnswer(
            STATUSES[self.statuses[place]],
            int(self.cuts[place]),
            "",
            int(self.rows_since[place]),
            int(self.complete_to[place]),
            missing=int(self.missing[place]),
        )

    def listed(self) -> Iterator[tuple[str, IntervalAnswer]]:
        """Iterate over the intervals in order, which is faster than a search for each id."""
        return zip(self, map(self.at, range(len(self))), strict=True)

    def of(self, *statuses: Status) -> Numbers:
        """List the places of the intervals of some statuses."""
        found: Numbers = np.flatnonzero(np.isin(self.statuses, [STATUSES.index(each) for each in statuses]))
        return found

    def ids(self, places: Numbers) -> list[str]:
        """Name the intervals at some places."""
        return [*map(format_interval_id, self.starts[places].tolist())]

    def tally(self) -> dict[Status, int]:
        """Count the intervals by status, those that occur."""
        counts = np.bincount(self.statuses, minlength=len(STATUSES)).tolist()
        return {status: count for status, count in zip(STATUSES, counts, strict=True) if count}

    def runs(self, status: Status) -> list[tuple[str, str]]:
        """Name the first and the last interval of each run of neighbours in the answer that have a status."""
        places = self.of(status)
        breaks = np.flatnonzero(np.diff(places) != 1)
        firsts, lasts = (
            places[[0, *(breaks + 1)]] if len(places) else places,
            places[[*breaks, -1]] if len(places) else places,
        )
        return [*zip(self.ids(firsts), self.ids(lasts), strict=True)]

    def notes(self) -> dict[str, str]:
        """Return the notes by interval."""
        noted = sorted(place for place, each in self.told.items() if each.note)
        return {format_interval_id(int(self.starts[place])): self.told[place].note for place in noted}


def format_interval_id(micros: int) -> str:
    """Format the id of the interval that starts at so many microseconds since 1970."""
    return format_utc_instant(EPOCH + timedelta(microseconds=micros))
