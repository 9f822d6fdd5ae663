"""Measures that are exact while small and estimate when large: different values, ranks, frequent values.

Plain Python keeps everything; an engine keeps values up to the sizes below, and a sketch above them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from seamline.model.errors import DefinitionError
from seamline.model.measures.monoid import INTEGERS, Measure, Part, Place

HLL_LG_K = 12
KLL_K = 200
EXACT_DISTINCT = 128
EXACT_RANKS = 200
TOP_CAPACITY = 256
TOP_MOST = 1000


@dataclass(frozen=True)
class Distinct(Measure):
    """Number of different values: exact up to EXACT_DISTINCT, a HyperLogLog sketch above."""

    kind: ClassVar[str] = "distinct"
    takes: ClassVar[tuple[str, ...]] = ("STRING", *INTEGERS)
    approximate: ClassVar[bool] = True

    @property
    def zero(self) -> Any:
        return frozenset()

    def parts(self, input: str) -> tuple[Part, ...]:
        return (Part("values", f"ARRAY<{input}>"), Part("hll", "BINARY"))

    def result(self, input: str) -> str:
        return "BIGINT"

    def prepare(self, value: Any, place: Place | None = None) -> Any:
        return frozenset() if value is None else frozenset((value,))

    def plus(self, left: Any, right: Any) -> Any:
        return left | right

    def present(self, state: Any) -> Any:
        return len(state)


@dataclass(frozen=True)
class Ranked(Measure):
    """Values by rank: exact up to EXACT_RANKS values, a KLL sketch above."""

    takes: ClassVar[tuple[str, ...]] = (*INTEGERS, "DOUBLE")
    approximate: ClassVar[bool] = True

    @property
    def zero(self) -> Any:
        return ()

    @property
    def monoid(self) -> tuple[Any, ...]:
        return ("ranks",)

    @property
    def ranks(self) -> tuple[float, ...]:
        """List the ranks asked for."""
        raise NotImplementedError

    def check(self, input: str) -> None:
        super().check(input)
        for at in self.ranks:
            if not 0 <= at <= 1:
                raise DefinitionError(
                    f"{self.kind} at {at} is not between 0 and 1.", hint="write 0.95, not 95."
                )

    def parts(self, input: str) -> tuple[Part, ...]:
        return (Part("values", "ARRAY<DOUBLE>"), Part("kll", "BINARY"))

    def prepare(self, value: Any, place: Place | None = None) -> Any:
        return () if value is None else (float(value),)

    def plus(self, left: Any, right: Any) -> Any:
        return tuple(sorted(left + right))


def value_at(ordered: Sequence[float], at: float) -> float:
    """Return the smallest of some ordered values whose rank, itself included, reaches ``at``."""
    return ordered[max(math.ceil(at * len(ordered)) - 1, 0)]


@dataclass(frozen=True)
class Quantile(Ranked):
    """The value below which a share of the values lies; NULL when there is none."""

    at: float = 0.5
    """The share, 0 to 1."""
    kind: ClassVar[str] = "quantile"

    @property
    def ranks(self) -> tuple[float, ...]:
        return (self.at,)

    def result(self, input: str) -> str:
        return "DOUBLE"

    def present(self, state: Any) -> Any:
        return value_at(state, self.at) if state else None


@dataclass(frozen=True)
class Quantiles(Ranked):
    """Values at several ranks, in the order asked for, from one state; NULL when there is none."""

    at: Sequence[float] = ()
    """The shares, 0 to 1 each."""
    kind: ClassVar[str] = "quantiles"

    @property
    def ranks(self) -> tuple[float, ...]:
        return tuple(self.at)

    def check(self, input: str) -> None:
        super().check(input)
        if not self.ranks:
            raise DefinitionError("quantiles needs at least one rank.", hint="list some: [0.5, 0.95].")

    def result(self, input: str) -> str:
        return "ARRAY<DOUBLE>"

    def present(self, state: Any) -> Any:
        return [value_at(state, at) for at in self.ranks] if state else None


@dataclass(frozen=True)
class Top(Measure):
    """The ``k`` most frequent values with their counts, the most frequent first, equals by value.

    Exact while a group has at most ``capacity`` different values. Above, counts are too low by at most
    ``error``, itself at most rows / (capacity + 1): the mergeable summary of Misra and Gries, merged after
    Agarwal et al., Mergeable Summaries (2012).
    """

    k: int = 10
    """How many values to present."""
    kind: ClassVar[str] = "top"
    takes: ClassVar[tuple[str, ...]] = ("STRING", *INTEGERS, "DECIMAL", "DATE", "TIMESTAMP", "BOOLEAN")
    approximate: ClassVar[bool] = True

    @property
    def zero(self) -> Any:
        return frozenset()

    @property
    def capacity(self) -> int:
        """Say how many different values a state keeps."""
        return max(TOP_CAPACITY, 8 * self.k)

    @property
    def monoid(self) -> tuple[Any, ...]:
        return (self.kind, self.capacity)

    def check(self, input: str) -> None:
        super().check(input)
        if not 1 <= self.k <= TOP_MOST:
            raise DefinitionError(
                f"top {self.k} is not between 1 and {TOP_MOST}.",
                hint="to count every value, add it to the keys of a view.",
            )

    def parts(self, input: str) -> tuple[Part, ...]:
        return (Part("items", f"ARRAY<STRUCT<value: {input}, n: BIGINT>>"), Part("error", "BIGINT"))

    def result(self, input: str) -> str:
        return f"ARRAY<STRUCT<value: {input}, count: BIGINT, error: BIGINT>>"

    def prepare(self, value: Any, place: Place | None = None) -> Any:
        return frozenset() if value is None else frozenset({(value, 1)})

    def plus(self, left: Any, right: Any) -> Any:
        return frozenset((Counter(dict(left)) + Counter(dict(right))).items())

    def present(self, state: Any) -> Any:
        ordered = sorted(sorted(state), key=lambda item: -item[1])
        return [{"value": value, "count": n, "error": 0} for value, n in ordered[: self.k]]
