"""The seam in plain Python: which slices an interval's answer counts, and the merged state.

This is the oracle for the engines: a list of states and their epochs, nothing clever.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from seamline.model.errors import StraddlesCut
from seamline.model.measures import Measure

NOTHING = -1
"""The cut and the floor of an interval that no generation covers: the speed layer alone answers."""


class Side(StrEnum):
    """Which layer answers."""

    MERGED = "merged"
    BATCH = "batch"
    SPEED = "speed"


class Status(StrEnum):
    """What is known of an interval at the time of an answer."""

    CERTIFIED = "certified"
    DIRTY = "dirty"
    OPEN = "open"
    BUILDING = "building"


@dataclass(frozen=True)
class Slice:
    """Partial states of one key and pane from the epochs ``from_epoch..to_epoch`` (both in)."""

    key: tuple[Any, ...]
    pane: datetime
    from_epoch: int
    to_epoch: int
    rows: int
    states: tuple[Any, ...]


def counted(slices: Iterable[Slice], *, cut: int, until: int) -> list[Slice]:
    """List the slices with ``cut < epoch <= until``; raise StraddlesCut for one that crosses the cut."""
    taken = []
    for piece in slices:
        if piece.from_epoch <= cut < piece.to_epoch:
            raise StraddlesCut(
                f"Slice {piece.from_epoch}..{piece.to_epoch} crosses the cut {cut}.",
                hint="cuts fall on edges only and compaction stays between edges (rule 9).",
            )
        if piece.from_epoch > cut and piece.to_epoch <= until:
            taken.append(piece)
    return taken


def merge(measures: Iterable[Measure], states: Iterable[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Add up states of several measures position by position."""
    kinds = tuple(measures)
    total = tuple(measure.zero for measure in kinds)
    for state in states:
        total = tuple(
            measure.plus(left, right) for measure, left, right in zip(kinds, total, state, strict=True)
        )
    return total
