"""The drivers: taking the tables over, one epoch after another, and every way to die between two commits.

A step is one commit of one table: what a driver does between two commits touches nothing that others see, so it is
done with the next commit. Planning and taking a number are such; so is taking the lease, which a driver whose token
is too old only learns at its first fence.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from tests.protocol.model.rules import Bounds, Rules
from tests.protocol.model.state import (
    DAYS,
    LEDGER,
    MASTER,
    NOW,
    QUARANTINE,
    SLICES,
    VIEWS,
    Book,
    Held,
    Late,
    Ledger,
    Master,
    Piece,
    Plan,
    Quarantine,
    Slices,
    State,
    Violation,
    Writer,
    known,
    looked_back,
    put,
    spend,
    table,
)

from seamline.model.errors import OffsetGap
from seamline.model.protocol.offsets import Lane, OffsetRange, advance_vector
from seamline.model.protocol.seam import NOTHING
from seamline.plan.publish.publication import plan_births
from seamline.plan.stream.epoch_numbers import Checkpoint, Resume, decide_start_position, next_number

LANE = Lane("t", 0)
Moves = Iterator[tuple[str, State]]


def moves(state: State, rules: Rules, bounds: Bounds) -> Moves:
    """Return what any of the drivers may do next."""
    yield from landings(state)
    started = False
    for at, writer in enumerate(state.writers):
        if writer.at == "off":
            # All that are off are alike.
            if not started and state.spent.tokens < bounds.tokens:
                started = True
                yield from starts(state, at, rules, bounds)
            continue
        if bounds.crashes:
            yield f"{writer.token} dies", placed(state, at, Writer())
        match writer.at:
            case "fence":
                yield from fences(state, at, rules, bounds)
            case "repair":
                yield from repairs(state, at, rules, bounds)
            case "ready":
                yield from begins(state, at, rules, bounds)
            case "commit":
                yield from commits(state, at, rules, bounds)


def landings(state: State) -> Moves:
    """Let a commit land of which its driver was told that it failed; a driver that still lives has not seen it."""
    for late in state.late:
        landed = put(state, late.name, late.after)
        for at, writer in enumerate(state.writers):
            if writer.token == late.token:
                landed = placed(landed, at, writer._replace(stale=(*writer.stale, late.name)))
        yield f"what {late.token} sent to {late.name} lands late", landed


def placed(state: State, at: int, writer: Writer) -> State:
    """Put a driver in its place."""
    return state._replace(writers=(*state.writers[:at], writer, *state.writers[at + 1 :]))


def tables(bounds: Bounds) -> tuple[str, ...]:
    """List what a start takes over, in the order of the shipped writer; births come before slices."""
    return (MASTER, QUARANTINE, LEDGER, *(["births"] if bounds.views > 1 else []), *SLICES[: bounds.views])


def starts(state: State, at: int, rules: Rules, bounds: Bounds) -> Moves:
    """Take the lease: its holder may be thought dead at any time, so only its token protects."""
    seen = (
        NOTHING
        if rules.looks_after
        else next_number([table(state, name).number for name in tables(bounds) if name != "births"]) - 1
    )
    token = state.spent.tokens + 1
    for edited in (False, True)[: bounds.views]:
        fresh = Writer("fence", token, number=seen, frontiers=(NOTHING,) * bounds.views, edited=edited)
        for label, after in fences(spend(placed(state, at, fresh), "tokens"), at, rules, bounds):
            yield f"{token} starts{' edited' if edited else ''}, {label}", after


def guarded(name: str, rules: Rules) -> bool:
    """Return whether commits to a table carry the token."""
    return rules.fenced == "all" or (rules.fenced == "master" and name == MASTER)


def fences(state: State, at: int, rules: Rules, bounds: Bounds) -> Moves:
    """Take the next table over and see what it holds."""
    writer = state.writers[at]
    order = tables(bounds)
    name = order[writer.step]
    if name == "births":
        book = births(state.book, writer.edited, writer.epoch, filled(state.master, bounds), rules)
        state = state._replace(book=book)
    else:
        held = table(state, name)
        if guarded(name, rules):
            if held.token >= writer.token:
                yield f"{writer.token} is refused by {name}", placed(state, at, Writer())
                return
            state = put(state, name, fenced(held, writer.token, counts=rules.looks_back is not None))
        if rules.looks_after:
            writer = writer._replace(number=max(writer.number, held.number))
    if name == MASTER:
        writer = writer._replace(epoch=state.master.number, end=state.master.end)
    if name in SLICES:
        view = SLICES.index(name)
        birth = state.book.manifest.births.get(VIEWS[view])
        known = NOTHING if birth is None else max(state.master.frontier(view), birth - 1)
        if not rules.births and known == NOTHING:
            known = writer.epoch
        frontiers = (*writer.frontiers[:view], known, *writer.frontiers[view + 1 :])
        writer = writer._replace(frontiers=frontiers)
    step = writer.step + 1
    if step < len(order):
        yield f"{writer.token} takes {name}", placed(state, at, writer._replace(step=step))
        return
    for start in reads_from(state, writer, rules, bounds):
        done = writer._replace(at="repair", step=0, position=start)
        yield f"{writer.token} takes {name}", settled(placed(state, at, done), at, rules)


def fenced(held: Master | Quarantine | Ledger | Slices, token: int, *, counts: bool) -> object:
    """Return a table taken over; the master ``counts`` how often where that matters."""
    if isinstance(held, Master) and counts:
        return held._replace(token=token, fences=held.fences + 1)
    return held._replace(token=token)


@cache
def births(book: Book, edited: bool, held: int, filled: str, rules: Rules) -> Book:
    """Record the birth of the version that a definition declares, as the shipped decision says."""
    view = VIEWS[edited]
    statements = plan_births(
        book.manifest, {view: ""}, held=held if rules.births else NOTHING, now=NOW, filled=filled
    )
    return book.plus(statements) if statements else book


@cache
def filled(master: Master, bounds: Bounds) -> str:
    """Return the last day that has rows."""
    days = [bounds.day(row) for held in master.epochs for row in bounds.accepted(held.start, held.end)]
    return DAYS[max(days)].id if days else ""


def reads_from(state: State, writer: Writer, rules: Rules, bounds: Bounds) -> set[int]:
    """Return where a start may read from, whatever became of Spark's checkpoint."""
    match rules.position:
        case "ledger":
            known = state.ledger.numbers
            return {next((held.end for held in reversed(state.master.epochs) if held.number in known), 0)}
        case "checkpoint":
            return set(range(len(bounds.topic) + 1))
        case "latest":
            return set(range(writer.end, len(bounds.topic) + 1))
    return resumed(writer.end, len(bounds.topic))


