"""A join made ready for the engines: which columns of which rows it reads, and which pairs it makes of them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from seamline.model.expressions import Expression
from seamline.model.time.zone_clock import MICROSECOND
from seamline.model.types.schema import DERIVED_KIND, STRING, Field, Schema

KIND = DERIVED_KIND
"""The column that says what a derived row is."""
PAIR, LEFT, MATCHED = "pair", "left", "matched"
"""Kinds: a pair; a left row, once; a left row that has a pair, once."""


@dataclass(frozen=True)
class JoinSide:
    """One of the two sides of a join."""

    source: str
    """The source's name."""
    prefix: str
    """What stands before a column's name in a pair."""
    columns: tuple[Field, ...]
    """The columns that are read, by their names in rows."""
    where: Expression | None = field(default=None, repr=False)
    """The rows that are joined, by the columns of rows; None for all."""
    made: Mapping[str, Expression] = field(default_factory=dict, repr=False)
    """What those of the columns are made of that rows do not have, by name."""

    def named(self, column: str) -> str:
        """Name a column as pairs have it."""
        return f"{self.prefix}{column}"

    @property
    def fields(self) -> tuple[Field, ...]:
        """The columns by their names in pairs."""
        return tuple(Field(self.named(each.name), each.type) for each in self.columns)


@dataclass(frozen=True)
class CompiledJoin:
    """A join whose names and types are known to fit."""

    name: str
    """The name of its pairs."""
    left: JoinSide
    """The rows on the left."""
    right: JoinSide
    """The rows on the right."""
    on: tuple[tuple[str, str, bool], ...]
    """Left columns, the right ones that they equal, and whether NULL equals NULL."""
    lower: int
    """The least time of a right row after its left one, in microseconds; mostly below zero."""
    upper: int
    """The greatest one."""
    where: Expression | None
    """The condition on the columns of a pair, None for all pairs."""
    selective: bool
    """Whether rows say whether they are selected; those that are not are not joined."""
    same: tuple[int, int] | None = None
    """The size of the windows in which both rows are, and where one begins, in microseconds from 1970; None for any."""
    kinds: tuple[str, ...] = (PAIR,)
    """The kinds of derived rows that views count."""
    copies: bool = False
    """Whether intervals are certified in which copies of rows count."""
    lookups: frozenset[str] = frozenset()
    """The look-ups of both sides' rows, by name."""

    latest: bool = False
    """Whether a left row has its latest right one, or none, in the place of a pair with each: an as-of join."""
    kept: int = 0
    """How long a row is kept for later ones beyond the bounds, in microseconds of event time."""
    question: str = ""
    """The id of the question that the right rows are answers to; empty where they are rows of their own."""
    recorded: Expression | None = None
    """Which right rows are records of that question, also those that say why there is no answer."""

    @property
    def id(self) -> str:
        """The name of an index of its rows: joins of other versions of a view may read other columns."""
        said = [
            self.left,
            self.right,
            self.on,
            self.lower,
            self.upper,
            self.same,
            self.where and self.where.text,
            self.kinds,
            *([[side.where and side.where.text for side in self.sides]] if self.latest else []),
            *(side.where.text for side in self.sides if side.where),
        ]
        return f"{self.name}/{hashlib.sha256(repr(said).encode()).hexdigest()[:12]}"

    @property
    def schema(self) -> Schema:
        """The columns of a derived row: its kind, then those of both sides."""
        return Schema((Field(KIND, STRING), *self.left.fields, *self.right.fields))

    @property
    def before(self) -> timedelta:
        """How far before its left row a right one may be."""
        return max(-self.lower, 0) * MICROSECOND

    @property
    def after(self) -> timedelta:
        """How far after its left row a right one may be: an interval is over so much later."""
        return max(self.upper, 0) * MICROSECOND

    @property
    def sides(self) -> tuple[JoinSide, JoinSide]:
        """Both sides, the left one first."""
        return self.left, self.right

    def narrowed(self, used: frozenset[str], kinds: Sequence[str]) -> CompiledJoin:
        """Read no column but those in ``used``, by their names in pairs, and what the join itself needs."""
        wanted = used | (self.where.columns if self.where else frozenset())
        keys = [{pair[at] for pair in self.on} for at in (0, 1)]
        left, right = (
            replace(
                side,
                columns=tuple(
                    each for each in side.columns if each.name in own or side.named(each.name) in wanted
                ),
            )
            for side, own in zip(self.sides, keys, strict=True)
        )
        return replace(self, left=left, right=right, kinds=tuple(kinds))
