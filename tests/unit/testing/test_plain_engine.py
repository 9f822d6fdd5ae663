"""The dull engine of ``seamline.testing``: it plans as the shipped one does, and its work does not grow twice."""

from __future__ import annotations

from typing import Any

import pytest

from seamline import (
    Batch,
    Expect,
    KafkaSource,
    Pipeline,
    Tumbling,
    View,
    collect_distinct,
    count,
    quantile,
    top,
)
from seamline.model.errors import CertificateFailed
from seamline.model.measures import Measure
from seamline.testing import Scenario


def shop(*expect: Expect, **batch: Any) -> Pipeline:
    return Pipeline(
        name="shop",
        source=KafkaSource(topic="sales", schema="amount BIGINT, at TIMESTAMP", event_time="at"),
        views=[View("sales", keys=[], window=Tumbling("1 day"), measures={"orders": count()}, expect=expect)],
        batch=Batch("1 day", "2024-01-01", **batch),
    )


def test_a_run_of_dirty_intervals_takes_as_many_as_a_run_may() -> None:
    """A scenario that publishes all at once hides what a pipeline with max_dirty does on its first day."""
    life = Scenario(shop(max_dirty=2), now="2024-01-10")
    for day in range(1, 9):
        life.send({"amount": day, "at": f"2024-01-{day:02}T12:00:00Z"})
    life.epoch()
    assert [len(life.batch()) for _ in range(3)] == [2, 2, 2]


def test_an_unexpected_value_is_named_with_its_window() -> None:
    """Whoever reads why a build was held back looks for one number, not for the repr of a row."""
    life = Scenario(shop(Expect("orders", at_least=2)), now="2024-01-10")
    life.send({"amount": 1, "at": "2024-01-01T12:00:00Z"}, {"amount": 1, "at": "2024-01-02T12:00:00Z"})
    life.epoch()
    with pytest.raises(CertificateFailed) as held_back:
        life.batch()
    told = "sales 2024-01-01T00:00:00Z: expectations: orders is 1 (window 2024-01-01T00:00:00Z)"
    assert str(held_back.value).splitlines()[0] == told


def test_the_state_of_many_values_is_not_copied_for_each() -> None:
    """Sorted anew for each value, the ranks of one session of 31,000 events took minutes."""
    seen = 0

    def counting(measure: Measure) -> Measure:
        class Counted(type(measure)):  # type: ignore[misc]
            def plus(self, left: Any, right: Any) -> Any:
                nonlocal seen
                found = super().plus(left, right)
                seen += len(found[0] if isinstance(found[0], tuple) else found)
                return found

        return Counted(**vars(measure))

    for measure in (quantile("amount", 0.5), collect_distinct("amount", limit=10_000)):
        seen = 0
        values = [float(at) for at in range(1024)]
        assert counting(measure).fold(values) == measure.fold(values)
        assert seen <= 12 * len(values)
    assert top("amount", 2).fold(["a", "b", "a"]) == frozenset({("a", 2), ("b", 1)})