@cache
def resumed(end: int, size: int) -> set[int]:
    """Ask the shipped decision for every checkpoint that there may be: none, behind, ahead, half-written."""
    ends = {"t": {0: end}} if end else {}
    found = set()
    for seen in (None, *range(size + 1)):
        for finished in (0, 1):
            checkpoint = None if seen is None else Checkpoint(1, finished, {"t": {0: seen}})
            decision = decide_start_position(ends, checkpoint)
            assert checkpoint or not isinstance(decision, Resume)
            offsets = checkpoint.ends if checkpoint and isinstance(decision, Resume) else ends
            found.add(offsets.get("t", {}).get(0, 0))
    return found


def settled(state: State, at: int, rules: Rules) -> State:
    """Let a driver that has nothing to repair be ready."""
    if set(looked_back(state, rules.looks_back)) - set(state.ledger.numbers) and rules.repairs_ledger:
        return state
    return placed(state, at, state.writers[at]._replace(at="ready"))


def repairs(state: State, at: int, rules: Rules, bounds: Bounds) -> Moves:
    """Add to the ledger what the master holds."""
    writer = state.writers[at]
    if lost(state, writer, LEDGER, rules):
        yield f"{writer.token} is fenced off", placed(state, at, Writer())
        return
    if meets_itself(writer, LEDGER, rules):
        yield f"{writer.token} meets itself in {LEDGER}", looks_anew(state, at, rules)
        return
    numbers = known(state, rules.looks_back)
    done = put(state, LEDGER, state.ledger._replace(numbers=numbers))
    yield f"{writer.token} repairs the ledger", placed(done, at, writer._replace(at="ready"))


def lost(state: State, writer: Writer, name: str, rules: Rules) -> bool:
    """Return whether a driver's commit is refused: for a newer token."""
    return guarded(name, rules) and table(state, name).token != writer.token


def meets_itself(writer: Writer, name: str, rules: Rules) -> bool:
    """Return whether a driver's commit meets one of its own that it has not seen."""
    if not guarded(name, rules) or name not in writer.stale:
        return False
    if not rules.settles:
        raise Violation(
            f"{writer.token} takes its own commit to {name} for that of a newer driver, and there is none"
        )
    return True


