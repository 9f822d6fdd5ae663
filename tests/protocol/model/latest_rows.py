"""The law of as-of joins: each left row has its key's latest version, which later epochs may replace."""

from __future__ import annotations

from collections.abc import Iterable

from tests.protocol.model.joined_rows import Item, Items, Join, Row, changed, joined, name


def as_of(one: Row, rights: Iterable[Row], join: Join, *, by_time: bool = True) -> tuple[int, Item]:
    """Return what a left row is worth: with its latest version by event time, then by place, or with none.

    Not ``by_time``, it is the one that came last; rights are in the order in which they have come.
    """
    found = [each for each in rights if each.side == "R" and join.pairs(one, each)]
    best = max(found, key=lambda each: (each.at, each.id)) if found and by_time else (found or [None])[-1]
    return one.at, ("as of", name(one), *([name(best)] if best else []))


def revised(
    old: list[Row], new: list[Row], join: Join, *, by_time: bool, touches: bool, withdraws: bool
) -> tuple[Items, Items]:
    """Return what new rows add, and what they take away: new lefts as of all rights, and what new rights replace."""
    fresh = [each for each in new if each.side == "R"]
    rights = [*(each for each in old if each.side == "R"), *fresh]
    added = [as_of(one, rights, join, by_time=by_time) for one in new if one.side == "L"]
    gone: list[tuple[int, Item]] = []
    for one in old if touches else ():
        if one.side != "L" or not any(join.pairs(one, each) for each in fresh):
            continue
        was, now = (as_of(one, some, join, by_time=by_time) for some in (rights[: -len(fresh)], rights))
        if was != now:
            added.append(now)
            gone += [was] if withdraws else []
    return join.booked(added), join.booked(gone)


def missed(rows: tuple[tuple[int, Row], ...], join: Join, a: int, *, subtracts: bool) -> tuple[Items, Items]:
    """Return what a block above ``a`` adds and takes away: what is shown at its end, less what was shown before."""
    now = joined(tuple(row for _, row in rows), join)
    before = joined(tuple(row for epoch, row in rows if epoch <= a and subtracts), join)
    return changed(before, now)
