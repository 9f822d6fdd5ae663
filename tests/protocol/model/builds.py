"""Builds, publishing, rollbacks, forgetting, flips and corrected look-ups: the batch layer and its manifest."""

from __future__ import annotations

from functools import cache

from tests.protocol.model.rules import Bounds, Rules
from tests.protocol.model.state import DAYS, NOW, VIEWS, Book, Build, Generation, Held, State, spend
from tests.protocol.model.writers import Moves

from seamline.model.errors import Conflict, PublishRefused
from seamline.model.protocol.manifest import Act, Statement
from seamline.model.protocol.manifest import Generation as Stated
from seamline.model.protocol.seam import NOTHING
from seamline.plan.publish.publication import Candidate, Decision, plan_flip, plan_publication

BACK = Decision("somebody", "it was better", rollback=True)


def moves(state: State, rules: Rules, bounds: Bounds) -> Moves:
    """Return what builds and people may do next."""
    if state.spent.builds < bounds.builds and state.master.epochs:
        yield from begins(state, rules, bounds)
    yield from publications(state, rules)
    if state.spent.rollbacks < bounds.rollbacks:
        yield from rollbacks(state, rules)
    yield from retention(state, bounds)
    if state.spent.flips < bounds.flips:
        for view in range(bounds.views):
            book = flipped(state.book, view, state.master.epochs, rules, bounds)
            if book not in (None, state.book):
                yield f"flip to {VIEWS[view]}", spend(state._replace(book=book), "flips")
    if state.spent.lookups < bounds.lookups:
        yield "the look-up is corrected", spend(state, "lookups")


def publications(state: State, rules: Rules) -> Moves:
    """Publish what was built, or be refused."""
    for at, build in enumerate(state.builds):
        rest = state._replace(builds=(*state.builds[:at], *state.builds[at + 1 :]))
        book = published(state.book, build.generation, build.expected, None, rules)
        if book is None:
            yield f"publishing {build.generation.id} is refused", rest
        else:
            yield f"{build.generation.id} is published", rest._replace(book=book)


def rollbacks(state: State, rules: Rules) -> Moves:
    """Serve another generation of a day than the one that is served."""
    for generation in state.generations:
        view, interval, id = named(generation)
        current = state.book.manifest.published.get((view, interval))
        if current and current.generation != id:
            book = published(state.book, generation, current.generation, BACK, rules)
            if book is not None:
                yield f"rollback to {id}", spend(state._replace(book=book), "rollbacks")


def retention(state: State, bounds: Bounds) -> Moves:
    """Forget a generation that was replaced, and delete what is forgotten."""
    manifest = state.book.manifest
    for generation in state.generations:
        view, interval, id = named(generation)
        history = [each.generation for each in manifest.history.get((view, interval), ())]
        if state.spent.forgets < bounds.forgets and id in history and id != history[-1]:
            book = forgotten(state.book, generation)
            yield f"{id} is forgotten", spend(state._replace(book=book), "forgets")
    kept = tuple(each for each in state.generations if named(each) not in manifest.forgotten)
    if kept != state.generations:
        yield "forgotten generations are deleted", state._replace(generations=kept)


def named(generation: Generation) -> tuple[str, str, str]:
    """Return a generation's name in the manifest."""
    return VIEWS[generation.view], DAYS[generation.day].id, generation.id


def begins(state: State, rules: Rules, bounds: Bounds) -> Moves:
    """Build a day from the master at the newest edge and commit the generation, which nobody names yet."""
    epochs, manifest = state.master.epochs, state.book.manifest
    edges = [each.number for each in epochs if each.edge]
    cut = max(edges, default=NOTHING) if rules.cuts_on_edges else epochs[-1].number
    if cut == NOTHING:
        return
    for view in range(bounds.views):
        if VIEWS[view] not in manifest.births:
            continue
        for day in bounds.days:
            current = manifest.published.get((VIEWS[view], DAYS[day].id))
            if current and current.epoch >= cut:
                continue
            rows = states(epochs, day, cut, state.spent.lookups, rules, bounds)
            id = f"g{state.spent.builds}" if rules.unique_ids else f"g{cut}"
            made = Generation(id, view, day, cut, rows)
            build = Build(made, current.generation if current else "")
            yield (
                f"{id} of day {day} is built at {cut}",
                spend(
                    state._replace(
                        generations=tuple(sorted([*state.generations, made])),
                        builds=tuple(sorted([*state.builds, build])),
                    ),
                    "builds",
                ),
            )


@cache
def states(
    epochs: tuple[Held, ...], day: int, cut: int, lookup: int, rules: Rules, bounds: Bounds
) -> tuple[int, ...]:
    """Return the rows that a build counts: of each event id the first, by the look-up as each epoch had it."""
    found: dict[int, int] = {}
    for each in epochs:
        if each.number > cut:
            continue
        version = each.lookup if rules.pins_lookups else lookup
        for row in bounds.accepted(each.start, each.end, version):
            if bounds.day(row) == day and (bounds.id(row) not in found or not rules.first_wins):
                found[bounds.id(row)] = row
    return tuple(sorted(found.values()))


@cache
def published(
    book: Book, generation: Generation, expected: str, decision: Decision | None, rules: Rules
) -> Book | None:
    """Decide as shipped, on the newest manifest, and commit; None where that is refused."""
    view, interval, id = named(generation)
    current = book.manifest.published.get((view, interval))
    stated = Stated(id, view, DAYS[generation.day], generation.cut, len(generation.rows))
    if not rules.cas:
        expected = current.generation if current else ""
    if not rules.keeps_cut and decision is None:
        decision = BACK
    try:
        statements = plan_publication(
            book.manifest, [Candidate(stated, True, expected)], now=NOW, decision=decision
        )
    except Conflict:
        return None
    except PublishRefused:
        if rules.keeps_floor or generation.cut >= book.manifest.floor(view, interval):
            return None
        facts = {"interval": interval, "generation": id, "rows": stated.rows, "certified": True}
        statements = [Statement(Act.PUBLISH, view, epoch=generation.cut, **facts)]  # type: ignore[arg-type]
    return book.plus(statements)


@cache
def forgotten(book: Book, generation: Generation) -> Book:
    """Let the manifest forget a generation, before anything of it is deleted."""
    view, interval, id = named(generation)
    return book.plus([Statement(Act.FORGET, view, interval=interval, generation=id, at=NOW)])


@cache
def flipped(book: Book, view: int, epochs: tuple[Held, ...], rules: Rules, bounds: Bounds) -> Book | None:
    """Serve another version, as the shipped decision says; None where that is refused."""
    births = book.manifest.births
    if not rules.flips_checked:
        served = book.manifest.serving["v"] == VIEWS[view]
        return book if served or VIEWS[view] not in births else book.plus([Statement(Act.FLIP, VIEWS[view])])
    last = epochs[-1].frontiers if epochs else (NOTHING, NOTHING)
    filled = {bounds.day(row) for each in epochs for row in bounds.accepted(each.start, each.end)}
    try:
        statements = plan_flip(
            book.manifest,
            "v",
            VIEWS[view],
            intervals_with_rows=[DAYS[day].id for day in filled],
            frontiers={
                VIEWS[at]: max(last[at], births[VIEWS[at]] - 1) for at in (0, 1) if VIEWS[at] in births
            },
            now=NOW,
        )
    except PublishRefused:
        return None
    return book.plus(statements)
