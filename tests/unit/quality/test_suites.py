"""Suites of Great Expectations: what is evaluated, what a failure says, and what holds an interval back."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from seamline import Batch, ExpectationSuite, KafkaSource, Pipeline, Tumbling, View, count, max
from seamline.model.compile.compiled_pipeline import CompiledView, compile_pipeline
from seamline.model.compile.stored_definition import from_json, to_json
from seamline.quality.suites import (
    count_suite_expectations,
    evaluate_suites,
    import_great_expectations,
    import_in_background,
)

pytestmark = pytest.mark.slow
MEDIAN = {"type": "expect_column_median_to_be_between", "kwargs": {"column": "large", "max_value": 5}}
OWN = '''
from great_expectations.expectations import ExpectColumnValuesToBeInSet


class ExpectColumnValuesToBeShops(ExpectColumnValuesToBeInSet):
    """Shops that there are."""

    value_set: list = ["a"]
'''


def sales(*expect: ExpectationSuite) -> Pipeline:
    """Make a pipeline of the largest cost by shop."""
    source = KafkaSource("sales", "shop STRING, cost DOUBLE, at TIMESTAMP NOT NULL", "at")
    view = View("by_shop", ["shop"], Tumbling("1 hour"), {"n": count(), "large": max("cost")}, expect=expect)
    return Pipeline("sales", source, [view], Batch("1 day", "2024-01-01"))


def view_of(*suites: ExpectationSuite) -> CompiledView:
    """Compile its view."""
    return compile_pipeline(sales(*suites)).views[0]


def rows(**days: Sequence[Any]) -> pa.Table:
    """Present the largest costs of some days, of the shop a."""
    values = [(day, value) for day, some in days.items() for value in some]
    return pa.table(
        {
            "shop": ["a"] * len(values),
            "large": pa.array([value for _, value in values], pa.float64()),
            "interval": [day for day, _ in values],
        }
    )


def test_an_interval_is_evaluated_by_itself() -> None:
    """An aggregate over two days would hide the bad one behind the good."""
    found = evaluate_suites(view_of(ExpectationSuite([MEDIAN])), rows(d1=[1, 2, 3], d2=[4, 8, 9]))
    assert found.failed == {
        "d2": ["expect_column_median_to_be_between(column='large', max_value=5): observed 8.0"]
    } or found.failed == {
        "d2": ["expect_column_median_to_be_between(column='large', max_value=5.0): observed 8.0"]
    }
    assert [found.results[day]["success"] for day in ("d1", "d2")] == [True, False]


def test_rows_that_are_not_as_expected_are_counted_with_an_example() -> None:
    """A number without a row to look at helps nobody."""
    rule = {"type": "expect_column_values_to_be_between", "kwargs": {"column": "large", "max_value": 5}}
    [sentence] = evaluate_suites(view_of(ExpectationSuite([rule])), rows(d=[1, 7, 8])).failed["d"]
    assert sentence.endswith("2 of 3 rows are not, for example 7.0")


def test_a_warning_is_reported_and_holds_nothing_back() -> None:
    """Its author has said that it is none of the reasons not to serve a number."""
    found = evaluate_suites(view_of(ExpectationSuite([{**MEDIAN, "severity": "warning"}])), rows(d=[9]))
    assert not found.failed and not found.results["d"]["success"]


@pytest.mark.parametrize(
    ("rule", "modules", "fact"),
    [
        ({"type": "expect_wonders"}, (), "expect_wonders"),
        ({"type": "expect_column_max_to_be_between", "kwargs": {"field": "large"}}, (), "field"),
        (MEDIAN, ("no_such_module",), "no_such_module"),
        (
            {"type": "expect_column_max_to_be_between", "kwargs": {"column": "x", "max_value": 1}},
            (),
            "cannot be evaluated",
        ),
    ],
)
def test_a_suite_that_cannot_be_evaluated_is_not_met(rule: Any, modules: Sequence[str], fact: str) -> None:
    """A typing error must not pass for quality, and must not lose the build."""
    found = evaluate_suites(view_of(ExpectationSuite([rule], modules)), rows(d1=[1], d2=[2]))
    assert list(found.failed) == ["d1", "d2"]
    assert fact in found.failed["d1"][0]


def test_own_expectations_are_found_by_their_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The suite is stored as data; its code is where the user's code is."""
    gx = import_great_expectations()
    (tmp_path / "shop_expectations.py").write_text(OWN)
    monkeypatch.syspath_prepend(str(tmp_path))
    import shop_expectations  # type: ignore[import-not-found]

    theirs = gx.ExpectationSuite(
        name="shops",
        expectations=[
            shop_expectations.ExpectColumnValuesToBeShops(column="shop"),
            gx.expectations.ExpectColumnMaxToBeBetween(column="large", max_value=5),
        ],
    )
    ours = ExpectationSuite.of(theirs)
    assert list(ours.modules) == ["shop_expectations"]
    assert ExpectationSuite.of(theirs.to_json_dict()).expectations == ours.expectations
    assert [each["type"] for each in ours.expectations] == [
        "expect_column_values_to_be_shops",
        "expect_column_max_to_be_between",
    ]
    made = from_json(to_json(sales(ours)))
    assert made == sales(ours)
    assert not evaluate_suites(compile_pipeline(made).views[0], rows(d=[1])).failed


def test_without_a_suite_the_library_is_not_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes most of the time of a small build."""
    monkeypatch.setitem(sys.modules, "great_expectations", None)
    assert evaluate_suites(view_of(), rows(d=[1])).results == {}
    assert evaluate_suites(view_of(ExpectationSuite([MEDIAN])), rows()).results == {}
    import_in_background(compile_pipeline(sales()))
    failed = evaluate_suites(view_of(ExpectationSuite([MEDIAN])), rows(d=[1])).failed
    assert "the suite cannot be evaluated" in failed["d"][0]


def test_a_suite_may_stand_alone() -> None:
    """One thing needs no list."""
    view = View("v", [], Tumbling("1 hour"), {"n": count()}, expect=ExpectationSuite([MEDIAN, MEDIAN]))
    source = KafkaSource("sales", "at TIMESTAMP NOT NULL", "at")
    [made] = compile_pipeline(Pipeline("sales", source, [view], Batch("1 day", "2024-01-01"))).views
    assert count_suite_expectations(made) == 2
