"""Laws of every measure, and meanings computed by hand: laws alone do not tell a mean from nonsense."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit import own_measures

from seamline.model.errors import DefinitionError
from seamline.model.measures import (
    MEASURES,
    Average,
    CollectDistinct,
    Count,
    Histogram,
    Measure,
    Own,
    Place,
    Quantile,
    Quantiles,
    Sum,
    Top,
    Variance,
    avg,
    collect_distinct,
    count,
    count_true,
    first,
    histogram,
    last,
    own,
    present_all,
    quantile,
    quantiles,
    ratio,
    stddev,
    top,
    variance,
)
from seamline.model.measures import distinct as distinct_of
from seamline.model.measures import max as max_of
from seamline.model.measures import min as min_of
from seamline.model.measures import sum as sum_of

START = datetime(2024, 1, 1, tzinfo=UTC)
PLACES = st.tuples(
    st.integers(0, 3).map(lambda hours: START + timedelta(hours=hours)),
    st.integers(0, 2),
    st.integers(0, 9),
    st.integers(0, 2),
)
ROWS = st.lists(st.tuples(st.none() | st.integers(-(2**40), 2**40), PLACES), max_size=12)
Rows = list[tuple[int | None, Place]]
ALL = [measure("x") for measure in MEASURES if measure is not Own] + [own("x", own_measures.Span)]
ALL += [Histogram("x", (-5, 0, 10**6)), CollectDistinct("x", 3), Quantiles("x", (0.5, 0.9))]
EPSILON = 2.0**-53


def name(measure: Measure) -> str:
    return measure.kind


def folded(measure: Measure, rows: Rows) -> Any:
    return measure.fold([value for value, _ in rows], [place for _, place in rows])


def same(measure: Measure, one: Any, other: Any) -> bool:
    """States are equal, but for the rounding of moments."""
    if not isinstance(measure, Variance):
        return bool(one == other)
    return one[0] == other[0] and all(
        math.isclose(x, y, rel_tol=1e-9, abs_tol=1e-3) for x, y in zip(one[1:], other[1:], strict=True)
    )


@pytest.mark.parametrize("measure", ALL, ids=name)
@given(left=ROWS, right=ROWS)
def test_any_cut_gives_the_same_state(measure: Measure, left: Rows, right: Rows) -> None:
    """Where the seam falls cannot change the answer."""
    together = measure.plus(folded(measure, left), folded(measure, right))
    assert same(measure, folded(measure, left + right), together)


@pytest.mark.parametrize("measure", ALL, ids=name)
@given(left=ROWS, right=ROWS)
def test_plus_commutes(measure: Measure, left: Rows, right: Rows) -> None:
    """Tasks and epochs are merged in any order."""
    one, other = folded(measure, left), folded(measure, right)
    assert same(measure, measure.plus(one, other), measure.plus(other, one))


@pytest.mark.parametrize("measure", ALL, ids=name)
@given(rows=ROWS)
def test_zero_is_identity(measure: Measure, rows: Rows) -> None:
    """A side without rows adds nothing."""
    state = folded(measure, rows)
    assert measure.plus(state, measure.zero) == state == measure.plus(measure.zero, state)


DOUBLES = st.lists(st.floats(-1e200, 1e200), min_size=1, max_size=30)


@given(values=DOUBLES, cut=st.integers(0, 30), data=st.data())
def test_the_order_of_a_sum_hardly_shows(values: list[float], cut: int, data: st.DataObject) -> None:
    """Two layers add doubles in two orders; both are within 4 * 2**-53 of the sum of magnitudes."""
    mixed = data.draw(st.permutations(values))
    measure = Sum("x")
    got = measure.present(measure.plus(measure.fold(mixed[:cut]), measure.fold(mixed[cut:])))
    exact = sum(map(Fraction, values), Fraction(0))
    assert abs(Fraction(got) - exact) <= 4 * Fraction(EPSILON) * sum(abs(Fraction(each)) for each in values)


@given(values=st.lists(st.integers(-1000, 1000), min_size=2), shift=st.sampled_from([0, 10**6, -(10**9)]))
def test_a_variance_survives_a_large_mean(values: list[int], shift: int) -> None:
    """The textbook's sum of squares minus the square of the sum loses every digit here."""
    measure = Variance("x")
    mean = Fraction(sum(values), len(values))
    exact = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    got = measure.present(measure.fold([value + shift for value in values]))
    assert math.isclose(got, exact, rel_tol=1e-6, abs_tol=1e-6)


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
        (quantiles("x", [1.0, 0.5]), [10.0, 3.0]),
        (first("x"), 3),
        (last("x"), 1),
        (variance("x"), 187 / 12),
        (variance("x", ddof=0), 11.6875),
        (stddev("x", ddof=0), math.sqrt(11.6875)),
        (histogram("x", [1, 3, 5]), [0, 1, 2, 1]),
        (histogram("x", [10]), [3, 1]),
        (collect_distinct("x", limit=3), {"values": [1, 3, 10], "truncated": False}),
        (collect_distinct("x", limit=2), {"values": [1, 3], "truncated": True}),
        (
            top("x", 2),
            [{"value": 3, "count": 2, "error": 0}, {"value": 1, "count": 1, "error": 0}],
        ),
    ],
    ids=lambda value: repr(value),
)
def test_meaning_by_hand(measure: Measure, expected: float) -> None:
    """Each measure of [3, NULL, 10, 3, 1], in this order of their offsets, worked out on paper."""
    rows: Rows = [(value, (START, 0, at, 0)) for at, value in enumerate([3, None, 10, 3, 1])]
    assert measure.present(folded(measure, rows)) == expected


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        (count(), 0),
        (count_true("x > 1"), 0),
        (sum_of("x"), None),
        (avg("x"), None),
        (min_of("x"), None),
        (quantile("x", 0.9), None),
        (quantiles("x", [0.9]), None),
        (first("x"), None),
        (variance("x"), None),
        (stddev("x"), None),
        (distinct_of("x"), 0),
        (top("x", 3), []),
        (histogram("x", [0]), [0, 0]),
        (collect_distinct("x"), {"values": [], "truncated": False}),
    ],
    ids=lambda value: repr(value),
)
def test_nothing_is_not_zero(measure: Measure, expected: float | None) -> None:
    """SQL's answer over no rows: a count of zero, and NULL for what needs a value."""
    assert measure.present(measure.zero) == expected


