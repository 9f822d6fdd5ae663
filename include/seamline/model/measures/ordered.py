"""The first and the last value: by event time, partition, offset, and the item of an exploded record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from seamline.model.measures.monoid import Part, Place
from seamline.model.measures.plain import Minimum


@dataclass(frozen=True)
class First(Minimum):
    """Value of the earliest row in which it is not NULL; the state carries the row's place.

    Rows of one place (two topics in one pipeline) are distinguished by the value itself.
    """

    kind: ClassVar[str] = "first"

    def parts(self, input: str) -> tuple[Part, ...]:
        time, partition = Part("time", "TIMESTAMP"), Part("partition", "INT")
        return (Part("value", input), time, partition, Part("offset", "BIGINT"), Part("ordinal", "INT"))

    def prepare(self, value: Any, place: Place | None = None) -> Any:
        return None if value is None else (place, value)

    def present(self, state: Any) -> Any:
        return state and state[1]


@dataclass(frozen=True)
class Last(First):
    """Value of the latest row in which it is not NULL."""

    kind: ClassVar[str] = "last"

    def pick(self, left: Any, right: Any) -> Any:
        return max(left, right)
