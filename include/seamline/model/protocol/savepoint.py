"""A savepoint: a named position in a pipeline's log, with the versions of views that were served there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from seamline.model.errors import BadRange, NotFound
from seamline.model.protocol.offsets import Lane
from seamline.model.time.intervals import format_utc_instant, parse_moment


@dataclass(frozen=True)
class Savepoint:
    """An epoch that the master holds, by name.

    ``ends`` are the offsets to which each lane was read, ``served`` the version ``view/fingerprint`` by the name of
    its view, ``record_version`` the one by which records were judged. The log is never cut back to it: what came
    after stays.
    """

    name: str
    epoch: int
    ends: Mapping[Lane, int]
    served: Mapping[str, str]
    record_version: str
    actor: str
    reason: str
    at: datetime

    def __str__(self) -> str:
        versions = ", ".join(self.served.values()) or "no view yet"
        at = format_utc_instant(self.at)
        return f"{self.name}: epoch {self.epoch}, {at}, {versions}; {self.actor}: {self.reason}"

    def to_row(self) -> dict[str, Any]:
        """Write it as JSON-like facts."""
        return {
            **vars(self),
            "ends": {str(lane): end for lane, end in self.ends.items()},
            "served": dict(self.served),
            "at": format_utc_instant(self.at),
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Savepoint:
        """Read what ``to_row`` wrote."""
        ends = {Lane.parse(lane): end for lane, end in row["ends"].items()}
        return cls(**{**row, "ends": ends, "at": parse_moment(row["at"])})


def find_savepoint(savepoints: Iterable[Savepoint], name: str) -> Savepoint:
    """Find a savepoint by its name; NotFound with the names that there are."""
    known = list(savepoints)
    for each in known:
        if each.name == name:
            return each
    names = ", ".join(each.name for each in known) or "none"
    raise NotFound(f"There is no savepoint {name!r}.", hint=f"there are: {names}.")


def with_one_more(savepoints: tuple[Savepoint, ...], new: Savepoint) -> tuple[Savepoint, ...]:
    """Add a savepoint; BadRange where its name is taken: a name means one position for ever."""
    for each in savepoints:
        if each.name == new.name:
            raise BadRange(f"There is a savepoint {each}.", hint="give the new one another name.")
    return (*savepoints, new)
