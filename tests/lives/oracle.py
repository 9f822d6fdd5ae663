"""What must be answered: the records sent, of each interval those up to the epoch that the answer claims, each once.

It knows which records an epoch read by what was sent, not by what tables hold; a view's measures of them are folded one
by one (``seamline.testing.oracle``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
from tests.lives.definitions import Shape
from tests.lives.derived.dated import revise_rows
from tests.lives.derived.joined import kind_of, pair_up, value_of
from tests.lives.rates import PAIRS, RATE, Rated
from tests.lives.records import DAY, START, Record
from tests.lives.topic import NAMES

from seamline.model.compile.compiled_pipeline import CompiledView
from seamline.model.protocol.offsets import Lane
from seamline.model.protocol.seam import Side
from seamline.model.time.intervals import format_utc_instant
from seamline.testing.folding import list_fold_sources
from seamline.testing.oracle import Row, filter_counted_rows, present_oracle_rows

Rows = dict[tuple[Any, ...], dict[str, Any]]
"""Measures by keys and window."""
NEAR = 1e-9
"""Doubles are added up in any order."""


ALL, NONE = -1, -2
"""The rules for which a record is there: all of them, or none."""


class Wrong(AssertionError):
    """An answer, or a table that another engine reads, is not the plain count."""


@dataclass(frozen=True)
class Held:
    """A record and the epoch that read it.

    ``only`` is of one that was refused, and that the quarantine has lost since: no rule counts it any more, but the one
    by which it had been judged again before.
    """

    epoch: int
    lane: Lane
    offset: int
    record: Record
    only: int = ALL

    @property
    def day(self) -> int:
        """Number the day of the record from START on."""
        return (self.record.at - START) // DAY

    @property
    def interval(self) -> str:
        """Name the day of the record."""
        return named(self.day)


@dataclass(frozen=True)
class Claim:
    """What an answer says of one interval: the cut of what is published (or the floor), and how far it counts.

    Up to the ``floor`` there may be no slices.
    """

    cut: int
    until: int
    floor: int = -1


def named(day: int) -> str:
    """Name a day's interval."""
    return format_utc_instant(START + day * DAY)


def rows_of(
    shape: Shape, view: CompiledView, held: Iterable[Held], rated: Rated | None, number: Callable[[Held], int]
) -> list[Row]:
    """Return the input of a view: what records mean, and nothing that the kernel made of them.

    Of each the rate after so many decisions (``number``).
    """
    columns = [each.measure.of or None for each in list_fold_sources(view)]
    found = []
    for each in held:
        row = each.record.row
        if row is not None and is_of(shape, view, each) and is_accepted(shape, each):
            row = with_rate(shape, each, row, rated, number(each))
            found.append(
                Row(
                    each.epoch,
                    (each.record.at, each.lane.partition, each.offset, 0),
                    NAMES[each.lane.topic_id],
                    each.interval,
                    (shape.source_of(each.lane), row[shape.id]) if shape.unique else (),
                    {key.name: row.get(key.name) for key in view.keys},
                    tuple(row.get(name) if name else None for name in columns),
                    counts=True,
                )
            )
    return found


def is_of(shape: Shape, view: CompiledView, each: Held) -> bool:
    """Return whether a view counts records of a source; there are names where there are several."""
    return not view.of or shape.source_of(each.lane) in view.of


def is_accepted(shape: Shape, each: Held) -> bool:
    """Return whether a record is a row by the rules of now."""
    row = each.record.row
    return row is not None and shape.takes(row) and each.only in (ALL, shape.divisor)


def with_rate(
    shape: Shape, held: Held, row: Mapping[str, Any], rated: Rated | None, number: int
) -> Mapping[str, Any]:
    """Return what a record means beside the rate that it finds, if the definition looks one up."""
    if rated is None:
        return row
    return {**row, RATE: rated.rate(shape.by, held.epoch, held.record.at, row, number)}