def looks_anew(state: State, at: int, rules: Rules) -> State:
    """Let a driver read all its tables again, and go on where the master ends."""
    writer = state.writers[at]
    frontiers = tuple(max(own, state.master.frontier(view)) for view, own in enumerate(writer.frontiers))
    seen = writer._replace(
        at="repair",
        plan=None,
        epoch=state.master.number,
        end=state.master.end,
        position=state.master.end,
        frontiers=frontiers,
        stale=(),
    )
    return settled(placed(state, at, seen), at, rules)


def runs(state: State, writer: Writer, view: int, rules: Rules) -> bool:
    """Return whether a driver feeds a version: all that are live, or the definition's own alone."""
    live = VIEWS[view] in state.book.manifest.births
    return live and (rules.runs_live or view == int(writer.edited))


def begins(state: State, at: int, rules: Rules, bounds: Bounds) -> Moves:
    """Catch a view up, begin an epoch with its first commit, or stop."""
    writer = state.writers[at]
    yield from catch_ups(state, at, rules, bounds)
    number = next_of(writer, rules)
    if number >= bounds.numbers:
        return
    size = len(bounds.topic)
    for end in range(writer.position + 1, min(size, writer.position + bounds.takes) + 1):
        yield from planned(state, at, number, end, rules, bounds)
    if bounds.stops:
        if not state.master.epochs or state.master.epochs[-1].edge:
            yield f"{writer.token} stops", placed(state, at, Writer())
        elif rules.edge_at_stop:
            yield from planned(state, at, number, writer.position, rules, bounds, last=True)
        else:
            raise Violation("a stopped stream keeps epochs that no cut may ever reach")


def next_of(writer: Writer, rules: Rules) -> int:
    """Return the number of the next attempt."""
    return (writer.number if rules.new_number else writer.epoch) + 1


def catch_ups(state: State, at: int, rules: Rules, bounds: Bounds) -> Moves:
    """Catch any view up that is behind."""
    writer = state.writers[at]
    for view in range(bounds.views):
        if writer.frontiers[view] < writer.epoch and runs(state, writer, view, rules):
            yield from catches_up(state, at, view, rules, bounds)


def planned(
    state: State, at: int, number: int, end: int, rules: Rules, bounds: Bounds, *, last: bool = False
) -> Moves:
    """Plan an epoch and do its first commit."""
    writer = state.writers[at]
    start = writer.position
    fine = tuple(
        view
        for view in range(bounds.views)
        if runs(state, writer, view, rules) and (writer.frontiers[view] == writer.epoch or not rules.in_order)
    )
    todo: list[str] = []
    for what in rules.order:
        match what:
            case "slices":
                todo += [SLICES[view] for view in fine if bounds.accepted(start, end)]
            case "quarantine":
                todo += [what] if bounds.refused(start, end) else []
            case _:
                todo.append(what)
    edge = last or number % 2 == 1
    plan = Plan(number, start, end, edge, tuple(todo), fine, state.spent.lookups, last)
    begun = writer._replace(at="commit", number=max(number, writer.number), plan=plan)
    yield from commits(placed(state, at, begun), at, rules, bounds)


def commits(state: State, at: int, rules: Rules, bounds: Bounds) -> Moves:
    """Do the next commit of an epoch; it may fail, or land without an answer."""
    writer = state.writers[at]
    plan = writer.plan
    assert plan
    name = plan.todo[0]
    label = f"{writer.token} commits {plan.number} [{plan.start},{plan.end}) to {name}"
    if lost(state, writer, name, rules):
        yield f"{label}: fenced off", placed(state, at, Writer())
        return
    if meets_itself(writer, name, rules):
        yield f"{label}: meets itself", gives_up(state, at, name, rules)
        return
    if name == MASTER and (why := refusal(state, writer, plan, rules)):
        yield f"{label}: {why}", placed(state, at, Writer())
        return
    landed = put(state, name, written(state, name, writer, plan, bounds))
    yield label, placed(landed, at, after(writer, name, plan))
    if state.spent.mishaps < bounds.mishaps:
        late = Late(name, writer.token, table(state, name), table(landed, name))
        sent = spend(state._replace(late=(*state.late, late)), "mishaps")
        unknown = [("fails", spend(state, "mishaps"))]
        if name in SLICES or not rules.insists:
            unknown += [
                ("without an answer", unseen(spend(landed, "mishaps"), at, name)),
                ("is on its way", sent),
            ]
        for note, world in unknown:
            yield f"{label} {note}", gives_up(world, at, name, rules)
        if rules.insists and name not in SLICES:
            # It does nothing else until it knows, but may die meanwhile.
            yield f"{label} is on its way, dies", placed(sent, at, Writer())


