"""Patterns and rows, made up for Flink and for Seamline alike, of what both know: steps one after the other.

Flink has no alternatives and no repeated brackets, takes a name once, and refuses ``a??`` as well as a greedy
repetition at the end or before a step that may be left out. Where it takes a pattern and means something else
than SQL (ISO/IEC 19075-5), the pattern, the key or the measure is left out:

- Behind a greedy repetition it takes no other step for a row that could be one more of it, and never goes
  back: ``a+ b`` finds nothing in two rows for which both hold. In SQL the last one is ``b``.
- It takes the match that is whole first: of ``a b?`` the row of ``a`` alone, though ``b`` comes next. In SQL
  more rows are preferred.
- Of two ways to take the same rows it takes any: ``a{1,2}? b{1,2}? c`` may have two rows of ``a``. In SQL it
  has one.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from tests.unit.model.patterns.brute_force import Tree, follow

NAMES = "abcde"
KINDS = 5
"""So many kinds of rows there are."""
COUNTS = ((0, None), (1, None), (0, 1), (2, 2), (1, 3), (2, None), (2, 4), (0, 2), (3, 3))
SIGNS = {(0, None): "*", (1, None): "+", (0, 1): "?", (1, 1): ""}
SPANS = (None, 3, 6, 12)
"""Seconds that a match takes at most."""


class Row(NamedTuple):
    """A row of a key."""

    key: int
    second: int
    n: int
    """Its place among all rows of the case."""
    kind: int
    """What conditions ask about."""
    amount: int | None


@dataclass(frozen=True)
class Step:
    """A step of a pattern, and the kinds of rows that take it."""

    name: str
    least: int
    most: int | None
    reluctant: bool
    kinds: frozenset[int]

    @property
    def is_greedy(self) -> bool:
        """Return whether Flink takes it as a greedy repetition: of ``?`` and ``{n}`` it does not."""
        return not self.reluctant and self.least != self.most and (self.least, self.most) != (0, 1)

    @property
    def text(self) -> str:
        """Return it as it is in a pattern."""
        if self.least == self.most and self.least > 1:
            return f"{self.name}{{{self.least}}}"
        count = f"{{{self.least or ''},{self.most or ''}}}"
        return self.name + SIGNS.get((self.least, self.most), count) + "?" * self.reluctant

    @property
    def tree(self) -> Tree:
        """Return it for the search by trying."""
        return ("times", ("step", self.name), self.least, self.most, self.reluctant)


@dataclass(frozen=True)
class Case:
    """A pattern and the rows in which it is looked for."""

    steps: tuple[Step, ...]
    within: int | None
    """A match is shorter than so many seconds."""
    skip: str
    rows: tuple[Row, ...]

    @property
    def text(self) -> str:
        """Return the pattern."""
        return " ".join(step.text for step in self.steps)

    @property
    def flink_text(self) -> str:
        """Return the pattern for Flink, which takes {0,2} for {,2} and is refused otherwise."""
        return self.text.replace("{,", "{0,")

    def of_key(self, key: int) -> list[Row]:
        """List the rows of a key."""
        return [row for row in self.rows if row.key == key]

    def hold(self, row: Row) -> frozenset[str]:
        """Name the steps whose conditions hold for a row."""
        return frozenset(step.name for step in self.steps if row.kind in step.kinds)

    def is_settled(self, key: int) -> bool:
        """Return whether from each row of a key the match that SQL prefers is the first to be whole, too."""
        return all(lengths[0] == min(lengths) for lengths in self.list_ways(key))

    def is_single(self, key: int) -> bool:
        """Return whether from each row of a key the rows that SQL prefers are a match in one way only."""
        return all(lengths.count(lengths[0]) == 1 for lengths in self.list_ways(key))

    def list_ways(self, key: int) -> Iterator[list[int]]:
        """List for each row at which a match may begin how many rows each has, the preferred one first."""
        rows, tree = self.of_key(key), ("then", [step.tree for step in self.steps])
        for place, first in enumerate(rows):
            near = [
                self.hold(row)
                for row in rows[place:]
                if self.within is None or row.second - first.second < self.within
            ]
            if lengths := [len(way) for way in follow(tree, near, 0)]:
                yield lengths


def make_case(dice: random.Random, keys: int, rows: int) -> Case:
    """Make a case up: a pattern that Flink means as SQL does, and so many rows of each key."""
    steps: Sequence[Step] = ()
    while not is_common(steps):
        steps = make_steps(dice)
    return Case(
        steps=tuple(steps),
        within=dice.choice(SPANS),
        skip=dice.choice(["past last row", "to next row"]),
        rows=tuple(make_rows(dice, keys, rows)),
    )


def make_steps(dice: random.Random) -> list[Step]:
    """Make steps up."""
    return [make_step(dice, name) for name in NAMES[: dice.randrange(1, len(NAMES) + 1)]]


def make_step(dice: random.Random, name: str) -> Step:
    """Make a step up; one in eight has no condition."""
    least, most = dice.choice(COUNTS) if dice.random() < 0.65 else (1, 1)
    may_be_reluctant = least != most and (least, most) != (0, 1)
    kinds = range(KINDS) if dice.random() < 0.125 else dice.sample(range(KINDS), dice.randrange(1, KINDS))
    return Step(name, least, most, may_be_reluctant and dice.random() < 0.4, frozenset(kinds))


def make_rows(dice: random.Random, keys: int, count: int) -> list[Row]:
    """Make rows up, in the order of their times; a key has no two at one time."""
    made = []
    for key in range(keys):
        second = 0
        for _ in range(count):
            second += dice.choice([1, 1, 2, 3])
            made.append((second, key, dice.randrange(KINDS), dice.choice([None, *range(-4, 5)])))
    made.sort()
    return [Row(key, at, number, kind, amount) for number, (at, key, kind, amount) in enumerate(made)]


def is_common(steps: Sequence[Step]) -> bool:
    """Return whether Flink takes steps, and means the same by them."""
    if not any(step.least for step in steps) or not any(len(step.kinds) < KINDS for step in steps):
        return False
    if steps[-1].is_greedy:
        return False
    return all(
        behind.least > 0 and not step.kinds & behind.kinds
        for step, behind in pairwise(steps)
        if step.is_greedy
    )
