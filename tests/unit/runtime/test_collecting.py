"""A process that keeps very many objects looks at new ones only, and still frees what code leaves behind in cycles."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from seamline.runtime.collecting import WHOLE, YOUNG, SparingCollector


class Knot:
    """Refers to itself."""

    def __init__(self) -> None:
        self.own = self


@pytest.fixture(autouse=True)
def collector_is_back() -> Iterator[None]:
    yield
    gc.enable()


def test_a_cycle_is_freed_after_a_few_turns() -> None:
    """Nothing else looks for it."""
    collector = SparingCollector()
    left = weakref.ref(Knot())
    for _ in range(YOUNG - 1):
        collector.collect()
    assert left() is not None
    collector.collect()
    assert left() is None


def test_a_cycle_that_was_in_use_is_freed_in_the_end() -> None:
    """Objects that have been looked at are looked at again, but seldom."""
    collector, knot = SparingCollector(), Knot()
    left = weakref.ref(knot)
    for _ in range(YOUNG):
        collector.collect()
    del knot
    while (collector.turns + 1) % WHOLE:
        collector.collect()
    assert left() is not None
    collector.collect()
    assert left() is None
