"""What is answered as of an earlier epoch: the generations of then, and the slices that fit them."""

from __future__ import annotations

from collections.abc import Sequence

from tests.protocol.model.joined_answers import merged, unbuilt
from tests.protocol.model.joined_rows import NONE
from tests.protocol.model.joins import Bounds, Built, Rules, State


def check_past(state: State, rules: Rules, bounds: Bounds) -> None:
    """Hold what is answered as of each edge against the log up to there; below its floor none is given."""
    if not bounds.past or not state.born or not state.judged:
        return
    for number in (each.number for each in state.log if each.edge):
        answering = [latest(some, number) for some in state.history]
        to = fitting(state, answering, min(number, state.w), rules, bounds)
        for at, (found, floor) in enumerate(zip(answering, state.floors, strict=True)):
            cut = found.cut if found else NONE
            if floor == NONE or cut >= min(floor, to):
                merged(state, at, found, max(cut, to), rules, bounds)


def latest(some: Sequence[Built], number: int) -> Built | None:
    """Return the last that was published with a cut of then."""
    return next((each for each in reversed(some) if each.cut <= number), None)


def fitting(state: State, answering: Sequence[Built | None], to: int, rules: Rules, bounds: Bounds) -> int:
    """Return up to which epoch slices fit generations: before decisions that some of these do not know."""
    if not bounds.gated or not rules.fits_past:
        return to
    cuts = [each.cut if each else NONE for each in answering]
    for s in (each for each in state.log if each.names and each.number <= to):
        if unbuilt(state, s, cuts, rules, bounds):
            return s.number - 1
    return to
