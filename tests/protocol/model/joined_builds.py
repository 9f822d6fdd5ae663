"""Builds of joined rows, each interval at a cut of its own, and what upkeep makes of their slices."""

from __future__ import annotations

from collections.abc import Iterable

from tests.protocol.model.joined_answers import certified, compared, decides
from tests.protocol.model.joined_rows import NONE, counted, joined, named, together
from tests.protocol.model.joins import Bounds, Built, Moves, Piece, Rules, State, left_of, put, spend


def builds(state: State, rules: Rules, bounds: Bounds) -> Moves:
    """Build and publish each interval alone, at any edge that its floor allows, and roll back."""
    if not state.born or not state.judged:
        return
    for at in range(bounds.join.intervals):
        served, older = state.served[at], state.older[at]
        if left_of(state, bounds, "builds"):
            for cut in (each.number for each in state.log if each.edge and each.number >= state.floors[at]):
                if cut > state.cut(at) or (served and not served.green and cut == served.cut):
                    new = built(state, at, cut, rules, bounds)
                    if new == served:
                        continue
                    compared(state, at, new, bounds)
                    after = published(state, at, new, served, bounds)
                    yield f"interval {at} is built at {cut}", spend(after, "builds")
        back = older and older.cut >= state.floors[at] and left_of(state, bounds, "rollbacks")
        if (
            older
            and back
            and not (bounds.gated and rules.keeps_decided and forgets(state, at, older, bounds))
        ):
            after = published(state, at, older, None, bounds)
            yield f"interval {at} is rolled back to {older.cut}", spend(after, "rollbacks")
        if left_of(state, bounds, "withdrawals") and state.driver.at == "ready":
            for lost in dict.fromkeys(each for each in (served, older, *state.history[at]) if each):
                after = withdrawn(state, at, lost, rules, bounds)
                yield f"the generation of {at} up to {lost.cut} is lost", spend(after, "withdrawals")


def published(state: State, at: int, new: Built, older: Built | None, bounds: Bounds) -> State:
    """Let a generation answer."""
    known = (*state.history[at], new) if bounds.past else ()
    return state._replace(
        served=put(state.served, at, new),
        older=put(state.older, at, older),
        history=put(state.history, at, known),
    )


def withdrawn(state: State, at: int, lost: Built, rules: Rules, bounds: Bounds) -> State:
    """Let a generation answer no more, and its interval wait for a build if it knows decisions."""
    decided = any(each.number <= lost.cut and decides(each.names, at, bounds) for each in state.log)
    taken = max([state.e, *(each.last for each in state.pieces)])
    was_served = lost == state.served[at]
    if was_served and decided and bounds.gated and rules.floor_for_lost:
        state = state._replace(floors=put(state.floors, at, taken))
    return state._replace(
        served=put(state.served, at, None) if was_served else state.served,
        older=put(state.older, at, None) if was_served or lost == state.older[at] else state.older,
        history=put(state.history, at, tuple(each for each in state.history[at] if each != lost)),
    )


def forgets(state: State, at: int, older: Built, bounds: Bounds) -> bool:
    """Return whether an older generation does not know a decision that the newer one does."""
    return any(
        older.cut < each.number <= state.cut(at) and decides(each.names, at, bounds) for each in state.log
    )


def built(state: State, at: int, cut: int, rules: Rules, bounds: Bounds) -> Built:
    """Build an interval from the master."""
    join = bounds.join
    decisions = named(state.log, cut) if rules.named_at_cut else frozenset(state.decided)
    rows = [row for _, row in counted(state.log, join, cut, decisions)]
    if not rules.own_cut:
        rows = [row for row in rows if row.at == at]
        for other in (each for each in range(join.intervals + 1) if each != at):
            theirs = state.cut(other) if other < join.intervals else NONE
            theirs = cut if theirs == NONE else theirs
            rows += [row for _, row in counted(state.log, join, theirs, decisions) if row.at == other]
    if not rules.flags_count:
        rows += [join.topic[id] for each in state.log if each.number <= cut for id in each.flagged]
    if not rules.both_layers:
        rows = [
            row for place, row in enumerate(rows) if row.event not in [each.event for each in rows[:place]]
        ]
    green = certified(state, at, cut, rules, bounds)
    return Built(cut, joined(tuple(rows), join)[at], green, state.e)


def upkeep(state: State, rules: Rules, bounds: Bounds) -> Moves:
    """Raise floors and delete slices; merge those between edges."""
    for at in range(bounds.join.intervals):
        cut = state.cut(at)
        if left_of(state, bounds, "floors") and cut > state.floors[at]:
            clean = [at] if rules.own_floor else range(bounds.join.intervals)
            pieces = tuple(without(each, clean, cut) for each in state.pieces)
            after = state._replace(
                floors=put(state.floors, at, cut), pieces=pieces, older=put(state.older, at, None)
            )
            yield f"slices of {at} are deleted up to {cut}", spend(after, "floors")
    if left_of(state, bounds, "merges"):
        yield from merges(state, rules, bounds)


def without(piece: Piece, intervals: Iterable[int], until: int) -> Piece:
    """Take intervals out of a piece that is at or below a floor."""
    if piece.last > until:
        return piece
    for at in intervals:
        piece = piece._replace(added=put(piece.added, at, ()), gone=put(piece.gone, at, ()))
    return piece


def merges(state: State, rules: Rules, bounds: Bounds) -> Moves:
    """Join the slices of neighbouring epochs up to an edge; none goes over a decision's epoch."""
    numbers = [each.number for each in state.log if each.number <= state.w]
    edges = [each.number for each in state.log if each.edge]
    naming = [each.number for each in state.log if each.names]
    for last in (each for each in edges if each in numbers):
        after = max([NONE, *(each for each in edges if each < last)])
        inside = [each for each in state.pieces if after < each.first and each.last <= last]
        inside = [each for each in inside if each.block or each.last in numbers]
        if rules.ends_before and any(
            each.first < s <= each.last or s == last for s in naming for each in inside
        ):
            continue
        if len(inside) > 1:
            one = Piece(
                min(each.first for each in inside),
                last,
                together([each.added for each in inside], bounds.join),
                together([each.gone for each in inside], bounds.join),
                block=True,
            )
            kept = tuple(each for each in state.pieces if each not in inside)
            yield f"slices up to {last} are merged", spend(state._replace(pieces=(*kept, one)), "merges")
