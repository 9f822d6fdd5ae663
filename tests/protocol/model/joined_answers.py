"""What readers, planning and certificates make of joined rows, and what each is held against."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tests.protocol.model.joined_rows import NONE, Epoch, Item, Row, counted, named, oracle, rows_at
from tests.protocol.model.joins import Bounds, Built, Piece, Rules, State
from tests.protocol.model.state import Violation


def check(state: State, rules: Rules, bounds: Bounds) -> None:
    """Check what must hold in every state."""
    if not state.born or not state.judged:
        return
    events(state, bounds)
    for at in range(bounds.join.intervals):
        answered(state, at, rules, bounds)
        planned(state, at, rules, bounds)
        for each in (state.served[at], state.older[at]):
            if each and each.green:
                final(state, at, each, bounds)
    for at in awaited(state, rules, bounds) if bounds.refuses else ():
        if not dirty(state, at, rules, bounds):
            raise Violation(f"the view waits for interval {at}, which is never built")


def events(state: State, bounds: Bounds) -> None:
    """Hold that every event counts from the epoch on in which it has come first, however often it comes."""
    counting: set[int] = set()
    for epoch in state.log:
        counting |= {bounds.join.topic[id].event for id in epoch.rows if id not in epoch.flagged}
        for id in epoch.rows:
            if bounds.join.topic[id].event not in counting and id not in bounds.refuses:
                raise Violation(
                    f"record {id} is flagged at {epoch.number}, and nothing that it repeats counts"
                )


def until(state: State, at: int, rules: Rules, bounds: Bounds) -> int:
    """Return up to which epoch an interval is answered: W, or less if a decision waits for its build."""
    cut = state.cut(at)
    return max(cut, min([state.e, state.w, *caps(state, at, rules, bounds)]))


def caps(state: State, at: int, rules: Rules, bounds: Bounds) -> list[int]:
    """Return the epochs before those that name a decision about an interval, above its cut."""
    if bounds.subtracts or bounds.gated or not rules.caps:
        return []
    found, before = [], NONE
    for each in state.log:
        if each.number > state.cut(at) and decides(each.names, at, bounds, own=not rules.cap_reach):
            found.append(before)
        before = each.number
    return found


def decides(names: tuple[int, ...], at: int, bounds: Bounds, *, own: bool = False) -> bool:
    """Return whether decisions meet an interval."""
    return any(bounds.join.meets(at, bounds.join.decisions[each], own=own) for each in names)


def awaited(state: State, rules: Rules, bounds: Bounds) -> list[int]:
    """Return the intervals whose builds a view waits for before it takes its next epoch."""
    following = next((each for each in state.log if each.number > state.driver.frontier), None)
    if following is None or not bounds.gated or not rules.waits:
        return []
    cuts = [state.cut(at) for at in range(bounds.join.intervals)]
    return unbuilt(state, following, cuts, rules, bounds)


def unbuilt(state: State, s: Epoch, cuts: Sequence[int], rules: Rules, bounds: Bounds) -> list[int]:
    """Return the intervals with rows before ``s`` which names decisions about them that no generation knows."""
    rows = rows_at(state.log, bounds.join, s.number - 1)
    if not rules.waits_as_judged:
        rows += [bounds.join.topic[id] for each in state.log if each.number < s.number for id in each.flagged]
    filled = {row.at for row in rows}
    return [
        at
        for at, cut in enumerate(cuts)
        if at in filled and cut < s.number and decides(s.names, at, bounds, own=not rules.waits_in_reach)
    ]


def counts(piece: Piece, state: State) -> bool:
    """Return whether slices are of an epoch that the master holds, or of a block."""
    return piece.block or any(each.number == piece.last for each in state.log)


def answered(state: State, at: int, rules: Rules, bounds: Bounds) -> None:
    """Hold an interval's answer against the log; none is given below its floor."""
    if state.cut(at) >= state.floors[at]:
        merged(state, at, state.served[at], until(state, at, rules, bounds), rules, bounds)


def merged(state: State, at: int, served: Built | None, to: int, rules: Rules, bounds: Bounds) -> None:
    """Hold a generation, or none, with the slices above its cut up to an epoch, against the log."""
    above = cut = served.cut if served else NONE
    if not rules.own_slices:
        above = max(state.cut(each) for each in range(bounds.join.intervals))
    rows: Counter[Item] = Counter(served.rows if served else ())
    for piece in state.pieces:
        if not counts(piece, state) or not (piece.added[at] or piece.gone[at]):
            continue
        if piece.first <= cut < piece.last or piece.first <= to < piece.last <= state.w:
            raise Violation(f"slices {piece.first}..{piece.last} of {at} reach over {cut} or {to}")
        if above < piece.first and piece.last <= to:
            rows.update(piece.added[at])
            rows.subtract(piece.gone[at])
    wanted = Counter(oracle(state.log, bounds.join, to)[at])
    if {each: n for each, n in rows.items() if n} != wanted:
        raise Violation(f"interval {at} answers {dict(rows)} up to {to}, and has {dict(wanted)}")


def planned(state: State, at: int, rules: Rules, bounds: Bounds) -> None:
    """Hold what planning takes for dirty against what a build at E would change."""
    served = state.served[at]
    now = oracle(state.log, bounds.join, state.e)[at]
    differs = now != (served.rows if served else ())
    closed = bool(
        served and not served.green and is_over(state, at, state.e, bounds) and not waits(state, at, bounds)
    )
    marked = dirty(state, at, rules, bounds)
    if (differs or closed) and not marked:
        raise Violation(f"interval {at} is clean, and {'has changed' if differs else 'has closed'}")
    precise = bounds.frugal and state.w == state.e and not state.decided and not bounds.born
    if marked and not differs and not closed and precise:
        raise Violation(f"interval {at} is dirty for nothing")


