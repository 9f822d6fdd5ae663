"""Which of several is the last, known as soon as there is no other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def with_last(parts: Iterable[T]) -> Iterator[tuple[T, bool]]:
    """Give each part with whether it is the last."""
    waiting: list[T] = []
    for part in parts:
        yield from ((each, False) for each in waiting)
        waiting = [part]
    yield from ((each, True) for each in waiting)
