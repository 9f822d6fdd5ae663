"""Measures that present more than one number: counts per bucket, and the values themselves."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from typing import Any, ClassVar

from seamline.model.errors import DefinitionError
from seamline.model.measures.monoid import INTEGERS, NUMBERS, Measure, Part, Place

MOST_EDGES = 100
MOST_VALUES = 10_000


@dataclass(frozen=True)
class Histogram(Measure):
    """Counts per bucket: below the first edge, from each edge up to the next, at or above the last."""

    edges: Sequence[float] = ()
    """The edges between buckets, ascending."""
    kind: ClassVar[str] = "histogram"
    takes: ClassVar[tuple[str, ...]] = NUMBERS

    @property
    def zero(self) -> Any:
        return (0,) * (len(self.edges) + 1)

    @property
    def monoid(self) -> tuple[Any, ...]:
        return (self.kind, *self.edges)

    def check(self, input: str) -> None:
        super().check(input)
        rising = all(low < high for low, high in pairwise(self.edges)) and all(map(isfinite, self.edges))
        if not rising or not 1 <= len(self.edges) <= MOST_EDGES:
            raise DefinitionError(
                f"The edges {list(self.edges)} are not 1 to {MOST_EDGES} increasing numbers.",
                hint="histogram(of, edges=[0, 15, 60]) counts below 0, 0 to 15, 15 to 60, and from 60 on.",
            )

    def parts(self, input: str) -> tuple[Part, ...]:
        return tuple(Part(f"n{at}", "BIGINT") for at in range(len(self.edges) + 1))

    def result(self, input: str) -> str:
        return "ARRAY<BIGINT>"

    def prepare(self, value: Any, place: Place | None = None) -> Any:
        bucket = None if value is None else bisect_right(self.edges, float(value))
        return tuple(int(at == bucket) for at in range(len(self.edges) + 1))

    def plus(self, left: Any, right: Any) -> Any:
        return tuple(one + other for one, other in zip(left, right, strict=True))

    def present(self, state: Any) -> Any:
        return list(state)


@dataclass(frozen=True)
class CollectDistinct(Measure):
    """The different values in order, up to the ``limit`` smallest; ``truncated`` says that there are more."""

    limit: int = 100
    """The most values that are kept."""
    kind: ClassVar[str] = "collect_distinct"
    takes: ClassVar[tuple[str, ...]] = ("STRING", *INTEGERS, "DECIMAL", "DATE", "TIMESTAMP", "BOOLEAN")

    @property
    def zero(self) -> Any:
        return ((), False)

    @property
    def monoid(self) -> tuple[Any, ...]:
        return (self.kind, self.limit)

    def check(self, input: str) -> None:
        super().check(input)
        if not 1 <= self.limit <= MOST_VALUES:
            raise DefinitionError(
                f"A limit of {self.limit} is not between 1 and {MOST_VALUES}.",
                hint="use distinct(of) to count more values than can be kept.",
            )

    def parts(self, input: str) -> tuple[Part, ...]:
        return (Part("values", f"ARRAY<{input}>"), Part("truncated", "BOOLEAN"))

    def result(self, input: str) -> str:
        return f"STRUCT<values: ARRAY<{input}>, truncated: BOOLEAN>"

    def prepare(self, value: Any, place: Place | None = None) -> Any:
        return ((() if value is None else (value,)), False)

    def plus(self, left: Any, right: Any) -> Any:
        values = sorted({*left[0], *right[0]})
        return (tuple(values[: self.limit]), left[1] or right[1] or len(values) > self.limit)

    def present(self, state: Any) -> Any:
        return {"values": list(state[0]), "truncated": state[1]}
