"""The laws of a process function, tried on random rows: folded twice, cut anywhere, it emits the same.

What is found breaks a law; what is not found is no proof that none is broken.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import replace

from seamline.model.functions.folding import BLANK, EndlessTimers, Fold, Item, KeyRow, Place
from seamline.model.functions.frozen import make_freezer
from seamline.model.measures.values import list_sample_values
from seamline.model.time.intervals import EPOCH, format_utc_instant
from seamline.model.time.zone_clock import MICROSECOND
from seamline.model.types.schema import Field, SqlType

ROUNDS, ROWS = 40, 8
MOST_CHAINED = 100
"""Timers that timers may set between two rows: what takes longer is not tried."""
NULLS = 0.1
"""The share of values that are NULL where a column may be."""
Rows = list[KeyRow]
Law = Callable[[Fold, Rows, int], str]


def find_broken_law(fold: Fold, fields: Sequence[Field], size: int) -> str:
    """Say which law a function breaks, and of which rows; empty if none was found.

    Rows have some columns; the state begins anew every ``size`` microseconds. Raises FunctionUnusable where it cannot
    be run.
    """
    tried = replace(fold, chained=MOST_CHAINED)
    return next(
        (said for rows in generate_rows(fields, size) if (said := find_breach(tried, rows, size))), ""
    )


def find_breach(fold: Fold, rows: Rows, size: int) -> str:
    """Say which law a function breaks over some rows; empty where it breaks none, or its timers take too long."""
    try:
        for law in (find_second_fold, find_cut):
            if said := law(fold, deepcopy(rows), size):
                # What a function remembers beside its state may hide what was found once.
                return law(fold, shrink_rows(fold, law, rows, size), size) or said
    except EndlessTimers:
        pass
    return ""


def generate_rows(fields: Sequence[Field], size: int) -> Iterator[Rows]:
    """Return lists of rows of one key, near each other and far apart."""
    dice = random.Random(0)
    samples = {field.name: list_samples(field.type) for field in fields}
    for _ in range(ROUNDS):
        # A list of rows has a pace: functions wait for seconds, or for hours.
        pace = size // 10 ** dice.randrange(1, 8) + 1
        times = sorted(min(dice.randrange(ROWS) * pace + dice.randrange(2), size - 1) for _ in range(ROWS))
        yield [
            KeyRow(at, Place(0, n, "topic", "id"), choose_values(dice, fields, samples))
            for n, at in enumerate(times)
        ]


def choose_values(
    dice: random.Random, fields: Sequence[Field], samples: dict[str, list[object]]
) -> dict[str, object]:
    """Choose a value for each column."""
    return {
        field.name: None if field.nullable and dice.random() < NULLS else dice.choice(samples[field.name])
        for field in fields
    }


def list_samples(type: SqlType) -> list[object]:
    """List a few values of a type, frozen."""
    return [*map(make_freezer(type), list_sample_values(type))]


def find_second_fold(fold: Fold, rows: Rows, size: int) -> str:
    """Say where a function emits something else when it is called again, or changes its rows."""
    name, before = fold.function.name, deepcopy(rows)
    one, other = (fold.finish(BLANK, rows, size) for _ in range(2))
    if rows != before:
        return f"{name} changes the rows that it is given: {tell(before)} were {tell(rows)} afterwards."
    if one != other:
        return (
            f"{name} emits of {tell(rows)} {describe(one)}, and {describe(other)} when they are folded again."
        )
    return ""


def find_cut(fold: Fold, rows: Rows, size: int) -> str:
    """Say where a fold that is cut, and goes on after another key's, emits something else.

    What is not in the state is lost there, or is the other key's.
    """
    whole = fold.finish(BLANK, rows, size)
    for at in sorted({row.at for row in rows} | {row.at + 1 for row in rows}):
        earlier, later = [row for row in rows if row.at < at], [row for row in rows if row.at >= at]
        first, begun = fold.go_on(BLANK, earlier, at)
        fold.finish(BLANK, rows, size)
        parts = [*first, *fold.finish(begun, later, size)]
        if parts != whole:
            instant = format_utc_instant(EPOCH + at * MICROSECOND)
            return (
                f"{fold.function.name} emits of {tell(rows)} {describe(whole)}, and {describe(parts)} where the fold "
                f"is cut at {instant}, with the state {begun.state}."
            )
    return ""


def shrink_rows(fold: Fold, law: Law, rows: Rows, size: int) -> Rows:
    """Leave out rows as long as a law stays broken."""
    for at in range(len(rows)):
        fewer = [*rows[:at], *rows[at + 1 :]]
        if law(fold, deepcopy(fewer), size):
            return shrink_rows(fold, law, fewer, size)
    return deepcopy(rows)


def tell(rows: Rows) -> str:
    """Write rows with their instants."""
    return str([(format_utc_instant(EPOCH + row.at * MICROSECOND), dict(row.values)) for row in rows])


def describe(items: Sequence[Item]) -> str:
    """Write what was emitted."""
    said = [
        (format_utc_instant(EPOCH + each.at * MICROSECOND), each.side, tuple(each.values)) for each in items
    ]
    return str(said) if said else "nothing"
