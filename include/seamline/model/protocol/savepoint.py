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
    """An epoch by name. The log is never cut back to it: what came after stays."""

    name: str
    """Its name, unique in the pipeline."""
    epoch: int
    """An epoch that the master contains."""
    ends: Mapping[Lane, int]
    """The offset to which each lane was read."""
    served: Mapping[str, str]
    """The version ``view/fingerprint`` that served, by the view's name."""
    record_version: str
    """What records meant."""
    actor: str
    """Who decided it."""
    reason: str
    """Why, in that person's words."""
    at: datetime
    """When, UTC."""

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
    raise NotFound(f"There is no savepoint {name!r}.", hint=f"available: {names}.")


def with_one_more(savepoints: tuple[Savepoint, ...], new: Savepoint) -> tuple[Savepoint, ...]:
    """Add a savepoint; BadRange where its name is taken: a name means one position for ever."""
    for each in savepoints:
        if each.name == new.name:
            raise BadRange(f"The name is taken by savepoint {each}.", hint="choose another name.")
    return (*savepoints, new)