def joined_rows_of(
    shape: Shape, view: CompiledView, held: Iterable[Held], rated: Rated | None, number: int
) -> list[Row]:
    """Return the input of a view of joined rows, after so many decisions: every record beside every other."""
    assert view.join
    left, right = (each.source for each in view.join.sides)
    sides: dict[str, list[Any]] = {left: [], right: []}
    for each in held:
        if each.record.row is not None and is_accepted(shape, each):
            row = with_rate(shape, each, each.record.row, rated, number)
            sides[shape.source_of(each.lane)].append((each.epoch, {**row, "_at": each.record.at}, each))
    sources = [each.measure for each in list_fold_sources(view)]
    kinds = set(map(kind_of, sources))
    asked, both = PAIRS.get(shape.pairs), (sides[left], sides[right])

    def meets(left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
        return asked is None or asked(left[RATE], right[RATE])

    return [
        Row(
            epoch,
            (own.record.at, own.lane.partition, own.offset, 0),
            NAMES[own.lane.topic_id],
            own.interval,
            (),
            {key.name: row.get(key.name) for key in view.keys},
            tuple(value_of(each, kind, row) for each in sources),
            counts=True,
            sign=sign,
        )
        for epoch, kind, row, own, sign in (
            revise_rows(view.join, *both) if view.revised else pair_up(view.join, *both, meets)
        )
        if kind in kinds
    ]


def list_own_rows(
    shape: Shape,
    view: CompiledView,
    held: Iterable[Held],
    claims: Mapping[str, Claim],
    side: Side,
    rated: Rated | None,
) -> list[Row]:
    """List the rows of a view of records: what is built of them follows the decisions that its build knew."""

    def number(each: Held) -> int:
        claim = claims.get(each.interval)
        below = claim and each.epoch <= claim.cut and side is not Side.SPEED
        return rated.built.get(each.interval, 0) if rated and below else 0

    return rows_of(shape, view, held, rated, number)


def list_joined_rows(
    shape: Shape,
    view: CompiledView,
    held: Iterable[Held],
    claims: Mapping[str, Claim],
    side: Side,
    rated: Rated | None,
) -> list[Row]:
    """List the rows of a view of a join: of each interval by the decisions that epochs name up to where it counts.

    Those of slices alone by the decisions that their own epoch was made with.
    """
    held = list(held)
    if rated is None:
        return joined_rows_of(shape, view, held, rated, 0)
    named = {number: rated.named(number) for number in {each.epoch for each in held}}
    wanted = {
        id: rated.named(claim.cut if side is Side.BATCH else max(claim.cut, claim.until))
        for id, claim in claims.items()
    }
    slices = side is Side.SPEED
    return [
        row
        for number in {*(named if slices else wanted).values()}
        for row in joined_rows_of(shape, view, held, rated, number)
        if number == (named[row.epoch] if slices else wanted.get(row.interval))
    ]


def wanted(
    con: duckdb.DuckDBPyConnection,
    shape: Shape,
    view: CompiledView,
    held: Iterable[Held],
    claims: Mapping[str, Claim],
    side: Side = Side.MERGED,
    rated: Rated | None = None,
) -> Rows:
    """Count plainly; ``claims`` are by interval id, and an interval without one is not answered."""
    by_interval: dict[str, list[Row]] = {}
    answered = list_joined_rows if view.join else list_own_rows
    for row in answered(shape, view, held, claims, side, rated):
        by_interval.setdefault(row.interval, []).append(row)
    kept: list[Row] = []
    for id, rows in by_interval.items():
        if id in claims:
            claim = claims[id]
            if side is Side.SPEED:
                kept += [row for row in rows if claim.floor < row.epoch <= claim.until]
            else:
                far, unique = max(claim.cut, claim.until), shape.unique and not view.join
                kept += filter_counted_rows(view, rows, {id: claim.cut}, far, side, unique=unique)
    found = present_oracle_rows(con, view, kept, {id: claim.cut for id, claim in claims.items()}, side)
    return keyed(view, found)


def keyed(view: CompiledView, rows: Iterable[Mapping[str, Any]]) -> Rows:
    """Put rows under their keys and window; Wrong where two are of the same."""
    names = [*(key.name for key in view.keys), "window_start", "window_end"]
    shown = [each.name for each in view.measures]
    found: Rows = {}
    for row in rows:
        key = tuple(row[name] for name in names)
        if key in found:
            raise Wrong(f"{view.qualified} has {key} twice")
        found[key] = {name: row[name] for name in [*shown, "batch_part", "speed_part"]}
    return found


def answered(view: CompiledView, table: pa.Table) -> Rows:
    """Read an answer, or a serving table."""
    return keyed(view, table.to_pylist())


def require_same(what: str, found: Rows, right: Rows, *, parts: bool = True) -> None:
    """Raise Wrong with the first places at which an answer is not the plain count."""
    odd = []
    for key in [*right, *(key for key in found if key not in right)]:
        mine, theirs = found.get(key), right.get(key)
        if mine is None or theirs is None:
            odd.append(f"{key}: {mine}, right is {theirs}")
            continue
        names = [name for name in theirs if parts or name not in ("batch_part", "speed_part")]
        odd += [
            f"{key}: {name} {mine[name]!r}, right is {theirs[name]!r}"
            for name in names
            if not same(mine[name], theirs[name])
        ]
    if odd:
        more = f", and {len(odd) - 4} more" if len(odd) > 4 else ""
        raise Wrong(f"{what}: " + "; ".join(odd[:4]) + more)


def same(one: Any, other: Any) -> bool:
    """Compare two presented values: exactly, but for doubles."""
    if isinstance(one, float) or isinstance(other, float):
        if one is None or other is None:
            return False
        return one == other or math.isclose(one, other, rel_tol=NEAR)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    if listed(one) and listed(other):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, Decimal) or isinstance(other, Decimal):
        return one is not None and other is not None and Decimal(one) == Decimal(other)
    return type(one) is type(other) and bool(one == other)


def listed(value: Any) -> bool:
    """Return whether a value is a list."""
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)
