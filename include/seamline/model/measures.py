"""Measures: aggregations whose state is mergeable (prepare, plus, present).

The classes carry the dull plain-Python meaning, which is the oracle of every engine. ``parts`` names the
columns in which an engine stores a state; a missing state (NULL) is the zero of every part but a count.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from seamline.model.errors import DefinitionError

INTEGERS = ("INT", "BIGINT")
NUMBERS = (*INTEGERS, "DOUBLE", "DECIMAL")
ORDERED = (*NUMBERS, "STRING", "DATE", "TIMESTAMP", "BOOLEAN")
HLL_LG_K = 12
KLL_K = 200


@dataclass(frozen=True)
class Part:
    """One stored column of a state: its name after ``<measure>__`` and its Spark type."""

    name: str
    type: str


def family(type: str) -> str:
    """Drop a type's parameters: ``DECIMAL(10,2)`` is ``DECIMAL``."""
    return type.partition("(")[0]


@dataclass(frozen=True)
class Measure:
    """A commutative monoid over one expression of a row, and its finaliser."""

    of: str = ""
    kind: ClassVar[str] = ""
    takes: ClassVar[tuple[str, ...]] = ()
    approximate: ClassVar[bool] = False
    zero: ClassVar[Any] = None

    def check(self, input: str) -> None:
        """Raise DefinitionError where the expression's type has no meaning for this measure."""
        if family(input) not in self.takes:
            raise DefinitionError(
                f"{self.kind}({self.of}) takes {', '.join(self.takes)}; the expression is {input}.",
                hint="cast the expression, or use another measure.",
            )

    def parts(self, input: str) -> tuple[Part, ...]:
        """List the columns of a state over an expression of type ``input``."""
        raise NotImplementedError

    def result(self, input: str) -> str:
        """Give the Spark type of the presented value."""
        raise NotImplementedError

    def prepare(self, value: Any) -> Any:
        """Make the state of one row's value (None for NULL)."""
        raise NotImplementedError

    def plus(self, left: Any, right: Any) -> Any:
        """Merge two states; associative, commutative, with ``zero`` as identity."""
        raise NotImplementedError

    def present(self, state: Any) -> Any:
        """Turn a state into the number that people read."""
        return state

    def fold(self, values: Iterable[Any]) -> Any:
        """Make the state of many values."""
        state = self.zero
        for value in values:
            state = self.plus(state, self.prepare(value))
        return state


@dataclass(frozen=True)
class Count(Measure):
    """Rows, or the rows in which the expression is not NULL."""

    kind: ClassVar[str] = "count"
    takes: ClassVar[tuple[str, ...]] = (*ORDERED, "BINARY")
    zero: ClassVar[Any] = 0

    def parts(self, input: str) -> tuple[Part, ...]:
        return (Part("n", "BIGINT"),)

    def result(self, input: str) -> str:
        return "BIGINT"

    def prepare(self, value: Any) -> Any:
        return int(value is not None or not self.of)

    def plus(self, left: Any, right: Any) -> Any:
        return left + right


@dataclass(frozen=True)
class Sum(Measure):
    """Total of the values that are not NULL; NULL when there is none. Exact for integers and decimals."""

    kind: ClassVar[str] = "sum"
    takes: ClassVar[tuple[str, ...]] = NUMBERS

    def parts(self, input: str) -> tuple[Part, ...]:
        return (Part("sum", self.result(input)),)

    def result(self, input: str) -> str:
        if family(input) == "DECIMAL":
            return f"DECIMAL(38,{input.rstrip(')').split(',')[1].strip()})"
        return "DECIMAL(38,0)" if input in INTEGERS else "DOUBLE"

    def prepare(self, value: Any) -> Any:
        return value

    def plus(self, left: Any, right: Any) -> Any:
        return right if left is None else left if right is None else left + right


@dataclass(frozen=True)
class Average(Measure):
    """Mean of the values that are not NULL, from a total and a count."""

    kind: ClassVar[str] = "avg"
    takes: ClassVar[tuple[str, ...]] = NUMBERS
    zero: ClassVar[Any] = (0.0, 0)

    def parts(self, input: str) -> tuple[Part, ...]:
        return (Part("sum", "DOUBLE"), Part("n", "BIGINT"))

    def result(self, input: str) -> str:
        return "DOUBLE"

    def prepare(self, value: Any) -> Any:
        return (0.0, 0) if value is None else (float(value), 1)

    def plus(self, left: Any, right: Any) -> Any:
        return (left[0] + right[0], left[1] + right[1])

    def present(self, state: Any) -> Any:
        return state[0] / state[1] if state[1] else None


