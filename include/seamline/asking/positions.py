"""How far a question has been asked: a small file of the warehouse. It may be older than it could be, never newer."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from seamline.lake.storage.durability import sync_file
from seamline.lake.storage.layout import Layout
from seamline.lake.store.locations import create_file, replace_file
from seamline.model.protocol.seam import NOTHING


@dataclass(frozen=True)
class Position:
    """What the topic of answers is known to have."""

    born: int = NOTHING
    """The last epoch before the question was asked at all: of its rows, and earlier ones, nobody was asked unless by
    decision."""
    epoch: int = NOTHING
    """The epoch up to which each row that is asked about has a record in the topic."""
    decided: int = 0
    """How many decisions to ask again were carried out."""


def read_position(layout: Layout, id: str) -> Position | None:
    """Read how far a question has been asked; None where nobody has said."""
    try:
        return Position(**json.loads(layout.asked(id).read_bytes()))
    except FileNotFoundError:
        return None


def begin_position(layout: Layout, id: str, held: int) -> Position:
    """Return how far a question has been asked; where it is new, epochs up to ``held`` are not asked about."""
    new = Position(born=held, epoch=held)
    if create_file(layout.asked(id), encode(new)):
        return new
    return read_position(layout, id) or new


def write_position(layout: Layout, id: str, position: Position) -> None:
    """Say how far a question has been asked."""
    replace_file(layout.asked(id), encode(position), before=sync_file)


def encode(position: Position) -> bytes:
    """Write a position as it is kept."""
    return json.dumps(asdict(position)).encode()