def test_first_and_last_go_by_event_time_partition_and_offset() -> None:
    """Not by arrival: a late row may be the first. A NULL is nobody's first; items go by their order."""
    rows: Rows = [
        (1, (START, 1, 7, 0)),
        (7, (START, 0, 9, 1)),
        (2, (START, 0, 9, 0)),
        (None, (START - timedelta(hours=1), 0, 1, 0)),
        (4, (START + timedelta(hours=1), 0, 3, 1)),
        (9, (START + timedelta(hours=1), 0, 3, 0)),
        (5, (START + timedelta(hours=1), 0, 2, 2)),
    ]
    assert first("x").present(folded(first("x"), rows)) == 2
    assert last("x").present(folded(last("x"), rows)) == 4


def test_a_ratio_divides_what_is_presented() -> None:
    """Late flights of all flights; of no flights it is not zero."""
    measures = {"late": count_true("x"), "all": count(), "share": ratio("late", "all")}
    assert present_all(measures, {"late": 1, "all": 4, "share": None})["share"] == 0.25
    assert present_all(measures, {"late": 0, "all": 0, "share": None})["share"] is None


@pytest.mark.parametrize(
    ("measure", "input", "fact"),
    [
        (Average("x"), "STRING", "avg"),
        (Quantile("x", 95), "DOUBLE", "not between 0 and 1"),
        (Quantiles("x", ()), "DOUBLE", "at least one rank"),
        (Variance("x", 2), "DOUBLE", "ddof 2"),
        (Histogram("x", ()), "DOUBLE", "increasing"),
        (Histogram("x", (3, 3)), "DOUBLE", "increasing"),
        (Histogram("x", (0, math.inf)), "DOUBLE", "increasing"),
        (CollectDistinct("x", 0), "STRING", "limit of 0"),
        (CollectDistinct("x"), "DOUBLE", "the expression is DOUBLE"),
        (Top("x", 0), "STRING", "top 0"),
        (Top("x"), "DOUBLE", "the expression is DOUBLE"),
    ],
    ids=lambda value: repr(value),
)
def test_what_has_no_meaning_is_refused(measure: Measure, input: str, fact: str) -> None:
    """Before anything runs, with a way out."""
    with pytest.raises(DefinitionError, match=fact) as found:
        measure.check(input)
    assert found.value.hint
    assert Count("x").parts("STRING")[0].type == "BIGINT"
