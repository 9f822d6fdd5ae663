"""Readers and the oracle: what an answer counts, what it must count, and what it says it is correct to."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from tests.protocol.model.rules import Bounds, Rules
from tests.protocol.model.state import (
    DAYS,
    NOW,
    VIEWS,
    Book,
    Generation,
    Held,
    Piece,
    Quarantine,
    Reader,
    State,
    Violation,
    known,
    spend,
)
from tests.protocol.model.writers import Moves

from seamline.model.protocol.seam import NOTHING, Slice, list_seam_slices

RETRY = "retry"
BUILDING = "building"


class Answer(NamedTuple):
    """What is answered of a day: its rows, and the epoch that it is correct to."""

    rows: tuple[int, ...]
    claim: int


def until_of(epochs: tuple[Held, ...], view: int, book: Book, rules: Rules) -> int:
    """Return the last epoch whose slices count: min(E, W)."""
    if not epochs:
        return NOTHING
    birth = book.manifest.births.get(VIEWS[view], NOTHING)
    frontier = max(epochs[-1].frontiers[view], birth - 1)
    return min(epochs[-1].number, frontier) if rules.counts_to_frontier else epochs[-1].number


@cache
def answered(
    epochs: tuple[Held, ...],
    held: tuple[int, ...],
    pieces: tuple[Piece, ...],
    book: Book,
    generations: tuple[Generation, ...],
    view: int,
    day: int,
    rules: Rules,
    bounds: Bounds,
) -> Answer | str:
    """Answer for a day from four pins, as the shipped read does; RETRY where they do not fit together."""
    manifest, name, interval = book.manifest, VIEWS[view], DAYS[day].id
    if manifest.is_building(name, interval):
        return BUILDING
    until, cut = until_of(epochs, view, book, rules), manifest.cut(name, interval)
    rows: list[int] = []
    if statement := manifest.published.get((name, interval)):
        found = [
            each
            for each in generations
            if (each.id, each.view, each.day) == (statement.generation, view, day)
        ]
        rows = [row for each in found for row in each.rows]
        if len(rows) != statement.rows and rules.whole:
            return RETRY
    slices = []
    for piece in pieces:
        alive = piece.last in held or piece.last > until or not rules.held_only
        if alive and piece.last > cut and piece.first <= until < piece.last:
            return RETRY
        own = tuple(row for row in piece.rows if bounds.day(row) == day)
        if alive and own:
            slices.append(Slice((), NOW, piece.first, piece.last, len(own), own))
    rows += [row for piece in list_seam_slices(slices, cut=cut, until=until) for row in piece.states]
    return Answer(tuple(sorted(rows)), max(cut, until))


@cache
def expected(epochs: tuple[Held, ...], day: int, cut: int, claim: int, bounds: Bounds) -> tuple[int, ...]:
    """Return the oracle's rows: up to the cut each event id's first, above it every one, up to the claim."""
    found: dict[int, int] = {}
    above = []
    for each in epochs:
        for row in bounds.accepted(each.start, each.end, each.lookup):
            if bounds.day(row) == day and each.number <= cut:
                found.setdefault(bounds.id(row), row)
            elif bounds.day(row) == day and each.number <= claim:
                above.append(row)
    return tuple(sorted([*found.values(), *above]))


@cache
def judge(
    log: tuple[Held, ...],
    epochs: tuple[Held, ...],
    held: tuple[int, ...],
    pieces: tuple[Piece, ...],
    book: Book,
    generations: tuple[Generation, ...],
    view: int,
    settled: bool,
    rules: Rules,
    bounds: Bounds,
) -> tuple[int, ...] | str:
    """Compare an answer from pins with the oracle, day by day, and give what it says it is correct to.

    NOTHING - 1 stands for no answer. RETRY where the pins do not fit together; for pins of one instant
    (``settled``) that is a violation, for then no read will ever succeed.
    """
    claims = []
    for day in bounds.days:
        found = answered(epochs, held, pieces, book, generations, view, day, rules, bounds)
        if found == RETRY and settled:
            raise Violation(f"day {day} can never be read")
        if isinstance(found, str):
            if found == RETRY:
                return RETRY
            claims.append(NOTHING - 1)
            continue
        cut = book.manifest.cut(VIEWS[view], DAYS[day].id)
        wanted = expected(log, day, cut, found.claim, bounds)
        if found.rows != wanted:
            raise Violation(f"day {day} answers {found.rows} up to epoch {found.claim}, and has {wanted}")
        claims.append(found.claim)
    if not rules.states_least and claims and max(claims) > min(claims):
        stated = max(claims)
        for day, claim in zip(bounds.days, claims, strict=True):
            cut = max(claim, NOTHING)
            if expected(log, day, cut, stated, bounds) != expected(log, day, cut, claim, bounds):
                raise Violation(f"a window over both days says {stated}, and day {day} is at {claim}")
    return tuple(claims)


def serving(book: Book) -> int:
    """Return the version that is served."""
    return VIEWS.index(book.manifest.serving["v"])


def claims_of(state: State, rules: Rules, bounds: Bounds) -> tuple[int, ...] | str:
    """Judge every live version's answer at this instant; give what the served one claims."""
    epochs, book = state.master.epochs, state.book
    claims: tuple[int, ...] | str = ()
    for view, slices in enumerate(state.slices):
        if VIEWS[view] in book.manifest.births:
            held = known(state, rules.looks_back)
            found = judge(
                epochs, epochs, held, slices.pieces, book, state.generations, view, True, rules, bounds
            )
            claims = found if view == serving(book) else claims
    return claims


