"""The law of process functions: what the fold of a key's rows emits, and how slices, builds and snapshots come by it.

A key has rows at whole instants. A span is two intervals of two instants, in which the state begins anew. The function
remembers all that it has been through, and emits that, so that nothing that is done in another order, or not at all,
stays unseen: with a row, which sets timers one and three instants later; with a timer; and at the end of a span. An
epoch reads a row or none, and records a watermark. What a timer emits is shown once that has reached it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, combinations, combinations_with_replacement, product
from typing import NamedTuple

from tests.protocol.model.state import Violation

SPAN, INTERVAL, TIMERS = 4, 2, (1, 3)
ALWAYS = -1
"""Before any watermark: what a row emits is shown at once."""


class Row(NamedTuple):
    """A row: its event time, and its place among those of the same one, which is not the order in which they come."""

    at: int
    place: int


class Epoch(NamedTuple):
    """A commit of the master: the row that it reads, if any, and the watermark that it records."""

    row: Row | None
    mark: int


Log = tuple[Epoch, ...]


class Item(NamedTuple):
    """What is emitted: the instant where it is booked, the watermark from which on it is shown, and what it says."""

    at: int
    needs: int
    said: tuple[object, ...]


Items = Counter[Item]


class Snapshot(NamedTuple):
    """A fold up to an instant: the state with all earlier timers fired, and the timers that wait."""

    at: int
    state: tuple[object, ...] = ()
    timers: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Rules:
    """What both layers keep to; each default is the rule.

    Of a fold: ``by_time``: rows go by event time, not as they come; ``by_place``: those of one time by their place;
    ``timers_first``: a timer fires before the first row at or after it, not when the watermark comes; ``within``: one
    at the border or behind it never fires; ``anew``: state begins anew at each border.
    Of a slice: ``late``: a row behind what is settled is folded in its place; ``settles``: nothing is settled at which
    the watermark has not been; ``until_mark``: what a timer emits is shown by the watermark, not by a later row;
    ``withdraws``: what is no longer emitted is taken back.
    Of a build, and of a block of epochs that are caught up: ``recorded``: the watermark is that of its last epoch.
    Of a snapshot: ``unchanged``: no row before it came between its epoch and the cut, ``both_ways``: whichever is the
    older; ``pending``: it has the timers that wait; ``own_span``: it is of the same span.
    Of a dirty interval: ``apart``: what is added and what is withdrawn do not cancel; ``whole``: rows of all of its
    span up to its end are in its reach; ``moves``: the watermark moved in it while its span has rows.
    Of a closed one: ``to_end``: the watermark has reached its end.
    Of a birth: ``fired``: the last interval that has something of before is that of the watermark, if its span has rows
    though it has none.
    Of blocks by which a view that is behind catches up: ``takes``: what was shown before one is taken away; ``passed``:
    spans over which the watermark has gone are folded, too; ``to_edge``: one ends at the next edge; ``own_clock``: the
    watermark is the last one of the definition's own clock, whatever others have recorded since.
    """

    by_time: bool = True
    by_place: bool = True
    timers_first: bool = True
    within: bool = True
    anew: bool = True
    late: bool = True
    settles: bool = True
    until_mark: bool = True
    withdraws: bool = True
    recorded: bool = True
    unchanged: bool = True
    both_ways: bool = True
    pending: bool = True
    own_span: bool = True
    apart: bool = True
    whole: bool = True
    moves: bool = True
    to_end: bool = True
    fired: bool = True
    takes: bool = True
    passed: bool = True
    to_edge: bool = True
    own_clock: bool = True


RIGHT = Rules()


@dataclass(frozen=True)
class Bounds:
    """Which logs there are: so many epochs, and the instants at which rows and watermarks may be."""

    epochs: int = 2
    instants: tuple[int, ...] = (0, 1, 2, 3, 4, 5)
    marks: tuple[int, ...] = (0, 1, 2, 3, 4, 6)


def list_logs(bounds: Bounds) -> Iterator[Log]:
    """List all logs: rows at any instant, in any order, in places that go up or down; watermarks never go back."""
    choices = (None, *bounds.instants)
    for times in product(choices, repeat=bounds.epochs):
        for marks in combinations_with_replacement(bounds.marks, bounds.epochs):
            for direction in (1, -1):
                rows = (None if at is None else Row(at, direction * n) for n, at in enumerate(times))
                yield tuple(map(Epoch, rows, marks))


def rows_of(log: Log, until: int, *, since: int = -1) -> list[Row]:
    """Return the rows of epochs above one and up to another, as they came."""
    return [each.row for each in log[since + 1 : until + 1] if each.row]


def border(instant: int, size: int = SPAN) -> int:
    """Return where the span, or the interval, of an instant ends."""
    return instant // size * size + size


def go_on(
    begun: Snapshot, rows: Iterable[Row], until: int, rules: Rules, mark: int
) -> tuple[list[Item], Snapshot]:
    """Fold rows at or after a snapshot's instant up to another one; return what is emitted, and the fold then."""
    items: list[Item] = []
    state, timers = begun.state, {*begun.timers}

    def fire(before: int) -> None:
        nonlocal state
        while due := [each for each in timers if each < before]:
            at = min(due)
            timers.remove(at)
            items.append(Item(at, at, ("timer", at, state)))
            state = (*state, ("timer", at))

    for row in rows:
        fire(row.at + 1 if rules.timers_first else min(mark, row.at) + 1)
        items.append(Item(row.at, ALWAYS, ("row", row.place, state)))
        state = (*state, row.place)
        timers.update(row.at + each for each in TIMERS)
    fire(until)
    return items, Snapshot(until, state, frozenset(timers))


