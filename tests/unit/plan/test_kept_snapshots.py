"""Which snapshots are kept: some of each age, so that a late row's past begins not far before it."""

from __future__ import annotations

import math

import pytest

from seamline.plan.stream.kept_snapshots import SHORTEST, choose_kept_snapshots

HOUR = 3600 * 10**6


@pytest.mark.parametrize("step", [SHORTEST, SHORTEST // 7, SHORTEST * 5])
def test_a_snapshot_of_each_age_is_there_at_any_time(step):
    """Of a day, a few dozen at most, and the next one before a row is at most four times as far back."""
    kept: set[int] = set()
    for now in range(0, 30 * HOUR, step):
        kept = choose_kept_snapshots({*kept, now}, 24 * HOUR)
        assert now in kept and len(kept) <= 2 * (2 + math.log2(24 * HOUR / SHORTEST))
        for age in (SHORTEST, HOUR // 10, HOUR, 5 * HOUR):
            if now - age >= 2 * step:
                before = min(now - each for each in kept if each <= now - age)
                assert before <= 4 * age + 2 * step, (now, age)


def test_none_is_kept_that_no_row_of_a_span_needs():
    """But for the newest, from which the fold goes on."""
    assert choose_kept_snapshots([], HOUR) == set()
    assert choose_kept_snapshots([5], HOUR) == {5}
    assert choose_kept_snapshots([0, HOUR, 2 * HOUR + 1], HOUR) == {2 * HOUR + 1}
    assert choose_kept_snapshots([-5 * HOUR, -4 * HOUR], HOUR) == {-5 * HOUR, -4 * HOUR}
