"""Where a warehouse has moved: the mark in the old place, and what the new place says of where it came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from seamline.model.errors import MovedAway
from seamline.model.protocol.warehouse_names import WarehouseName

BACK = "-back"
"""How the id of a mark ends by which a new place is closed."""


@dataclass(frozen=True)
class Moved:
    """A mark: nothing is written here any more, because all of it is, or will be, in another place."""

    to: str
    """The other place: a folder, or a URL."""
    id: str
    """Of the move, which may take several attempts."""
    actor: str
    """Who moves it."""
    at: str
    """When that began, UTC."""
    arrived: bool = False
    """Whether all of it is there. The other place knows that first."""

    def back(self, source: str) -> Moved:
        """Return the mark of the new place when the move is taken back, of an id that the move does not lift."""
        return replace(self, id=f"{self.id}{BACK}", to=source, arrived=True)

    def is_back_of(self, origin: MoveOrigin) -> bool:
        """Return whether this is the mark of a place that was given up, of the move by which all came there."""
        return self.id == f"{origin.id}{BACK}"

    def refusal(self, what: str, named: WarehouseName) -> MovedAway:
        """Say why nothing is written here, and what can be done about it; ``named``: how one names this warehouse."""
        if self.arrived:
            return MovedAway(
                f"{what} was moved to {self.to}, by {self.actor} at {self.at}.",
                hint=f"{named.set_to(self.to)}. `{named.migrate('--undo')}` takes the move back.",
            )
        return MovedAway(
            f"{what} is being moved to {self.to}, by {self.actor} since {self.at}.",
            hint=f"`{named.migrate(f'--to {self.to}')}` finishes it, `{named.migrate('--undo')}` takes it back.",
        )

    def to_row(self) -> dict[str, Any]:
        """Write it as JSON-like facts."""
        return asdict(self)

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Moved:
        """Read what ``to_row`` wrote."""
        return cls(**row)


@dataclass(frozen=True)
class MoveOrigin:
    """What a place says of the warehouse that moves, or has moved, into it."""

    source: str
    """Where it was: a folder, or a URL."""
    id: str
    """Of the move."""
    actor: str
    """Who moves it."""
    at: str
    """When that began, UTC."""
    arrived: bool = False
    """Whether all of it is there and was verified: from then on nothing is copied or deleted there any more."""
    given_up: bool = False
    """Whether the move was taken back before: another one may begin in the same place."""

    def mark(self, to: str) -> Moved:
        """Return the mark of the old place, in that it is not said yet that all has arrived."""
        return Moved(to, self.id, self.actor, self.at)

    def to_row(self) -> dict[str, Any]:
        """Write what is said at its begin as JSON-like facts; what is decided of it later is said elsewhere."""
        return {"source": self.source, "id": self.id, "actor": self.actor, "at": self.at}


@dataclass(frozen=True)
class MovePlan:
    """What a move would do now."""

    source: str
    """Where the warehouse is."""
    to: str
    """Where it moves."""
    pipelines: Mapping[str, int]
    """How many tables each pipeline has."""
    files: int
    """Files of the warehouse."""
    bytes: int
    """Their bytes."""
    copied: int
    """Files that the destination lacks, or has in another size."""
    copied_bytes: int
    """Their bytes."""
    compared: int
    """Files that are there already, and are compared."""
    deleted: int
    """Files there that the warehouse has no more."""
    requests: int
    """Requests to a store, about."""
    begun: bool
    """Whether the move has begun."""


@dataclass(frozen=True)
class MoveReport:
    """What a move has done."""

    source: str
    """Where the warehouse was."""
    to: str
    """Where it is now."""
    id: str
    """Of the move."""
    pipelines: Mapping[str, int]
    """How many rows the log of each pipeline has, in both places."""
    tables: int
    """Tables that were opened in both places, and are the same."""
    files: int
    """Files whose digests are the same in both places."""
    bytes: int
    """Their bytes."""
    copied: int
    """Files that were copied now."""
    compared: int
    """Files that an earlier attempt had copied."""
    deleted: int
    """Files of an earlier attempt that the warehouse had no more."""
    requests: Mapping[str, int]
    """Requests to stores, by kind."""
    before: bool = False
    """Whether it had all been done before."""