@dataclass(frozen=True)
class Minimum(Measure):
    """Smallest value that is not NULL."""

    kind: ClassVar[str] = "min"
    takes: ClassVar[tuple[str, ...]] = ORDERED

    def parts(self, input: str) -> tuple[Part, ...]:
        return (Part("value", input),)

    def result(self, input: str) -> str:
        return input

    def prepare(self, value: Any) -> Any:
        return value

    def plus(self, left: Any, right: Any) -> Any:
        return right if left is None else left if right is None else self.pick(left, right)

    def pick(self, left: Any, right: Any) -> Any:
        """Choose between two values that are there."""
        return builtins.min(left, right)


@dataclass(frozen=True)
class Maximum(Minimum):
    """Largest value that is not NULL."""

    kind: ClassVar[str] = "max"

    def pick(self, left: Any, right: Any) -> Any:
        return builtins.max(left, right)


@dataclass(frozen=True)
class Distinct(Measure):
    """Number of different values: a HyperLogLog sketch in the engines, the set itself in plain Python."""

    kind: ClassVar[str] = "distinct"
    takes: ClassVar[tuple[str, ...]] = ("STRING", "INT", "BIGINT")
    approximate: ClassVar[bool] = True
    zero: ClassVar[Any] = frozenset()

    def parts(self, input: str) -> tuple[Part, ...]:
        return (Part("hll", "BINARY"),)

    def result(self, input: str) -> str:
        return "BIGINT"

    def prepare(self, value: Any) -> Any:
        return frozenset() if value is None else frozenset((value,))

    def plus(self, left: Any, right: Any) -> Any:
        return left | right

    def present(self, state: Any) -> Any:
        return len(state)


@dataclass(frozen=True)
class Quantile(Measure):
    """The value below which a share of the values lies: a KLL sketch in the engines, all values in Python."""

    at: float = 0.5
    kind: ClassVar[str] = "quantile"
    takes: ClassVar[tuple[str, ...]] = (*INTEGERS, "DOUBLE")
    approximate: ClassVar[bool] = True
    zero: ClassVar[Any] = ()

    def check(self, input: str) -> None:
        super().check(input)
        if not 0 <= self.at <= 1:
            raise DefinitionError(f"quantile at {self.at} is not between 0 and 1.", hint="0.95, not 95.")

    def parts(self, input: str) -> tuple[Part, ...]:
        return (Part("kll", "BINARY"),)

    def result(self, input: str) -> str:
        return "DOUBLE"

    def prepare(self, value: Any) -> Any:
        return () if value is None else (float(value),)

    def plus(self, left: Any, right: Any) -> Any:
        return tuple(sorted(left + right))

    def present(self, state: Any) -> Any:
        return state[builtins.max(math.ceil(self.at * len(state)) - 1, 0)] if state else None


def count(of: str = "") -> Count:
    """Count rows, or the rows in which an expression is not NULL."""
    return Count(of)


def sum(of: str) -> Sum:
    """Add up an expression; exact for integers and decimals."""
    return Sum(of)


def avg(of: str) -> Average:
    """Take the mean of an expression."""
    return Average(of)


def min(of: str) -> Minimum:
    """Take the smallest value of an expression."""
    return Minimum(of)


def max(of: str) -> Maximum:
    """Take the largest value of an expression."""
    return Maximum(of)


def distinct(of: str) -> Distinct:
    """Count different values of an expression (HyperLogLog, 1.6 % standard error, near exact below 400)."""
    return Distinct(of)


def quantile(of: str, at: float) -> Quantile:
    """Estimate the value at rank ``at`` in [0, 1] (KLL, rank error below 1.65 % with 99 % confidence)."""
    return Quantile(of, at)


MEASURES: tuple[type[Measure], ...] = (Count, Sum, Average, Minimum, Maximum, Distinct, Quantile)
