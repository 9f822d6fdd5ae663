"""The seam in plain Python: which slices an interval's answer counts, and the merged state.

This is the oracle for the engines: a list of states and their epochs, nothing clever.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from seamline.model.errors import StraddlesCut
from seamline.model.measures import Measure
from seamline.model.time.window_arithmetic import Gaps, Ruling, Whole, Windows

NOTHING = -1
"""The cut and the floor of an interval that no generation covers: the speed layer alone answers."""


class Side(StrEnum):
    """Which layer answers."""

    MERGED = "merged"
    BATCH = "batch"
    SPEED = "speed"


class Phase(StrEnum):
    """How far a window's result has come.

    EARLY: the watermark has not passed its end. COMPLETE: it has. LATE: it has, and the row counts events of
    epochs after the first edge at which it had, which no build has taken in yet.
    """

    EARLY = "early"
    COMPLETE = "complete"
    LATE = "late"


class Status(StrEnum):
    """What is known of an interval at the time of an answer.

    CERTIFIED: its generation is, and nothing came since. DIRTY: something did. HELD: a person rolled it back, and no
    dirty run builds it. PROVISIONAL, UNCERTIFIED: it was published before it closed, or despite its certificate.
    OPEN: the speed layer alone answers. BUILDING: nothing can, until a build brings what came before its birth.
    """

    CERTIFIED = "certified"
    DIRTY = "dirty"
    HELD = "rolled back"
    PROVISIONAL = "provisional"
    UNCERTIFIED = "not certified"
    OPEN = "open"
    BUILDING = "building"


@dataclass(frozen=True)
class Slice:
    """Partial states of one key and pane."""

    key: tuple[Any, ...]
    """The values of the view's keys."""
    pane: datetime
    """The start of the pane."""
    from_epoch: int
    """The first epoch that is in."""
    to_epoch: int
    """The last epoch that is in."""
    rows: int
    """How many rows it counts."""
    states: tuple[Any, ...]
    """The state of each measure, in the view's order."""


def list_seam_slices(slices: Iterable[Slice], *, cut: int, until: int) -> list[Slice]:
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


def windows_over(windows: Windows, instants: Sequence[int]) -> dict[tuple[int, int | None], list[int]]:
    """Say which windows there are over the rows of one key, and which rows (by place) are in each.

    ``instants`` are the rows' event times in microseconds since 1970; a window is its start and its end.
    """
    found: dict[tuple[int, int | None], list[int]] = {}
    match windows:
        case Whole(start=start):
            return {(start, None): list(range(len(instants)))} if instants else {}
        case Ruling():
            for place, instant in enumerate(instants):
                for window in windows.windows_at(instant):
                    found.setdefault(window, []).append(place)
        case Gaps(gap=gap):
            session: list[int] = []
            for place in sorted(range(len(instants)), key=instants.__getitem__):
                if session and instants[place] - instants[session[-1]] >= gap:
                    found[instants[session[0]], instants[session[-1]] + gap] = session
                    session = []
                session.append(place)
            if session:
                found[instants[session[0]], instants[session[-1]] + gap] = session
    return found


def merge_states(measures: Iterable[Measure], states: Iterable[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Add up states of several measures position by position."""
    kinds = tuple(measures)
    total = tuple(measure.zero for measure in kinds)
    for state in states:
        total = tuple(
            measure.plus(left, right) for measure, left, right in zip(kinds, total, state, strict=True)
        )
    return total
