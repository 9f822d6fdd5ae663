"""Scales: what is larger is never drawn lower, whatever the numbers are."""

from __future__ import annotations

import math
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from seamline.web.drawn.scales import Scale, ScaleKind, as_place, format_short, list_drawable, spread

NUMBERS = st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=8)


@given(values=NUMBERS, log=st.booleans())
def test_what_is_larger_is_never_lower(values: list[float], log: bool) -> None:
    """Every number that is drawn has a place from 0 to 1, and no two change their order; also huge and tiny ones."""
    scale = Scale.fit(values, log=log)
    places = [scale.place(each) for each in sorted(values)]
    assert places == sorted(places)
    assert all(0 <= each <= 1 for each in places)
    assert 0 <= scale.step(values[0], 7) < 7


@given(values=NUMBERS, log=st.booleans())
def test_ticks_are_within_the_scale(values: list[float], log: bool) -> None:
    """A tick beside the drawing would be written over what is next to it, and too many over each other."""
    scale = Scale.fit(values, log=log)
    found = scale.ticks(4)
    assert found == sorted({*found})
    assert all(scale.low <= each <= scale.high for each in found)
    assert len(found) <= 7


@given(
    values=st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=8), log=st.booleans(), place=st.floats(0, 1)
)
def test_a_legend_says_the_value_of_its_place(values: list[float], log: bool, place: float) -> None:
    """What is written at a border of two colours has its place there."""
    scale = Scale.fit(values, log=log)
    if scale.high - scale.low > 1e-3 and (scale.kind is not ScaleKind.SYMLOG or scale.linear_to > 1e-6):
        assert scale.place(scale.value_at(place)) == pytest.approx(place, abs=1e-6)


@given(values=NUMBERS, log=st.booleans(), place=st.floats(0, 1))
@example(values=[1.0, sys.float_info.max], log=True, place=1.0)
def test_a_legend_is_within_the_scale(values: list[float], log: bool, place: float) -> None:
    """Also of the largest numbers there are, of which a power of ten is too large for a double."""
    scale = Scale.fit(values, log=log)
    assert scale.low <= scale.value_at(place) <= scale.high


def test_zero_and_less_have_a_place_on_a_logarithmic_scale() -> None:
    """They were left out by the chart library; a reader is told how they are drawn."""
    assert Scale.fit([1, 1000], log=True).kind is ScaleKind.LOG
    scale = Scale.fit([-500, 0, 20, 1000], log=True)
    assert scale.kind is ScaleKind.SYMLOG and scale.linear_to == 10
    assert "from -10 to 10" in scale.told()
    places = [scale.place(each) for each in (-500, 0, 20, 1000)]
    assert places[0] == 0 and places[3] == 1 and places[1] < places[2]
    # By hand: powers of ten outside of what is linear, and zero.
    assert scale.ticks(8) == [-100, 0, 100, 1000]


def test_equal_values_are_in_the_middle() -> None:
    """A constant is neither the least nor the greatest."""
    assert Scale.fit([7, 7]).place(7) == 0.5
    assert Scale.fit([], zero=True).ticks()[0] == 0


def test_round_values_are_written() -> None:
    """Steps of 1, 2 and 5, as people count."""
    assert Scale(0, 1040).ticks(3) == [0, 500, 1000]
    assert Scale(-293, 1056).ticks(3) == [0, 500, 1000]
    assert list(spread(Scale(0, 70), 8)) == pytest.approx([0, 10, 20, 30, 40, 50, 60, 70])


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (950, "950"), (1250, "1,250"), (12_500, "12.5k"), (-3_200_000, "-3.2M"), (0.12345, "0.123")],
)
def test_numbers_fit_into_cells(value: float, text: str) -> None:
    """As many characters as a cell has room for."""
    assert format_short(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (999.4, "999"), (999.6, "1,000"), (999_400, "999k"), (-999_600, "-1M"), (999_999_999, "1G"),
        (9.999e11, "1T"), (9.999e14, "1,000T"), (1e15, "1,000T"),
    ],
)  # fmt: skip
def test_what_is_rounded_up_to_a_thousand_has_no_exponent(value: float, text: str) -> None:
    """It was written as 1e+03k, which nobody reads as a million."""
    assert format_short(value) == text


def test_what_has_no_place_is_not_drawn() -> None:
    """NULL and what is infinite are said, and are no zeros."""
    assert as_place(None) is None and as_place(math.nan) is None
    assert list_drawable([None, 1, math.inf, 2.5]) == [1, 2.5]