def unseen(state: State, at: int, name: str) -> State:
    """Let a driver have committed to a table without its knowing."""
    writer = state.writers[at]
    return placed(state, at, writer._replace(stale=(*writer.stale, name)))


def gives_up(state: State, at: int, name: str, rules: Rules) -> State:
    """Leave a view behind whose slices have failed, or the whole attempt: then the tables are looked at anew."""
    writer = state.writers[at]
    plan = writer.plan
    assert plan
    if name not in SLICES:
        return looks_anew(state, at, rules)
    fine = tuple(view for view in plan.fine if SLICES[view] != name)
    return placed(state, at, writer._replace(plan=plan._replace(todo=plan.todo[1:], fine=fine)))


def refusal(state: State, writer: Writer, plan: Plan, rules: Rules) -> str:
    """Say why the master refuses an epoch; empty if it does not."""
    if rules.refuses_old and plan.number <= state.master.number:
        return "not above the last"
    if rules.asserts_join:
        try:
            advance_vector({LANE: state.master.end}, [OffsetRange(LANE, plan.start, plan.end)])
        except OffsetGap as gap:
            if rules.fenced == "all":
                raise Violation(f"the newest driver is stopped by a gap that is none: {gap}") from gap
            return "does not join"
    return ""


def written(state: State, name: str, writer: Writer, plan: Plan, bounds: Bounds) -> object:
    """Return a table with an epoch's commit."""
    match name:
        case "master":
            frontiers = tuple(
                plan.number if view in plan.fine else at for view, at in enumerate(writer.frontiers)
            )
            held = Held(plan.number, plan.start, plan.end, plan.edge, frontiers, plan.lookup)
            return state.master._replace(epochs=(*state.master.epochs, held), fences=0)
        case "quarantine":
            files = (*state.quarantine.files, (plan.number, bounds.refused(plan.start, plan.end)))
            return state.quarantine._replace(files=files, number=plan.number)
        case "ledger":
            return Ledger(tuple(sorted({*state.ledger.numbers, plan.number})), state.ledger.token)
    rows = bounds.accepted(plan.start, plan.end, plan.lookup)
    return added(state.slices[SLICES.index(name)], [Piece(plan.number, plan.number, rows)], plan.number)


def added(slices: Slices, pieces: list[Piece], number: int) -> Slices:
    """Return a slices table with more pieces."""
    return slices._replace(pieces=tuple(sorted([*slices.pieces, *pieces])), number=number)


def after(writer: Writer, name: str, plan: Plan) -> Writer:
    """Return the driver after a commit that it knows of."""
    if name == MASTER:
        frontiers = tuple(
            plan.number if view in plan.fine else at for view, at in enumerate(writer.frontiers)
        )
        writer = writer._replace(epoch=plan.number, end=plan.end, position=plan.end, frontiers=frontiers)
    todo = plan.todo[1:]
    if todo:
        return writer._replace(plan=plan._replace(todo=todo))
    return Writer() if plan.last else writer._replace(at="ready", plan=None)


def catches_up(state: State, at: int, view: int, rules: Rules, bounds: Bounds) -> Moves:
    """Add the slices that a view lacks, all in one commit; the next epoch states how far it is now."""
    writer = state.writers[at]
    name, slices = SLICES[view], state.slices[view]
    # It looks at the table anew: what landed without an answer is seen, and so is a newer token.
    writer = writer._replace(stale=tuple(each for each in writer.stale if each != name))
    if lost(state, writer, name, rules):
        yield f"{writer.token} is fenced off", placed(state, at, Writer())
        return
    frontier = writer.frontiers[view]
    held = {each.number for each in state.master.epochs}
    if rules.recognises != "nothing":
        seen = (slices.number, slices.block) if rules.recognises == "block" else (slices.number,)
        frontier = max([frontier, *(number for number in seen if number in held)])
    late = [each for each in state.master.epochs if frontier < each.number <= writer.epoch]
    pieces = [
        Piece(each.number, each.number, rows)
        for each in late
        if (rows := bounds.accepted(each.start, each.end, each.lookup))
    ]
    frontiers = (*writer.frontiers[:view], writer.epoch, *writer.frontiers[view + 1 :])
    caught = placed(state, at, writer._replace(frontiers=frontiers))
    if rules.recognises == "block":
        number = max(slices.number, writer.epoch)
        slices = added(slices, pieces, number)._replace(block=writer.epoch)
    elif late:
        slices = added(slices, pieces, writer.epoch)
    yield f"{writer.token} catches {name} up to {writer.epoch}", put(caught, name, slices)
