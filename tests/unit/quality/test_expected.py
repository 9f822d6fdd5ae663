"""What a view expects of its numbers: the query of a certificate and the oracle of tests say the same of each."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from seamline import Batch, Expect, ExpectRows, KafkaSource, Pipeline, Tumbling, View, count, max, sum
from seamline.lake.engine.windowing import format_grouping_set
from seamline.model.compile.compiled_pipeline import CompiledView, compile_pipeline
from seamline.model.definition.expectations import Expectation
from seamline.model.errors import CertificateFailed
from seamline.quality.expectations import find_broken_expectations
from seamline.testing import Scenario
from seamline.testing.expected import list_unmet_expectations
from seamline.testing.oracle import to_nearest_double

pytestmark = pytest.mark.slow
DAY = "2024-01-01T00:00:00Z"
START = datetime(2024, 1, 1, tzinfo=UTC)
TEXTS = st.sampled_from(["", "a", "b", "A", "it's", "a\n", "ab", None])
NUMBERS = st.sampled_from([0.0, -0.0, 1.0, 2.5, math.inf, -math.inf, math.nan, None])
BOUNDS = st.none() | st.sampled_from([-1, 0, 1, 2.5, 1e300])
EXPECT = st.one_of(
    st.builds(
        Expect,
        st.sampled_from(["shop", "large"]),
        not_null=st.booleans(),
        unique=st.booleans(),
    ),
    st.builds(Expect, st.just("shop"), in_set=st.sampled_from([(), ("a",), ("it's", "b")])),
    st.builds(
        Expect,
        st.just("shop"),
        regex=st.sampled_from(["", "a", "[a-z]*", "[A-Z]*", "a|b", "(?i)A.?", "a(?=b)b"]),
    ),
    st.builds(Expect, st.just("large"), at_least=BOUNDS, at_most=BOUNDS),
    st.builds(Expect, st.just("large"), in_set=st.sampled_from([(), (0,), (1, 2.5)])),
    st.builds(
        ExpectRows,
        at_least=st.integers(0, 3),
        at_most=st.none() | st.integers(0, 3),
        max_change=st.none() | st.sampled_from([0, 0.5, 1, 3]),
    ),
)


def largest(*expect: Expectation, sets: list[list[str]] | None = None) -> CompiledView:
    """Make a view of the largest cost by shop."""
    source = KafkaSource("sales", "shop STRING, cost DOUBLE, at TIMESTAMP NOT NULL", "at")
    measures = {"n": count(), "large": max("cost")}
    view = View("by_shop", ["shop"], Tumbling("1 hour"), measures, expect=expect, grouping_sets=sets or [])
    return compile_pipeline(Pipeline("sales", source, [view], Batch("1 day", "2024-01-01"))).views[0]


def presented_of(rows: list[dict[str, Any]]) -> pa.Table:
    """Present rows of one day."""
    names = {"grouping": pa.string(), "shop": pa.string(), "large": pa.float64(), "interval": pa.string()}
    return pa.Table.from_pylist([{**row, "interval": DAY} for row in rows], pa.schema(list(names.items())))


@given(
    st.lists(EXPECT, max_size=4),
    st.lists(st.fixed_dictionaries({"shop": TEXTS, "large": NUMBERS}), max_size=5),
    st.none() | st.integers(0, 8),
)
@example([Expect("large", at_most=1)], [{"shop": "a", "large": math.nan}], None)
@example([Expect("shop", unique=True)], [{"shop": None, "large": 1.0}] * 2, None)
@example([ExpectRows(max_change=0.5)], [], 1)
@example([ExpectRows(max_change=0.5)], [{"shop": "a", "large": 1.0}], 0)
def test_the_query_and_the_oracle_agree(
    expect: list[Expectation], rows: list[dict[str, Any]], served: int | None
) -> None:
    """A definition's tests would otherwise promise what its certificates do not hold."""
    view = largest(*expect)
    rows = [{**row, "window_start": START} for row in rows]
    before = {} if served is None else {DAY: served}
    table = presented_of(rows).drop_columns("grouping")
    found = find_broken_expectations(view, table, {DAY: len(rows)}, before)
    assert bool(found) == bool(list_unmet_expectations(view, rows, served))