def begin(rows: Iterable[Row], span: int, rules: Rules, mark: int) -> Snapshot:
    """Begin a span: anew, and without what has been set before."""
    if rules.anew and rules.within:
        return Snapshot(span)
    earlier = in_order((row for row in rows if span - SPAN <= row.at < span), rules)
    _, left = go_on(Snapshot(span - SPAN), earlier, span, rules, mark)
    return Snapshot(span, () if rules.anew else left.state, frozenset() if rules.within else left.timers)


def finish(begun: Snapshot, rows: Iterable[Row], rules: Rules, mark: int) -> list[Item]:
    """Fold rows up to the border of their span, and end it."""
    last = border(begun.at)
    items, done = go_on(begun, in_order(rows, rules), last, rules, mark)
    return [*items, Item(last - 1, last, ("end", done.state))]


@lru_cache(maxsize=100_000)
def fold(rows: tuple[Row, ...], span: int, rules: Rules, mark: int) -> tuple[Item, ...]:
    """Fold the rows of a span; without one there is nothing."""
    own, begun = of_span(rows, span), begin(rows, span, rules, mark)
    return tuple(finish(begun, own, rules, mark)) if own or begun != Snapshot(span) else ()


def of_span(rows: Iterable[Row], span: int) -> list[Row]:
    """Return the rows of a span."""
    return [row for row in rows if span <= row.at < span + SPAN]


def in_order(rows: Iterable[Row], rules: Rules) -> list[Row]:
    """Put rows in the order in which they are folded."""
    if not rules.by_time:
        return [*rows]
    return sorted(rows, key=lambda row: (row.at, row.place) if rules.by_place else (row.at,))


def shown(items: Iterable[Item], mark: int) -> Items:
    """Return what is shown at a watermark."""
    return Counter(each for each in items if each.needs <= mark)


