"""Upkeep: dead epochs are taken out, slices joined between edges, and deleted up to their interval's floor."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from tests.protocol.model.rules import Bounds, Rules
from tests.protocol.model.state import (
    DAYS,
    NOW,
    QUARANTINE,
    SLICES,
    VIEWS,
    Book,
    Held,
    Piece,
    State,
    Upkeep,
    put,
    spend,
    told,
)
from tests.protocol.model.writers import Moves

from seamline.model.protocol.manifest import Act, Manifest, Statement
from seamline.plan.maintain.slice_upkeep import Block, blocks_between, plan_compaction
from seamline.plan.maintain.slice_upkeep import CommittedEpochs as Known
from seamline.plan.maintain.slice_upkeep import Piece as File


@dataclass(frozen=True)
class Hasty(Known):
    """The draft's idea of dead: not in the master."""

    def dead(self, number: int) -> bool:
        return number not in self.numbers


def moves(state: State, rules: Rules, bounds: Bounds) -> Moves:
    """Return what upkeep may do next: see the log, then decide on a table's version, then commit."""
    if state.spent.upkeeps < bounds.upkeeps and state.master.epochs:
        seen = Upkeep("log", state.master.epochs, told(state))
        yield "upkeep sees the log", spend(placed(state, None, seen), "upkeeps")
    for at, upkeep in enumerate(state.upkeeps):
        rest = placed(state, at, None)
        if upkeep.at == "log":
            for target in (*SLICES[: bounds.views], QUARANTINE):
                if (decided := decide(state, upkeep, target, rules)) is not None:
                    yield f"upkeep plans {target}", placed(state, at, decided)
        elif upkeep.target == QUARANTINE:
            known = log_of(upkeep.epochs, upkeep.told, rules)
            files = tuple(file for file in state.quarantine.files if not known.dead(file[0]))
            yield "upkeep buries", put(rest, QUARANTINE, state.quarantine._replace(files=files))
        else:
            slices = state.slices[SLICES.index(upkeep.target)]
            if rules.upkeep_decides and slices.upkept != upkeep.base:
                yield "upkeep is refused", rest
                continue
            kept = list(slices.pieces)
            for piece in upkeep.gone:
                if piece in kept:
                    kept.remove(piece)
            pieces = tuple(sorted([*kept, *upkeep.new]))
            new = slices._replace(pieces=pieces, upkept=slices.upkept + 1)
            yield f"upkeep replaces {upkeep.gone} by {upkeep.new}", put(rest, upkeep.target, new)
    yield from floors(state, rules, bounds)


def placed(state: State, at: int | None, upkeep: Upkeep | None) -> State:
    """Put an upkeep in a place, or take it out; their order means nothing."""
    others = [each for place, each in enumerate(state.upkeeps) if place != at]
    return state._replace(upkeeps=tuple(sorted([*others, *([upkeep] if upkeep else [])])))


@cache
def log_of(epochs: tuple[Held, ...], more: tuple[int, ...], rules: Rules) -> Known:
    """Return the log as upkeep knows it."""
    numbers = frozenset([*more, *(each.number for each in epochs)])
    edges = tuple(each.number for each in epochs if each.edge)
    return (Known if rules.dead_below else Hasty)(numbers, edges, epochs[-1].number)


def decide(state: State, upkeep: Upkeep, target: str, rules: Rules) -> Upkeep | None:
    """Plan on a table's version now; None where there is nothing to do."""
    known = log_of(upkeep.epochs, upkeep.told, rules)
    if target == QUARANTINE:
        if any(known.dead(number) for number, _ in state.quarantine.files):
            return upkeep._replace(at="commit", target=target)
        return None
    view = SLICES.index(target)
    slices = state.slices[view]
    gone, new = compaction(slices.pieces, known, blocks(upkeep.epochs, state.book, view, rules))
    return (
        upkeep._replace(at="commit", target=target, gone=gone, new=new, base=slices.upkept) if gone else None
    )


@cache
def blocks(epochs: tuple[Held, ...], book: Book, view: int, rules: Rules) -> tuple[Block, ...]:
    """List the blocks within which slices may be joined, as the shipped upkeep bounds them."""
    manifest: Manifest = book.manifest
    until = epochs[-1].frontiers[view] if rules.joins_to_frontier else epochs[-1].number
    if not rules.joins_between_edges:
        return (Block(0, until),) if until >= 0 else ()
    name = VIEWS[view]
    own = [floor for (id, _), floor in manifest.floors.items() if id == name]
    cuts = [each.epoch for (id, _), some in manifest.history.items() if id == name for each in some]
    edges = [each.number for each in epochs if each.edge]
    return tuple(blocks_between([*edges, *own, *cuts, manifest.births.get(name, 0) - 1], until=until))


@cache
def compaction(
    pieces: tuple[Piece, ...], known: Known, within: tuple[Block, ...]
) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    """Ask the shipped plan, and do what the shipped compaction does: drop rows of epochs that are not held."""
    files = [File(str(at), 1, piece.first, piece.last) for at, piece in enumerate(pieces)]
    plan = plan_compaction(files, known, within)
    gone = [*plan.dead, *(file for merge in plan.merges for file in merge.pieces)]
    new = []
    for merge in plan.merges:
        own = [pieces[int(file.path)] for file in merge.pieces]
        alive = [piece for piece in own if piece.last in known.numbers]
        for block in merge.blocks:
            rows = [
                row
                for piece in alive
                if block.first <= piece.first and piece.last <= block.last
                for row in piece.rows
            ]
            if rows:
                new.append(Piece(block.first, block.last, tuple(sorted(rows))))
    return tuple(pieces[int(file.path)] for file in gone), tuple(new)


def floors(state: State, rules: Rules, bounds: Bounds) -> Moves:
    """Raise an interval's floor to its cut, in one commit; delete slices up to floors."""
    manifest = state.book.manifest
    for (view, interval), statement in manifest.published.items():
        if state.spent.floors < bounds.floors and statement.epoch > manifest.floor(view, interval):
            raised = Statement(Act.FLOOR, view, epoch=statement.epoch, interval=interval, at=NOW)
            yield (
                f"floor of {interval[:10]} rises to {statement.epoch}",
                spend(state._replace(book=risen(state.book, raised)), "floors"),
            )
    for view, slices in enumerate(state.slices):
        pieces = left(slices.pieces, state.book, view, rules, bounds)
        if pieces != slices.pieces:
            kept = slices._replace(pieces=pieces, upkept=slices.upkept + 1)
            yield f"slices of view {view} are deleted", put(state, SLICES[view], kept)


@cache
def risen(book: Book, statement: Statement) -> Book:
    """Commit one statement."""
    return book.plus([statement])


@cache
def left(pieces: tuple[Piece, ...], book: Book, view: int, rules: Rules, bounds: Bounds) -> tuple[Piece, ...]:
    """Return the slices that stay: those above the floor of their interval."""
    manifest, name = book.manifest, VIEWS[view]
    gone = {day: manifest.floors.get((name, DAYS[day].id), -1) for day in bounds.days}
    if bounds.floors and not rules.floor_first:
        gone = {day: max(low, manifest.cut(name, DAYS[day].id)) for day, low in gone.items()}
    if bounds.floors and not rules.floors and manifest.published:
        gone = dict.fromkeys(bounds.days, min(each.epoch for each in manifest.published.values()))
    kept = []
    for piece in pieces:
        rows = tuple(row for row in piece.rows if piece.last > gone[bounds.day(row)])
        if rows:
            kept.append(piece._replace(rows=rows))
    return tuple(kept)
