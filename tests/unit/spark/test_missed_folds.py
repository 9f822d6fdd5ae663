"""How far a view of a process catches up at once."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from seamline.model.protocol.epoch import Epoch
from seamline.spark.stream.catch_up import Step, step_to_edge

AT = datetime(2026, 1, 5, tzinfo=UTC)


@pytest.mark.parametrize(("edges", "last"), [((), 9), ((2,), 9), ((5,), 5), ((4, 6), 4), ((9,), 9)])
def test_a_block_ends_at_the_next_edge(edges: tuple[int, ...], last: int) -> None:
    """What it changes is one set of slices, and an interval may be built up to any edge."""
    log = [Epoch(number, 1, AT, "v", edge=number in edges) for number in range(10)]
    ledger = SimpleNamespace(
        read_after=lambda above, until: [each for each in log if above < each.number <= until]
    )
    writer: Any = SimpleNamespace(ledger=ledger)
    assert step_to_edge(writer, Step(2, 9)) == Step(2, last)