def moves(state: State, rules: Rules, bounds: Bounds) -> Moves:
    """Pin the next thing; with the last pin answer, and be judged by the log as it is by then."""
    reader = state.reader
    if reader.step == 0:
        if state.spent.reads >= bounds.reads:
            return
        state = spend(state, "reads")
        reader = reader._replace(view=serving(state.book))
    match rules.pins[reader.step]:
        case "log":
            reader = reader._replace(epochs=state.master.epochs, known=known(state, rules.looks_back))
        case "slices":
            reader = reader._replace(pieces=state.slices[reader.view].pieces)
        case "manifest":
            if serving(state.book) != reader.view:
                yield "reader begins again", state._replace(reader=Reader(claims=reader.claims))
                return
            reader = reader._replace(book=state.book)
        case _:
            reader = reader._replace(generations=state.generations)
    reader = reader._replace(step=reader.step + 1)
    if reader.step < len(rules.pins):
        yield f"reader pins {rules.pins[reader.step - 1]}", state._replace(reader=reader)
        return
    assert reader.book
    found = judge(
        state.master.epochs,
        reader.epochs,
        reader.known,
        reader.pieces,
        reader.book,
        reader.generations,
        reader.view,
        False,
        rules,
        bounds,
    )
    if isinstance(found, str):
        yield "reader begins again", state._replace(reader=Reader(claims=reader.claims))
        return
    if not state.spent.rollbacks and any(new < old for new, old in zip(found, reader.claims, strict=False)):
        raise Violation(f"a reader was told {reader.claims}, and then {found}")
    yield "reader answers", state._replace(reader=Reader(claims=found))


@cache
def sound(log: tuple[Held, ...], quarantine: Quarantine, bounds: Bounds) -> None:
    """Check the log: epochs rise and join, and every offset is in master or quarantine once (invariant 1)."""
    end = 0
    last = NOTHING
    for held in log:
        if held.number <= last:
            raise Violation(f"epoch {held.number} is held after {last}")
        if held.start != end:
            raise Violation(f"epoch {held.number} begins at {held.start}, the last ended at {end}")
        if any(frontier > held.number for frontier in held.frontiers):
            raise Violation(f"a frontier is above E: {held}")
        end, last = held.end, held.number
    numbers = {held.number for held in log}
    refused = sorted(at for number, offsets in quarantine.files if number in numbers for at in offsets)
    if tuple(refused) != bounds.refused(0, end):
        raise Violation(f"the quarantine has {refused} of {bounds.refused(0, end)}")


@cache
def kept(book: Book, epochs: tuple[Held, ...]) -> None:
    """Check the manifest: what is served is not below its floor, and its cut is an edge (invariants 4 and 5)."""
    edges = {each.number for each in epochs if each.edge}
    for place, statement in book.manifest.published.items():
        if statement.epoch < book.manifest.floor(*place):
            raise Violation(f"{place} is served at {statement.epoch}, below its floor")
        if statement.epoch not in edges:
            raise Violation(f"{place} is served at {statement.epoch}, which is no edge")
