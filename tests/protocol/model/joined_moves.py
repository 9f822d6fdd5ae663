"""What may happen to views of joined rows: epochs, catch-ups, deaths, births, decisions, lost caches, backups."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from tests.protocol.model.joined_answers import awaited
from tests.protocol.model.joined_builds import builds, upkeep
from tests.protocol.model.joined_rows import (
    NONE,
    Epoch,
    Items,
    Row,
    caught,
    changed,
    counted,
    grown,
    joined,
    named,
    near,
    rows_at,
    together,
)
from tests.protocol.model.joins import (
    Bounds,
    Cache,
    Driver,
    Moves,
    Piece,
    Rules,
    State,
    known,
    left_of,
    restated,
    spend,
    stamp,
    usable,
)
from tests.protocol.model.latest_rows import missed, revised


def moves(state: State, rules: Rules, bounds: Bounds) -> Moves:
    """Return what may happen next."""
    yield from epochs(state, rules, bounds)
    yield from ends(state, rules, bounds)
    yield from mishaps(state, rules, bounds)
    yield from builds(state, rules, bounds)
    yield from upkeep(state, rules, bounds)
    for each in range(len(bounds.join.decisions)):
        held = any(bounds.join.decisions[each].id in epoch.rows for epoch in state.log)
        if held and each not in state.decided:
            yield f"decision {each} is made", state._replace(decided=(*state.decided, each))
    if not state.born and not state.driver.plan:
        yield "a version is born", birth(state, rules, bounds)
    if state.born and not state.judged and not state.driver.plan:
        yield "records are validated again", validated_again(state, rules, bounds)


def birth(state: State, rules: Rules, bounds: Bounds) -> State:
    """Put floors under intervals that have rows, before the first slice."""
    rows = [] if not rules.birth_floor else rows_at(state.log, bounds.join, state.e)
    filled = max((each.at for each in rows), default=NONE)
    floors = tuple(state.e if at <= filled else NONE for at in range(bounds.join.intervals))
    cache = None if rules.from_birth_on else Cache(stamp(state), ())
    driver = state.driver._replace(frontier=state.e)
    log = (*state.log[:-1], state.log[-1]._replace(frontier=state.e)) if state.log else ()
    return state._replace(log=log, floors=floors, cache=cache, driver=driver, born=True)


def validated_again(state: State, rules: Rules, bounds: Bounds) -> State:
    """Flag anew what was read before the birth: what is refused or repeats an earlier record (``in_order``), or any."""
    topic, until = bounds.join.topic, state.driver.frontier
    seen = [topic[id].event for each in state.log if each.number > until for id in fresh_ids(each)]
    seen = [] if rules.in_order else seen
    log = []
    for epoch in state.log:
        flagged = []
        for id in epoch.rows if epoch.number <= until else ():
            flagged += [id] if topic[id].event in seen or id in bounds.refuses else []
            seen.append(topic[id].event)
        log.append(epoch._replace(flagged=tuple(flagged)) if epoch.number <= until else epoch)
    return state._replace(log=tuple(log), judged=True)


def epochs(state: State, rules: Rules, bounds: Bounds) -> Moves:
    """Go on with an epoch or begin one, or catch up; nobody gets in between unless it is stepwise."""
    whole = not bounds.stepwise
    match state.driver.at:
        case "off":
            frontier = state.w
            if rules.recognises:
                frontier = max([frontier, *(each.last for each in state.pieces if each.block)])
            started = state._replace(driver=Driver(frontier=frontier))
            yield "a driver starts", started
            if bounds.machines:
                moved = started._replace(cache=state.elsewhere, elsewhere=state.cache)
                yield "a driver starts on the other machine", moved
        case "ready":
            for plan, fine in plans(state, bounds):
                after = begun(state, plan, rules, bounds, fine=fine)
                label = f"epoch {told(plan)}{'' if fine else ' fails'}"
                yield label, taken_in(held(after, rules), rules, bounds) if whole else after
            behind = state.born and state.judged and state.driver.frontier < state.e
            if behind and not awaited(state, rules, bounds):
                yield catches_up(state, rules, bounds)
        case "slices":
            yield "commits to the master", held(state, rules)
        case "master":
            yield "takes the epoch in", taken_in(state, rules, bounds)


def told(plan: Epoch) -> str:
    """Describe an epoch in a trace."""
    words = [f"{plan.number} {list(plan.rows)}"]
    words += [f"flags {list(plan.flagged)}"] if plan.flagged else []
    words += [] if plan.edge else ["no edge"]
    words += [f"watermark {plan.watermark}"] if plan.watermark != 9 else []
    words += [f"names {list(plan.names)}"] if plan.names else []
    words += [f"lost {plan.hole}"] if plan.hole != NONE else []
    return ", ".join(words)


def plans(state: State, bounds: Bounds) -> Iterator[tuple[Epoch, bool]]:
    """Return every epoch that may come next: any rows that have not come yet, however late."""
    if len(state.log) >= bounds.epochs:
        return
    come = {id for each in state.log for id in each.rows}
    names = tuple(each for each in state.decided if each not in named(state.log, state.e))
    number = max([state.e, *(each.last for each in state.pieces)]) + 1
    clock = state.log[-1].watermark if state.log else NONE
    line = state.spent.restores
    rest = [each.id for each in bounds.join.topic if each.id not in come]
    lost = [each.hole for each in state.log if each.hole != NONE]
    outcomes = (True, False) if state.born and left_of(state, bounds, "fails") else (True,)
    for watermark in (each for each in bounds.clocks if each >= clock):
        for edge in (True,) if names else bounds.edges:
            plan = Epoch(number, (), (), edge, watermark, names, line=line)
            if bounds.lost in rest and not lost:
                yield plan._replace(hole=bounds.lost), True
            for rows in (some for count in range(len(rest) + 1) for some in combinations(rest, count)):
                for flagged in flags(come, rows, state, bounds):
                    yield from ((plan._replace(rows=rows, flagged=flagged), fine) for fine in outcomes)


def flags(come: set[int], rows: tuple[int, ...], state: State, bounds: Bounds) -> Iterator[tuple[int, ...]]:
    """Return which copies of what came before may be flagged: those beyond the horizon are not. What is refused is."""
    topic = bounds.join.topic
    seen = [topic[each].event for each in come]
    refused = [each for each in rows if state.born and each in bounds.refuses]
    copies = []
    for id in rows:
        if topic[id].event in seen and id not in refused:
            copies.append(id)
        seen.append(topic[id].event)
    for count in range(len(copies) + 1):
        yield from ((*some, *refused) for some in combinations(copies, count))


def begun(state: State, plan: Epoch, rules: Rules, bounds: Bounds, *, fine: bool) -> State:
    """Join an epoch's rows with what is known, and commit its slices; a view that is behind gets none."""
    current = fine and state.born and state.judged and state.driver.frontier == state.e
    current = current and not (plan.names and bounds.gated and rules.steps_back)
    state = state if fine else spend(state, "fails")
    driver = state.driver._replace(at="slices", plan=plan, fine=current)
    if not current:
        return state._replace(driver=driver, cache=None if state.born else state.cache)
    if not usable(state.cache, state, rules):
        state = state._replace(cache=Cache(stamp(state), tuple(rows_at(state.log, bounds.join, state.e))))
    old = known(state, rules, bounds)
    new = fresh(plan, bounds)
    piece = Piece(plan.number, plan.number, *slice_of(old, new, plan.names, rules, bounds))
    if not rules.takes_held:
        state = state._replace(cache=with_rows(state.cache, new))
    return state._replace(pieces=(*state.pieces, piece), driver=driver)


