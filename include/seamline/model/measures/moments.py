"""Variance and standard deviation, by a merge that does not lose what is small beside the mean."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from seamline.model.errors import DefinitionError
from seamline.model.measures.monoid import NUMBERS, Measure, Part, Place


@dataclass(frozen=True)
class Variance(Measure):
    """Mean squared distance from the mean, over ``n - ddof``; NULL where that is not above zero.

    The state is (n, mean, sum of squared distances), merged after Chan, Golub and LeVeque (1979).
    """

    ddof: int = 1
    """What is subtracted from n: 1 for a sample's, 0 for a population's."""
    kind: ClassVar[str] = "variance"
    takes: ClassVar[tuple[str, ...]] = NUMBERS

    @property
    def zero(self) -> Any:
        return (0, 0.0, 0.0)

    @property
    def monoid(self) -> tuple[Any, ...]:
        return ("moments",)

    def check(self, input: str) -> None:
        super().check(input)
        if self.ddof not in (0, 1):
            raise DefinitionError(
                f"{self.kind} with ddof {self.ddof} has no meaning.",
                hint="1 for a sample, 0 for a whole population.",
            )

    def parts(self, input: str) -> tuple[Part, ...]:
        return (Part("n", "BIGINT"), Part("mean", "DOUBLE"), Part("m2", "DOUBLE"))

    def result(self, input: str) -> str:
        return "DOUBLE"

    def prepare(self, value: Any, place: Place | None = None) -> Any:
        return self.zero if value is None else (1, float(value), 0.0)

    def plus(self, left: Any, right: Any) -> Any:
        if not left[0] or not right[0]:
            return left if left[0] else right
        n, apart = left[0] + right[0], right[1] - left[1]
        mean = (left[0] * left[1] + right[0] * right[1]) / n
        return (n, mean, left[2] + right[2] + apart * apart * (left[0] * right[0] / n))

    def present(self, state: Any) -> Any:
        n, _, m2 = state
        return m2 / (n - self.ddof) if n > self.ddof else None


@dataclass(frozen=True)
class Deviation(Variance):
    """Square root of the variance."""

    kind: ClassVar[str] = "stddev"

    def present(self, state: Any) -> Any:
        variance = super().present(state)
        return None if variance is None else math.sqrt(variance)
