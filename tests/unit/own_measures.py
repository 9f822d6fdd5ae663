"""Classes for ``own``: measures that keep the laws, and some that break one each."""

from __future__ import annotations

import math
from typing import Any


class Span:
    """How far the largest value is from the smallest."""

    state = "low DOUBLE, high DOUBLE"
    result = "DOUBLE"

    def prepare(self, value: float) -> tuple[float, float]:
        return (value, value)

    def plus(self, left: tuple[float, float], right: tuple[float, float]) -> tuple[float, float]:
        return (min(left[0], right[0]), max(left[1], right[1]))

    def present(self, state: tuple[float, float]) -> float:
        return state[1] - state[0]


class GeometricMean:
    """Mean of the logarithms of what is above zero, taken back; what is not adds nothing."""

    state = "logs DOUBLE, n BIGINT"
    result = "DOUBLE"

    def prepare(self, value: float) -> tuple[float, int] | None:
        return (math.log(value), 1) if value > 0 else None

    def plus(self, left: tuple[float, int], right: tuple[float, int]) -> tuple[float, int]:
        return (left[0] + right[0], left[1] + right[1])

    def present(self, state: tuple[float, int]) -> float:
        return math.exp(state[0] / state[1])


class Letters:
    """The different letters of all texts and the longest text, nested in state and result."""

    state = "letters ARRAY<STRING>, longest STRUCT<text: STRING, size: INT>"
    result = "STRUCT<letters: ARRAY<STRING>, longest: STRING>"

    def prepare(self, value: str) -> tuple[Any, ...]:
        return (sorted(set(value)), {"text": value, "size": len(value)})

    def plus(self, left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
        longest = max(left[1], right[1], key=lambda each: (each["size"], each["text"]))
        return (sorted({*left[0], *right[0]}), longest)

    def present(self, state: tuple[Any, ...]) -> dict[str, Any]:
        return {"letters": state[0], "longest": state[1]["text"]}


class MeanOfMeans(Span):
    """Forgets how many values a mean is of."""

    state = "mean DOUBLE"

    def prepare(self, value: float) -> Any:
        return (value,)

    def plus(self, left: Any, right: Any) -> Any:
        return ((left[0] + right[0]) / 2,)

    def present(self, state: Any) -> Any:
        return state[0]


class Latest(MeanOfMeans):
    """Takes what comes last."""

    def plus(self, left: Any, right: Any) -> Any:
        return right


class Gathering(MeanOfMeans):
    """Changes the state that it is given."""

    state = "found ARRAY<DOUBLE>"

    def prepare(self, value: float) -> Any:
        return ([value],)

    def plus(self, left: Any, right: Any) -> Any:
        left[0].extend(right[0])
        return left

    def present(self, state: Any) -> Any:
        return sum(state[0])


class Drifting(MeanOfMeans):
    """Is another each time it is asked."""

    asked = 0

    def prepare(self, value: float) -> Any:
        self.asked += 1
        return (value + self.asked,)


class Inverse(MeanOfMeans):
    """Has no answer for zero."""

    def prepare(self, value: float) -> Any:
        return (1 / value,)


class Mistyped(MeanOfMeans):
    """Gives a number where a text was promised."""

    state = "mean STRING"


class Short(MeanOfMeans):
    """Gives no tuple."""

    def prepare(self, value: float) -> Any:
        return value


class Bare:
    """Has nothing."""


class Mapped(Span):
    """Keeps a map."""

    result = "MAP<STRING, INT>"


class Asking(Span):
    """Wants an argument."""

    def __init__(self, size: int) -> None:
        self.size = size


class Nameless(Span):
    """Keeps what no two runs can compare."""

    place = object()


class Fragile(Span):
    """Prepares everything, and cannot merge what is large: small values do not show it."""

    def plus(self, left: tuple[float, float], right: tuple[float, float]) -> tuple[float, float]:
        if left[1] > 10**6:
            raise OverflowError("too large")
        return super().plus(left, right)