def fresh(plan: Epoch, bounds: Bounds) -> list[Row]:
    """Return the rows of an epoch that count."""
    return [bounds.join.topic[each] for each in fresh_ids(plan)]


def fresh_ids(plan: Epoch) -> list[int]:
    """Return the records of an epoch that are not flagged as copies."""
    return [each for each in plan.rows if each not in plan.flagged]


def slice_of(
    old: list[Row], new: list[Row], names: tuple[int, ...], rules: Rules, bounds: Bounds
) -> tuple[Items, Items]:
    """Return what an epoch adds and takes away: R(n) - R(n-1)."""
    join = bounds.join
    later = restated(old, names, join)
    if names and bounds.subtracts:
        return changed(joined(tuple(old), join), joined((*later, *restated(new, names, join)), join))
    if join.latest:
        ways = {each: getattr(rules, each) for each in ("by_time", "touches", "withdraws")}
        return revised(later, restated(new, names, join), join, **ways)
    return grown(later, restated(new, names, join), join), nothing(bounds)


def nothing(bounds: Bounds) -> Items:
    """Return no items for every interval."""
    return ((),) * bounds.join.intervals


def with_rows(cache: Cache | None, rows: list[Row]) -> Cache:
    """Add rows to a cache, those at or above its horizon."""
    assert cache
    return cache._replace(rows=(*cache.rows, *(each for each in rows if each.at >= cache.horizon)))


def held(state: State, rules: Rules) -> State:
    """Commit the epoch to the master."""
    driver = state.driver
    plan = driver.plan
    assert plan
    names = plan.names
    if not rules.names_used:
        names = tuple(each for each in state.decided if each not in named(state.log, state.e))
    frontier = plan.number if driver.fine else driver.frontier
    plan = plan._replace(frontier=frontier, names=names, edge=plan.edge or bool(names))
    return state._replace(
        log=(*state.log, plan), driver=driver._replace(at="master", plan=plan, frontier=frontier)
    )


