"""Laws of every measure, and meanings computed by hand: laws alone do not tell a mean from nonsense."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamline.model.errors import DefinitionError
from seamline.model.measures import MEASURES, Average, Count, Measure, Quantile, avg, count, quantile
from seamline.model.measures import distinct as distinct_of
from seamline.model.measures import max as max_of
from seamline.model.measures import min as min_of
from seamline.model.measures import sum as sum_of

VALUES = st.lists(st.one_of(st.none(), st.integers(-(2**40), 2**40)), max_size=30)
ALL = [measure("x") for measure in MEASURES]


def name(measure: Measure) -> str:
    return measure.kind


@pytest.mark.parametrize("measure", ALL, ids=name)
@given(left=VALUES, right=VALUES)
def test_any_cut_gives_the_same_state(
    measure: Measure, left: list[int | None], right: list[int | None]
) -> None:
    """Where the seam falls cannot change the answer."""
    assert measure.fold(left + right) == measure.plus(measure.fold(left), measure.fold(right))


@pytest.mark.parametrize("measure", ALL, ids=name)
@given(left=VALUES, right=VALUES)
def test_plus_commutes(measure: Measure, left: list[int | None], right: list[int | None]) -> None:
    """Tasks and epochs are merged in any order."""
    one, other = measure.fold(left), measure.fold(right)
    assert measure.plus(one, other) == measure.plus(other, one)


@pytest.mark.parametrize("measure", ALL, ids=name)
@given(values=VALUES)
def test_zero_is_identity(measure: Measure, values: list[int | None]) -> None:
    """A side without rows adds nothing."""
    state = measure.fold(values)
    assert measure.plus(state, measure.zero) == state == measure.plus(measure.zero, state)


@given(values=st.lists(st.integers(-1000, 1000), min_size=1), cut=st.integers(0, 50))
def test_average_weighs_uneven_chunks(values: list[int], cut: int) -> None:
    """An average of averages passes every law of a monoid; only this catches it."""
    measure = Average("x")
    state = measure.plus(measure.fold(values[:cut]), measure.fold(values[cut:]))
    assert measure.present(state) == float(Fraction(sum(values), len(values)))


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        (count(), 5),
        (count("x"), 4),
        (sum_of("x"), 17),
        (avg("x"), 4.25),
        (min_of("x"), 1),
        (max_of("x"), 10),
        (distinct_of("x"), 3),
        (quantile("x", 0.5), 3.0),
        (quantile("x", 1.0), 10.0),
    ],
    ids=lambda value: repr(value),
)
def test_meaning_by_hand(measure: Measure, expected: float) -> None:
    """Each measure of [3, NULL, 10, 3, 1], worked out on paper."""
    assert measure.present(measure.fold([3, None, 10, 3, 1])) == expected


@pytest.mark.parametrize(
    ("measure", "expected"),
    [(count(), 0), (sum_of("x"), None), (avg("x"), None), (min_of("x"), None), (quantile("x", 0.9), None)],
    ids=lambda value: repr(value),
)
def test_nothing_is_not_zero(measure: Measure, expected: float | None) -> None:
    """SQL's answer over no rows: a count of zero, and NULL for what needs a value."""
    assert measure.present(measure.zero) == expected


def test_types_are_checked() -> None:
    """A mean of text is refused before anything runs."""
    with pytest.raises(DefinitionError, match="avg"):
        Average("x").check("STRING")
    with pytest.raises(DefinitionError, match="not between 0 and 1"):
        Quantile("x", 95).check("DOUBLE")
    assert Count("x").parts("STRING")[0].type == "BIGINT"
