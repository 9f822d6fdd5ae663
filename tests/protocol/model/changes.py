"""The law of changelogs: a table after all changes, and how slices, builds, snapshots and indexes come by it.

Rows are changes of a table's rows, in the order of the log. A change takes away what its row was, by the last change
before it in the log, and adds what it is now; both are booked in the interval of the change. So what is booked depends
on what came before in the log alone, and the sum over all intervals is the table, whatever their cuts are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, product
from typing import NamedTuple

from tests.protocol.model.state import Violation

INTERVALS = (0, 1)


class Row(NamedTuple):
    """A change: of which row of the table, in which interval, how new it is, if that is said, and what it makes."""

    key: int
    interval: int
    order: int | None
    image: int | None
    """What its row is from then on; None if it is deleted."""


Log = tuple[tuple[Row, ...], ...]
"""The rows of each epoch, in order."""


class Known(NamedTuple):
    """What is known of a row of the table: the greatest order so far, and the image, None for none."""

    greatest: int | None
    image: int | None


Images = dict[int, Known]
Booked = Counter[tuple[int, int]]
"""How often each image of a key is there."""
NOTHING = Known(None, None)


@dataclass(frozen=True)
class Rules:
    """What both layers keep to; each default is the rule.

    ``newest``: a row that is older by order than one before it in the log is no change; ``ties``: one that is as new is
    one; ``keeps``: a deletion is remembered with its order; ``unordered``: a row without an order is a change and
    leaves the greatest order as it was; ``by_log``: what a row was is told by the log, not by event times.
    Of an index: ``stands``: it is used only where it has every epoch. Of a build: ``below``: its snapshot is from
    before the first epoch that has a row of the interval; ``between``: rows of other intervals are read, too.
    Of snapshots: ``own_log``: one is of this log. Of a block that is caught up: ``begins``: what rows were is told by
    what the block's first epoch has met.
    """

    newest: bool = True
    ties: bool = True
    keeps: bool = True
    unordered: bool = True
    by_log: bool = True
    stands: bool = True
    below: bool = True
    between: bool = True
    own_log: bool = True
    begins: bool = True


RIGHT = Rules()


@dataclass(frozen=True)
class Bounds:
    """Which logs there are: of so many rows, keys and orders."""

    rows: int = 3
    keys: int = 1
    orders: tuple[int | None, ...] = (1, 2, None)


def list_logs(bounds: Bounds) -> Iterator[Log]:
    """List all logs: any rows, cut into epochs in any way; each makes an image of its own, or none."""
    choices = [*product(range(bounds.keys), INTERVALS, bounds.orders, (True, False))]
    for chosen in product(choices, repeat=bounds.rows):
        rows = [
            Row(key, interval, order, number if there else None)
            for number, (key, interval, order, there) in enumerate(chosen)
        ]
        for cuts in product((True, False), repeat=bounds.rows - 1):
            log = [[rows[0]]]
            for row, cut in zip(rows[1:], cuts, strict=True):
                if cut:
                    log.append([])
                log[-1].append(row)
            yield tuple(map(tuple, log))


def make_table(log: Log) -> Booked:
    """Return the table after all changes, by its definition.

    Of a key it is the image of the last row without an order, or that of the last row of the greatest order after it.
    """
    found = Booked()
    rows = [*chain(*log)]
    for key in {row.key for row in rows}:
        mine = [row for row in rows if row.key == key]
        greatest = max((row.order for row in mine if row.order is not None), default=None)
        wins = [row for row in mine if row.order is None or row.order == greatest]
        if wins[-1].image is not None:
            found[key, wins[-1].image] += 1
    return found


def apply(images: Images, rows: Iterable[Row], rules: Rules) -> Iterator[tuple[Row, Booked]]:
    """Take rows into what is known; yield each that is a change, with what it takes away and adds."""
    for row in rows:
        known = images.get(row.key, NOTHING)
        if is_change(row, known, rules):
            booked = Booked()
            if known.image is not None:
                booked[row.key, known.image] -= 1
            if row.image is not None:
                booked[row.key, row.image] += 1
            images[row.key] = know(row, known, rules)
            yield row, booked


def is_change(row: Row, known: Known, rules: Rules) -> bool:
    """Return whether a row changes its row of the table."""
    if row.order is None or known.greatest is None or not rules.newest:
        return True
    return row.order >= known.greatest if rules.ties else row.order > known.greatest


def know(row: Row, known: Known, rules: Rules) -> Known:
    """Return what is known of a row of the table after a change."""
    if row.image is None and not rules.keeps:
        return NOTHING
    if row.order is None:
        return Known(known.greatest if rules.unordered else None, row.image)
    return Known(max(row.order, row.order if known.greatest is None else known.greatest), row.image)


def images_at(log: Log, epoch: int, rules: Rules) -> Images:
    """Return what is known at an epoch, by all of the log up to it."""
    images: Images = {}
    rows = [*chain(*log[: epoch + 1])]
    for _ in apply(images, rows if rules.by_log else sorted(rows, key=lambda each: each.interval), rules):
        pass
    return images


def make_slice(log: Log, epoch: int, index: Images, rules: Rules) -> dict[int, Booked]:
    """Return what an epoch books in each interval, by an index of what was known before it, which takes it in."""
    found = {interval: Booked() for interval in INTERVALS}
    for row, booked in apply(index, log[epoch], rules):
        found[row.interval].update(booked)
    return found


def make_all_slices(log: Log, lost: int, rules: Rules) -> list[dict[int, Booked]]:
    """Return the slices of all epochs; before one of them the index is lost, and made again of a snapshot and rows.

    Where it need not stand, the index of before the last epoch is used.
    """
    made, index = [], dict[int, Known]()
    for epoch in range(len(log)):
        if epoch == lost:
            index = images_at(log, epoch - 1 if rules.stands else epoch - 2, rules)
        made.append(make_slice(log, epoch, index, rules))
    return made


def build(log: Log, interval: int, cut: int, snapshot: tuple[int, Images], rules: Rules) -> Booked:
    """Build an interval of its own rows up to a cut, from a snapshot that has what was known at some epoch."""
    taken, known = snapshot
    images, found = dict(known), Booked()
    for row, booked in apply(images, chain(*log[taken + 1 : cut + 1]), rules):
        if row.interval == interval:
            found.update(booked)
    return found


def list_builds(log: Log, interval: int, cut: int, rules: Rules) -> Iterator[Booked]:
    """List what a build may make, by the snapshots that it may begin with."""
    first = next(
        (number for number, rows in enumerate(log) if any(row.interval == interval for row in rows)), len(log)
    )
    latest = min(first - 1, cut) if rules.below else cut
    for taken in range(-1, latest + 1):
        if rules.between:
            yield build(log, interval, cut, (taken, images_at(log, taken, rules)), rules)
        else:
            own = tuple(tuple(row for row in rows if row.interval == interval) for rows in log)
            yield build(own, interval, cut, (taken, images_at(log, taken, rules)), rules)
        if taken >= 0 and not rules.own_log:
            dead = (*log[:taken], tuple(row._replace(image=9) for row in log[taken]))
            yield build(log, interval, cut, (taken, images_at(dead, taken, rules)), rules)


def check_log(log: Log, rules: Rules) -> int:
    """Check one log; return how many sums were compared."""
    last, compared = len(log) - 1, 0
    right = [make_table(log[: epoch + 1]) for epoch in range(len(log))]
    slices = make_all_slices(log, len(log), rules)
    for lost in range(len(log)):
        if make_all_slices(log, lost, rules) != slices:
            raise Violation(f"an index that was lost before epoch {lost} makes other slices of {log}")
    builds = {
        (interval, cut): [*list_builds(log, interval, cut, rules)]
        for interval in INTERVALS
        for cut in range(-1, len(log))
    }
    for epoch in range(len(log)):
        for cuts in product(range(-1, epoch + 1), repeat=len(INTERVALS)):
            parts = [
                [sum_up([made, *(each[interval] for each in slices[cut + 1 : epoch + 1])]) for made in found]
                for interval, cut in zip(INTERVALS, cuts, strict=True)
                for found in [builds[interval, cut]]
            ]
            for some in product(*parts):
                compared += 1
                if sum_up(some) != tidy(right[epoch]):
                    raise Violation(f"cut at {cuts}, epoch {epoch} of {log} is {some} and not {right[epoch]}")
    for after in range(-1, last):
        block = make_block(log, after, rules)
        if block != {i: sum_up(each[i] for each in slices[after + 1 :]) for i in INTERVALS}:
            raise Violation(f"the block above {after} of {log} is {block}")
    return compared


def make_block(log: Log, after: int, rules: Rules) -> dict[int, Booked]:
    """Return what all epochs above one book, as a view that is behind catches up with them."""
    images = images_at(log, after if rules.begins else len(log) - 1, rules)
    found = {interval: Booked() for interval in INTERVALS}
    for row, booked in apply(images, chain(*log[after + 1 :]), rules):
        found[row.interval].update(booked)
    return {interval: tidy(each) for interval, each in found.items()}


def sum_up(parts: Iterable[Booked]) -> Booked:
    """Add up what was booked; what comes to nothing is left out."""
    whole = Booked()
    for each in parts:
        whole.update(each)
    return tidy(whole)


def tidy(booked: Booked) -> Booked:
    """Leave out what comes to nothing."""
    return Booked({name: count for name, count in booked.items() if count})


def check_all(bounds: Bounds, rules: Rules) -> int:
    """Check all logs; Violation for the first that goes wrong. Return how many sums were compared."""
    return sum(check_log(log, rules) for log in list_logs(bounds))