def taken_in(state: State, rules: Rules, bounds: Bounds) -> State:
    """Let the cache take the epoch in; it does not restate rows, so that its stamp has no new decisions."""
    plan, cache = state.driver.plan, state.cache
    after = state._replace(driver=Driver(frontier=state.driver.frontier))
    if not state.driver.fine or cache is None or plan is None:
        return after
    return after._replace(cache=advanced(cache, plan, rules, bounds))


def advanced(cache: Cache, plan: Epoch, rules: Rules, bounds: Bounds) -> Cache:
    """Return a cache with an epoch's rows and stamp."""
    rows = fresh(plan, bounds) if rules.takes_held else []
    return with_rows(cache, rows)._replace(stamp=(plan.number, plan.line, cache.stamp[2]))


def catches_up(state: State, rules: Rules, bounds: Bounds) -> tuple[str, State]:
    """Add the next block from the master; the next epoch states how far slices are whole."""
    a, join = state.driver.frontier, bounds.join
    above = [each for each in state.log if each.number > a]
    b = min([state.e, *(each.number for each in above if each.edge and rules.to_edge)])
    for before, each in zip([None, *above], above, strict=False):
        if each.names and before and before.number < b and rules.ends_before:
            b = before.number
            break
    until, decisions = (b if rules.to_b else state.e), named(state.log, b)
    rows = near(counted(state.log, join, until, decisions), join, a, twice=rules.twice)
    names = tuple(sorted(decisions - named(state.log, a)))
    if names and bounds.subtracts:
        added, gone = changed(
            joined(tuple(rows_at(state.log, join, a)), join), joined(tuple(rows_at(state.log, join, b)), join)
        )
        pieces = [Piece(a + 1, b, added, gone, block=True)]
    elif join.latest:
        pieces = [Piece(a + 1, b, *missed(rows, join, a, subtracts=rules.subtracts_before), block=True)]
    else:
        found = caught(rows, join, a, by_larger=rules.by_larger, once=rules.once)
        inside = together([items for at, items in found.items() if at > a], join)
        pieces = [Piece(a + 1, b, inside, nothing(bounds), block=True)]
        pieces += [Piece(at, at, items, nothing(bounds)) for at, items in found.items() if at <= a]
    after = state._replace(
        pieces=(*state.pieces, *pieces), driver=state.driver._replace(frontier=b), cache=None
    )
    return f"catches up ({a},{b}]", after


def ends(state: State, rules: Rules, bounds: Bounds) -> Moves:
    """Die at any point, or fall asleep before the cache is written while another starts."""
    driver, cache, plan = state.driver, state.cache, state.driver.plan
    if driver.at != "off" and left_of(state, bounds, "deaths"):
        dead = spend(state._replace(driver=Driver("off")), "deaths")
        yield f"dies, {driver.at}", dead
        if driver.at == "master" and cache and plan and driver.fine and not rules.one_transaction:
            half = advanced(cache, plan, rules, bounds)._replace(rows=cache.rows)
            yield "dies with half a cache written", dead._replace(cache=half)
    if driver.at == "master" and cache and plan and driver.fine and left_of(state, bounds, "sleeps"):
        new = Cache((plan.number, plan.line, cache.stamp[2]), tuple(fresh(plan, bounds)))
        slept = spend(state._replace(asleep=new, driver=Driver("off")), "sleeps")
        yield "falls asleep before it writes the cache", slept
    if state.asleep:
        woken = state._replace(asleep=None)
        if not rules.own_path and cache:
            woken = woken._replace(
                cache=cache._replace(stamp=state.asleep.stamp, rows=(*cache.rows, *state.asleep.rows))
            )
        yield "who slept writes its cache", woken


def mishaps(state: State, rules: Rules, bounds: Bounds) -> Moves:
    """Lose the cache, prune it, or bring the warehouse back from a backup, which has no cache in it."""
    if state.cache and left_of(state, bounds, "losses"):
        yield "the cache is lost", spend(state._replace(cache=None), "losses")
    if state.cache and left_of(state, bounds, "prunes") and state.driver.at == "ready":
        for horizon in range(1, bounds.join.intervals + 1):
            kept = tuple(each for each in state.cache.rows if each.at >= horizon)
            pruned = state.cache._replace(rows=kept, horizon=horizon)
            yield f"the cache is pruned below {horizon}", spend(state._replace(cache=pruned), "prunes")
    if not left_of(state, bounds, "restores") or state.driver.at != "ready":
        return
    if state.backup is None:
        yield "a backup is made", state._replace(backup=state)
    elif state.backup.log != state.log:
        old = state.backup._replace(cache=state.cache, elsewhere=state.elsewhere, driver=Driver("off"))
        yield "the backup is brought back", spend(old._replace(spent=state.spent), "restores")