@lru_cache(maxsize=100_000)
def law(log: Log, until: int) -> tuple[Item, ...]:
    """Return all that is shown of epochs up to one, by their rows and the watermark that the last has recorded."""
    if until < 0:
        return ()
    rows = tuple(rows_of(log, until))
    spans = {row.at // SPAN * SPAN for row in rows}
    mark = log[until].mark
    return tuple(item for span in spans for item in shown(fold(rows, span, RIGHT, mark), mark).elements())


def of_interval(items: Iterable[Item], interval: int) -> Items:
    """Return what is booked in an interval, which is named by its first instant."""
    return Counter(each for each in items if interval <= each.at < interval + INTERVAL)


def intervals(log: Log) -> list[int]:
    """List the intervals of all spans that have rows."""
    spans = {row.at // SPAN * SPAN for row in rows_of(log, len(log))}
    return [at for span in sorted(spans) for at in range(span, span + SPAN, INTERVAL)]


def minus(new: Items, old: Items) -> Items:
    """Subtract, below nothing too."""
    found = Counter(new)
    found.subtract(old)
    return Counter({item: count for item, count in found.items() if count})


def differ(log: Log, number: int, rules: Rules) -> Items:
    """Return what an epoch adds to slices: of each span, the tail's fold now without that of before."""
    now, before = log[number].mark, log[number - 1].mark if number else ALWAYS
    old, came = tuple(rows_of(log, number - 1)), log[number].row
    found: Items = Counter()
    for span in {row.at // SPAN * SPAN for row in rows_of(log, number)}:
        settled = before if rules.settles else max((row.at + 1 for row in old), default=span)
        settled = min(max(settled, span), span + SPAN - 1)
        if rules.late and came and span <= came.at < settled:
            settled = span
        known = tail(old, None, span, settled, before, rules)
        found.update(minus(tail(old, came, span, settled, now, rules), known))
    return Counter({item: count for item, count in found.items() if count > 0 or rules.withdraws})


def tail(known: tuple[Row, ...], came: Row | None, span: int, settled: int, mark: int, rules: Rules) -> Items:
    """Return what is shown of a span from where it is settled on; nothing is known of how it has come there."""
    rows = [*known, came] if came else [*known]
    own, begun = of_span(rows, span), begin(rows, span, rules, mark)
    if not own and begun == Snapshot(span):
        return Counter()
    first = [row for row in own if row.at < settled and row is not came]
    _, begun = go_on(begun, in_order(first, rules), settled, rules, mark)
    items = finish(begun, (row for row in own if row not in first), rules, mark)
    return shown(items, mark if rules.until_mark else max([mark, *(row.at for row in rows)]))


def build(log: Log, interval: int, cut: int, rules: Rules, snapshot: Snapshot | None = None) -> Items:
    """Build an interval at a cut: of the rows of its span up to its end, or those that come after a snapshot."""
    mark, span = log[cut if rules.recorded else -1].mark, interval // SPAN * SPAN
    rows = tuple(row for row in rows_of(log, cut) if row.at < interval + INTERVAL)
    if snapshot is None:
        return of_interval(shown(fold(rows, span, rules, mark), mark), interval)
    own = of_span(rows, span)
    items = finish(snapshot, (row for row in own if row.at >= snapshot.at), rules, mark) if own else []
    return of_interval(shown(items, mark), interval)


def take_snapshot(log: Log, at: int, epoch: int, rules: Rules) -> Snapshot:
    """Fold what epochs up to one have read before an interval begins."""
    span = at // SPAN * SPAN if rules.own_span else (at - 1) // SPAN * SPAN
    rows = [row for row in rows_of(log, epoch) if span <= row.at < at]
    _, found = go_on(Snapshot(span), in_order(rows, rules), at, rules, log[epoch].mark)
    return found if rules.pending else found._replace(timers=frozenset())


def serves(log: Log, at: int, epoch: int, cut: int, rules: Rules) -> bool:
    """Return whether a snapshot before an instant, at an epoch, serves a build at a cut."""
    first, last = (min(epoch, cut), max(epoch, cut)) if rules.both_ways else (epoch, cut)
    span = at // SPAN * SPAN
    between = [row for row in rows_of(log, last, since=first) if span <= row.at < at]
    return not between or not rules.unchanged


def reach(interval: int, row: Row, rules: Rules) -> bool:
    """Return whether a row can change what an interval has."""
    first = interval // SPAN * SPAN if rules.whole else interval
    return first <= row.at < interval + INTERVAL


def is_dirty(log: Log, interval: int, cut: int, known: int, rules: Rules) -> bool:
    """Return whether an interval that was built at a cut is dirty, as slices up to one epoch and the log tell."""
    for number in range(cut + 1, known + 1):
        change = of_items(minus(Counter(law(log, number)), Counter(law(log, number - 1))), interval)
        if change and (rules.apart or sum(change.values())):
            return True
    since = max(cut, known)
    rows = rows_of(log, len(log))
    if any(reach(interval, row, rules) for row in rows_of(log, len(log), since=since)):
        return True
    moved = (
        log[since].mark < interval + INTERVAL and log[-1].mark >= interval and log[-1].mark > log[since].mark
    )
    return rules.moves and moved and any(reach(interval, row, rules) for row in rows)


def of_items(items: Items, interval: int) -> Items:
    """Return what of counted items is booked in an interval."""
    return Counter(
        {item: count for item, count in items.items() if interval <= item.at < interval + INTERVAL}
    )


def check(log: Log, rules: Rules) -> None:
    """Hold what both layers do against the law; Violation where it is something else."""
    for number in range(len(log)):
        wanted = minus(Counter(law(log, number)), Counter(law(log, number - 1)))
        if differ(log, number, rules) != wanted:
            raise Violation(f"slice {number} of {log}: {differ(log, number, rules)}, not {wanted}")
    last = len(log) - 1
    for interval in intervals(log):
        truth = [of_interval(law(log, number), interval) for number in range(len(log))]
        for cut in range(len(log)):
            check_build(log, interval, cut, truth, rules)
            for known in range(cut, len(log)):
                if not is_dirty(log, interval, cut, known, rules) and truth[cut] != truth[last]:
                    raise Violation(f"interval {interval} of {log} at {cut} counts as up to date")
            end = interval + INTERVAL if rules.to_end else interval + INTERVAL - 1
            late = any(reach(interval, row, RIGHT) for row in rows_of(log, last, since=cut))
            if log[cut].mark >= end and not late and truth[cut] != truth[last]:
                raise Violation(f"interval {interval} of {log} was closed at {cut}, and changes")


def find_mark(log: Log, foreign: frozenset[int], number: int, rules: Rules) -> int:
    """Return the watermark at an epoch, where ``foreign`` ones have recorded that of another clock."""
    own = [each.mark for at, each in enumerate(log[: number + 1]) if at not in foreign]
    if not rules.own_clock and number in foreign:
        return ALWAYS
    return own[-1] if own else ALWAYS


def with_own_marks(log: Log, foreign: frozenset[int]) -> Log:
    """Return a log as the definition sees it: an epoch of another clock moves no watermark."""
    return tuple(Epoch(each.row, find_mark(log, foreign, at, RIGHT)) for at, each in enumerate(log))


def catch_up(log: Log, foreign: frozenset[int], above: int, last: int, rules: Rules) -> Items:
    """Return the block of epochs above one and up to another: what spans show now, without what they did."""
    marks = [find_mark(log, foreign, number, rules) if number >= 0 else ALWAYS for number in (above, last)]
    rows = [tuple(rows_of(log, number)) for number in (above, last)]
    spans = {row.at // SPAN * SPAN for row in rows_of(log, last, since=above)}
    if rules.passed:
        spans |= {row.at // SPAN * SPAN for row in rows[1] if border(row.at) > marks[0]}
    then, now = (
        Counter(item for span in spans for item in shown(fold(own, span, rules, mark), mark).elements())
        for own, mark in zip(rows, marks, strict=True)
    )
    return minus(now, then) if rules.takes else now


def check_blocks(log: Log, foreign: frozenset[int], rules: Rules) -> None:
    """Hold a build at any edge, with the blocks above its cut, against the law; every second epoch is an edge."""
    seen, last = with_own_marks(log, foreign), len(log) - 1
    edges = [number for number in range(last) if number % 2 == 0] if rules.to_edge else []
    for above in range(-1, last):
        ends = [each for each in edges if each > above] + [last]
        blocks = [*zip([above, *ends], ends, strict=False)]
        for cut in (each for each in range(above, last) if each == above or each % 2 == 0):
            found = Counter(law(seen, cut))
            for first, end in blocks:
                if first >= cut:
                    found.update(catch_up(log, foreign, first, end, rules))
            if minus(found, Counter(law(seen, last))):
                raise Violation(f"blocks {blocks} of {log}, {foreign} of another clock, on a cut at {cut}")


def find_last_filled(log: Log, held: int, rules: Rules) -> int:
    """Return the last interval that a version, born above an epoch, cannot answer by its slices alone."""
    rows = rows_of(log, held)
    if not rows:
        return -INTERVAL
    last = max(row.at for row in rows)
    passed = min(log[held].mark, border(last) - 1) if rules.fired else last
    return max(last, passed) // INTERVAL * INTERVAL


def check_births(log: Log, rules: Rules) -> None:
    """Hold the slices of a version that is born above each epoch against the law, where no build is waited for."""
    for held in range(len(log) - 1):
        filled = find_last_filled(log, held, rules)
        for interval in (each for each in intervals(log) if each > filled):
            if lost := of_interval(law(log, held), interval):
                raise Violation(f"a version of {log} born after {held} lacks {lost} of interval {interval}")


def check_build(log: Log, interval: int, cut: int, truth: list[Items], rules: Rules) -> None:
    """Hold a build against the law, whatever it begins with."""
    if (made := build(log, interval, cut, rules)) != truth[cut]:
        raise Violation(f"a build of {interval} of {log} at {cut}: {made}, not {truth[cut]}")
    for epoch in range(len(log)):
        if interval % SPAN == 0 and rules.own_span:
            continue
        if serves(log, interval, epoch, cut, rules):
            found = take_snapshot(log, interval, epoch, rules)
            if (made := build(log, interval, cut, rules, found)) != truth[cut]:
                raise Violation(f"a build of {interval} of {log} at {cut} by a snapshot at {epoch}: {made}")


def check_all(bounds: Bounds, rules: Rules) -> int:
    """Check all logs within some bounds, and count them."""
    count = 0
    for log in list_logs(bounds):
        check(log, rules)
        check_births(log, rules)
        for foreign in chain.from_iterable(combinations(range(len(log)), many) for many in (0, 1)):
            check_blocks(log, frozenset(foreign), rules)
        count += 1
    return count
