"""Counts, totals, means and extremes."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar

from seamline.model.measures.monoid import (
    INTEGERS,
    NUMBERS,
    ORDERED,
    Measure,
    Part,
    Place,
    strip_type_parameters,
)
from seamline.model.types.decimals import EXACT
from seamline.model.types.schema import TypeKind, parse_type


@dataclass(frozen=True)
class Count(Measure):
    """Rows, or the rows in which the expression is not NULL."""

    kind: ClassVar[str] = "count"
    takes: ClassVar[tuple[str, ...]] = (*ORDERED, "BINARY")

    @property
    def zero(self) -> Any:
        return 0

    def parts(self, input: str) -> tuple[Part, ...]:
        return (Part("n", "BIGINT"),)

    def result(self, input: str) -> str:
        return "BIGINT"

    def prepare(self, value: Any, place: Place | None = None) -> Any:
        return int(value is not None or not self.text)

    def plus(self, left: Any, right: Any) -> Any:
        return left + right


def two_sum(left: float, right: float) -> tuple[float, float]:
    """Add two doubles and return the rounded total with what rounding lost (Knuth's TwoSum)."""
    total = left + right
    shadow = total - left
    return total, (left - (total - shadow)) + (right - shadow)


DIGITS = 38
"""Digits that a DECIMAL has at most."""
SHORT = 28
"""Digits of a DECIMAL of which ten thousand million values add up to no more than ``DIGITS``."""


@dataclass(frozen=True)
class Sum(Measure):
    """Total of the values that are not NULL; NULL when there is none, or where it has more than 38 digits.

    Exact for integers and decimals. A double's total is a pair (total, what rounding lost), so that the order
    of adding and merging shows in no more than 4 * 2**-53 of the sum of magnitudes. A total of decimals of more than
    28 digits may need more than 38: an engine keeps it as ``carry * 10**38 + sum``, counted in units of the last digit.
    """

    kind: ClassVar[str] = "sum"
    takes: ClassVar[tuple[str, ...]] = NUMBERS

    def parts(self, input: str) -> tuple[Part, ...]:
        total = Part("sum", self.total(input))
        if total.type == "DOUBLE":
            return total, Part("lost", "DOUBLE")
        return (total, Part("carry", "BIGINT", late=True)) if self.carries(input) else (total,)

    def carries(self, input: str) -> bool:
        """Return whether a total may need more digits than a DECIMAL has."""
        type = parse_type(input, "")
        return type.kind is TypeKind.DECIMAL and type.precision > SHORT

    def result(self, input: str) -> str:
        return self.total(input)

    def total(self, input: str) -> str:
        """Return the type in which values are added up."""
        if strip_type_parameters(input) == "DECIMAL":
            return f"DECIMAL(38,{input.rstrip(')').split(',')[1].strip()})"
        return "DECIMAL(38,0)" if input in INTEGERS else "DOUBLE"

    def prepare(self, value: Any, place: Place | None = None) -> Any:
        return (value, 0.0) if isinstance(value, float) else value

    def plus(self, left: Any, right: Any) -> Any:
        if left is None or right is None:
            return right if left is None else left
        if isinstance(left, Decimal):
            return EXACT.add(left, right)
        if not isinstance(left, tuple):
            return left + right
        total, lost = two_sum(left[0], right[0])
        return two_sum(total, lost + left[1] + right[1])

    def present(self, state: Any) -> Any:
        return None if self.beyond(state) else self.whole(state)

    def whole(self, state: Any) -> Any:
        """Return a total, however many digits it has."""
        return state[0] + state[1] if isinstance(state, tuple) else state

    def beyond(self, state: Any) -> str | None:
        """Write the total of decimals that no DECIMAL holds; None where one does."""
        return f"{state:f}" if isinstance(state, Decimal) and len(state.as_tuple().digits) > DIGITS else None


@dataclass(frozen=True)
class Average(Sum):
    """Mean of the values that are not NULL, from their total (as ``sum`` has it) and a count."""

    kind: ClassVar[str] = "avg"

    @property
    def zero(self) -> Any:
        return (None, 0)

    def parts(self, input: str) -> tuple[Part, ...]:
        return (*super().parts(input), Part("n", "BIGINT"))

    def result(self, input: str) -> str:
        return "DOUBLE"

    def prepare(self, value: Any, place: Place | None = None) -> Any:
        return (super().prepare(value), int(value is not None))

    def plus(self, left: Any, right: Any) -> Any:
        return (super().plus(left[0], right[0]), left[1] + right[1])

    def present(self, state: Any) -> Any:
        total, n = state
        return float(self.whole(total)) / n if n else None


@dataclass(frozen=True)
class Minimum(Measure):
    """Smallest value that is not NULL."""

    kind: ClassVar[str] = "min"
    takes: ClassVar[tuple[str, ...]] = ORDERED

    def parts(self, input: str) -> tuple[Part, ...]:
        return (Part("value", input),)

    def result(self, input: str) -> str:
        return input

    def prepare(self, value: Any, place: Place | None = None) -> Any:
        return value

    def plus(self, left: Any, right: Any) -> Any:
        return right if left is None else left if right is None else self.pick(left, right)

    def pick(self, left: Any, right: Any) -> Any:
        """Choose between two values that are there."""
        return min(left, right)


@dataclass(frozen=True)
class Maximum(Minimum):
    """Largest value that is not NULL."""

    kind: ClassVar[str] = "max"

    def pick(self, left: Any, right: Any) -> Any:
        return max(left, right)