def is_over(state: State, at: int, epoch: int, bounds: Bounds, *, ahead: bool = True) -> bool:
    """Return whether the watermark of an epoch is past an interval's reach, or just its end."""
    watermark = max(
        (each.watermark for each in state.log if each.edge and each.number <= epoch), default=NONE
    )
    return watermark >= at + 1 + (bounds.join.after if ahead else 0)


def waits(state: State, at: int, bounds: Bounds) -> bool:
    """Return whether a hole or a copy keeps an interval from being certified however often it is built."""
    edge = max((each.number for each in state.log if each.edge), default=NONE)
    return bool(holes(state, at, state.e, bounds) or copies(state, at, edge, bounds))


def dirty(state: State, at: int, rules: Rules, bounds: Bounds) -> bool:
    """Return whether planning has an interval built."""
    served, cut, join = state.served[at], state.cut(at), bounds.join
    if bounds.refuses and all(row.at != at for _, row in counted(state.log, join, state.e, frozenset())):
        return False
    if cut < state.floors[at]:
        return True
    above = [each for each in state.log if each.number > cut]
    if not rules.derived:
        if any(join.topic[id].at == at for each in above for id in each.rows):
            return True
    else:
        if any(
            changes(each, at, rules)
            for each in state.pieces
            if cut < each.first and each.last <= state.w and counts(each, state)
        ):
            return True
        late = [join.topic[id] for each in above if each.number > state.w for id in each.rows]
        if any(join.reach(at, row) if rules.reach_behind else row.at == at for row in late):
            return True
    if rules.dirty_decisions and any(decides(each.names, at, bounds) for each in above):
        return True
    edge = max((each.number for each in state.log if each.edge), default=NONE)
    over = rules.closes and served and not served.green and edge != NONE
    return bool(over and certified(state, at, edge, rules, bounds))


def changes(piece: Piece, at: int, rules: Rules) -> int:
    """Return how many rows a piece changed; what came and what went, or what is left of both."""
    came, went = len(piece.added[at]), len(piece.gone[at])
    return came + went if rules.apart else came - went


def certified(state: State, at: int, cut: int, rules: Rules, bounds: Bounds) -> bool:
    """Return whether a build of an interval is complete at its cut, as far as is known."""
    if not is_over(state, at, cut, bounds, ahead=rules.reach_ahead):
        return False
    if rules.holes and holes(
        state, at, state.e if rules.holes_to_e else cut, bounds, own=not rules.hole_reach
    ):
        return False
    return not (rules.copies and copies(state, at, cut, bounds))


def holes(state: State, at: int, to: int, bounds: Bounds, *, own: bool = False) -> list[int]:
    """Return the rows that Kafka has lost and nobody has brought, near an interval."""
    come = {id for each in state.log for id in each.rows}
    lost = [each.hole for each in state.log if each.number <= to and each.hole not in {NONE, *come}]
    rows = [bounds.join.topic[each] for each in lost]
    return [each.id for each in rows if (each.at == at if own else bounds.join.reach(at, each))]


def copies(state: State, at: int, cut: int, bounds: Bounds) -> list[Row]:
    """Return the copies near an interval that were counted because the horizon had passed."""
    rows = [row for _, row in counted(state.log, bounds.join, cut, named(state.log, cut))]
    events = Counter(each.event for each in rows)
    return [each for each in rows if events[each.event] > 1 and bounds.join.reach(at, each)]


def final(state: State, at: int, built: Built, bounds: Bounds) -> None:
    """Hold a certificate against what came later: only what is late, or was decided, may change the interval."""
    join = bounds.join
    watermark = next(each.watermark for each in state.log if each.number == built.cut)
    now = {part for item in oracle(state.log, join, state.e)[at] for part in item[1:]}
    for epoch in state.log:
        for id in (each for each in epoch.rows if (each, 0) in now):
            if epoch.number > built.cut and join.topic[id].at >= watermark:
                raise Violation(f"interval {at} is certified at {built.cut} without {id}, which is not late")
            if epoch.number > built.seen and any(
                each.hole == id and each.number <= built.seen for each in state.log
            ):
                raise Violation(f"interval {at} is certified at {built.cut} over the hole where {id} was")
    parts = {part[0] for item in built.rows for part in item[1:]}  # type: ignore[index]
    if len({join.topic[each].event for each in parts}) < len(parts):
        raise Violation(f"interval {at} is certified with copies")


def compared(state: State, at: int, new: Built, bounds: Bounds) -> None:
    """Hold a build against the one before and the slices between their cuts."""
    served = state.served[at]
    names = [
        each for epoch in state.log if served and served.cut < epoch.number <= new.cut for each in epoch.names
    ]
    if not served or served.cut >= new.cut or new.cut > state.w or (names and not bounds.subtracts):
        return
    rows = Counter(served.rows)
    for piece in state.pieces:
        if counts(piece, state) and served.cut < piece.first and piece.last <= new.cut:
            rows.update(piece.added[at])
            rows.subtract(piece.gone[at])
    if {each: n for each, n in rows.items() if n} != Counter(new.rows):
        raise Violation(f"interval {at} built at {new.cut} is not what slices made of {served.cut}")