def test_what_is_broken_is_told_by_interval_with_an_example() -> None:
    """Whoever is woken at night must not have to look for the row."""
    view = largest(
        Expect("shop", regex="[a-z]+", unique=True, in_set=["a", "b"]),
        Expect("large", at_least=0, at_most=9),
        ExpectRows(at_least=3, at_most=2, max_change=0.1),
    )
    days = ["d1", "d1", "d2"]
    rows = pa.table({"shop": ["a", "a", "<B>"], "large": [1.0, -2.0, None], "interval": days})
    assert find_broken_expectations(view, rows, {"d1": 2, "d2": 1, "d3": 0}, {"d1": 4, "d3": 0}) == {
        "d1": [
            "shop unique: 2 of 2 rows are not, for example a",
            "large at least 0 and at most 9: 1 of 2 rows are not, for example -2.0",
            "at least 3 rows: there are 2",
            "a change of at most 10% of the rows: there are 2, 4 are served",
        ],
        "d2": [
            "shop in the set a, b: 1 of 1 rows are not, for example <B>",
            "shop matching [a-z]+: 1 of 1 rows are not, for example <B>",
            "at least 3 rows: there are 1",
        ],
        "d3": ["at least 3 rows: there are 0"],
    }


@pytest.mark.parametrize("patterns", [(r"\w+", r"\W+"), ("[a-z]+", "[A-Z]+")])
def test_patterns_that_differ_by_case_are_two(patterns: tuple[str, str]) -> None:
    """DuckDB ignores the case of a column's name, quoted or not."""
    view = largest(*(Expect("shop", regex=each) for each in patterns))
    rows = presented_of([{"shop": "abc", "large": 1.0}])
    [sentence] = find_broken_expectations(view, rows, {DAY: 1}, {})[DAY]
    assert sentence.startswith(f"shop matching {patterns[1]}")


def test_a_total_over_all_shops_has_no_shop() -> None:
    """NULL stands there for all of them: that is no value that is missing, and no shop that comes twice."""
    view = largest(Expect("shop", not_null=True, unique=True), sets=[["shop"], []])
    total = {"window_start": START, "grouping": format_grouping_set(()), "shop": None, "large": 1.0}
    rows = [{"window_start": START, "grouping": "shop", "shop": "a", "large": 1.0}, total, total]
    assert not find_broken_expectations(view, presented_of(rows), {DAY: 3}, {})
    assert not list_unmet_expectations(view, rows, None)
    rows.append({"window_start": START, "grouping": "shop", "shop": None, "large": 1.0})
    assert len(find_broken_expectations(view, presented_of(rows), {DAY: 4}, {})[DAY]) == 1
    assert len(list_unmet_expectations(view, rows, None)) == 1


@pytest.mark.parametrize(
    ("total", "bound", "meets"),
    [
        ("0.10", {"at_least": 0.1}, True),
        ("0.30", {"at_most": 0.3}, True),
        ("0.30", {"at_least": 0.3}, True),
        ("0.09", {"at_least": 0.1}, False),
        ("0.31", {"at_most": 0.3}, False),
    ],
)
def test_a_total_is_held_against_the_nearest_double(total: str, bound: dict[str, float], meets: bool) -> None:
    """A bound is a double, which is a little beside what it was written as; the total is that much beside it too."""
    view = View(
        "by_shop", ["shop"], Tumbling("1 hour"), {"total": sum("cost")}, expect=[Expect("total", **bound)]
    )
    source = KafkaSource("sales", "shop STRING, cost DECIMAL(18,2), at TIMESTAMP NOT NULL", "at")
    sales = Pipeline("sales", source, [view], Batch("1 day", "2024-01-01"))
    presented = pa.table({"total": [Decimal(total)], "interval": ["2024-01-01T00:00:00Z"]})
    view, rows = compile_pipeline(sales).views[0], {"2024-01-01T00:00:00Z": 1}
    assert (not find_broken_expectations(view, presented, rows, {})) is meets

    scenario = Scenario(sales, now="2024-01-05")
    scenario.send(f'{{"shop":"a","cost":{total},"at":"2024-01-01T10:00:00Z"}}'.encode())
    scenario.send(b'{"shop":"a","cost":1,"at":"2024-01-04T10:00:00Z"}')
    scenario.epoch()
    if meets:
        assert scenario.batch("2024-01-01") == ["2024-01-01T00:00:00Z"]
    else:
        with pytest.raises(CertificateFailed, match="expectations"):
            scenario.batch("2024-01-01")


def test_a_key_is_no_total() -> None:
    """Its name may end as that of a total's text does; a total's text is about its total."""
    source = KafkaSource("sales", "n INT, n__beyond STRING, cost DECIMAL(38,2), at TIMESTAMP NOT NULL", "at")
    view = View("sales", ["n", "n__beyond"], Tumbling("1 hour"), {"total": sum("cost")})
    compiled = compile_pipeline(Pipeline("sales", source, [view], Batch("1 day", "2024-01-01"))).views[0]
    row = {"n__beyond": "7", "n": 1, "total": None, "total__beyond": "1" + 36 * "0" + ".00"}
    assert [to_nearest_double(compiled, row, name) for name in ("n", "n__beyond", "total")] == [1, "7", 1e36]
