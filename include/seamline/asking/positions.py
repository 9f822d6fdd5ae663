"""How far a question has been asked: a small file of the warehouse. It may be older than it could be, never newer."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from seamline.lake.storage.durability import sync_file
from seamline.lake.storage.layout import Layout
from seamline.lake.store.locations import replace_file
from seamline.lake.tables.decided import find_question_births
from seamline.model.protocol.seam import NOTHING


@dataclass(frozen=True)
class Position:
    """What the topic of answers is known to have."""

    epoch: int = NOTHING
    """The epoch up to which each row that is asked about has a record in the topic."""
    decided: int = 0
    """How many decisions to ask again were carried out, of all questions in their order."""


def read_position(layout: Layout, id: str) -> Position:
    """Read how far a question has been asked; where nobody has said, or what he said is lost, that is its birth."""
    try:
        return Position(**json.loads(layout.asked(id).read_bytes()))
    except (FileNotFoundError, ValueError, TypeError):
        return Position(*find_question_births(layout).get(id, ()))


def write_position(layout: Layout, id: str, position: Position) -> None:
    """Say how far a question has been asked."""
    replace_file(layout.asked(id), json.dumps(asdict(position)).encode(), before=sync_file)
