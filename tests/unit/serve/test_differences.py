"""What changed between two generations, held to a dictionary."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.past import build
from tests.unit.shop import DEFINITION, START, Sale, Shop, opened, sales_pipeline

from seamline.cli import main
from seamline.lake.read.row_differences import BOTH, NEW, OLD, compare_rows
from seamline.lake.store.locations import Location
from seamline.model.errors import BadRange
from seamline.serve.generation_differences import places_of

pytestmark = pytest.mark.slow

Rows = dict[tuple[str | None, int], tuple[int | None, float | None]]
rows = st.dictionaries(
    st.tuples(st.sampled_from(["a", "b", None]), st.integers(0, 1)),
    st.tuples(
        st.none() | st.integers(-(2**63), 2**63 - 1), st.none() | st.floats(-9, 9) | st.just(float("nan"))
    ),
    max_size=6,
)


def table(given: Rows) -> pa.Table:
    columns = {
        "k": [key for key, _ in given],
        "w": [window for _, window in given],
        "n": [n for n, _ in given.values()],
        "x": [x for _, x in given.values()],
    }
    return pa.table(
        columns,
        schema=pa.schema([("k", pa.string()), ("w", pa.int64()), ("n", pa.int64()), ("x", pa.float64())]),
    )


def equal(one: float | None, other: float | None) -> bool:
    return one == other or (one is not None and other is not None and one != one and other != other)


@given(before=rows, after=rows)
def test_a_difference_is_what_a_dictionary_says(before: Rows, after: Rows) -> None:
    """Every place once, NULL keys and NaN included; integers subtracted without overflow."""
    found = compare_rows(table(before), table(after), ["k", "w"], ["n", "x"])
    expected = {}
    for place in {*before, *after}:
        if place not in before or place not in after:
            expected[place] = OLD if place in before else NEW
        elif not all(map(equal, before[place], after[place])):
            expected[place] = BOTH
    assert {(row["k"], row["w"]): row["_change"] for row in found.rows.to_pylist()} == expected
    assert found.equal == len({*before, *after}) - len(expected)
    changed = [
        place for place, how in expected.items() if how == BOTH and before[place][0] != after[place][0]
    ]
    assert found.measures["n"].count == len(changed)
    gains = [
        after[place][0] - before[place][0]  # type: ignore[operator]
        for place in changed
        if None not in (before[place][0], after[place][0])
    ]
    most = found.measures["n"].row
    assert (most is None) == (not gains)
    if most:
        assert abs(most["_n_difference"]) == max(map(abs, gains))


@given(before=rows, after=rows)
def test_there_and_back_again(before: Rows, after: Rows) -> None:
    """Turned round, what was only before is only after and every gain changes its sign; with itself nothing differs."""
    there = compare_rows(table(before), table(after), ["k", "w"], ["n"])
    back = compare_rows(table(after), table(before), ["k", "w"], ["n"])
    assert (there.only_before, there.only_after, there.equal) == (
        back.only_after,
        back.only_before,
        back.equal,
    )
    gains = [[row["_n_difference"] for row in each.rows.to_pylist()] for each in (there, back)]
    assert gains[0] == [None if gain is None else -gain for gain in gains[1]]
    assert compare_rows(table(before), table(before), ["k", "w"], ["n", "x"]).none


def test_what_is_no_number_changes_without_a_difference() -> None:
    """Lists of the most frequent items can differ and cannot be subtracted; decimals are subtracted exactly."""
    type = pa.decimal128(5, 2)
    before = pa.table({"k": [1], "top": [["a", "b"]], "cost": pa.array([Decimal("0.10")], type)})
    after = pa.table({"k": [1], "top": [["b", "a"]], "cost": pa.array([Decimal("0.30")], type)})
    found = compare_rows(before, after, ["k"], ["top", "cost"])
    [row] = found.rows.to_pylist()
    assert (row["_top_difference"], row["_cost_difference"]) == (None, Decimal("0.20"))
    assert (found.measures["top"].count, found.measures["top"].row) == (1, None)


LONG = Decimal("99999999999999999999.999999999999999999")


@pytest.mark.parametrize(
    ("before", "after", "gains"),
    [
        (pa.array([1, 2]), pa.array(["x", "2"]), [None]),
        (pa.array([1, None]), pa.array([[{"value": "x", "count": 1}], None]), [None]),
        (pa.array([1, 2]), pa.array([Decimal("1.5"), Decimal("2.0")], pa.decimal128(38, 37)), ["0.5"]),
        (pa.array([LONG, 1], pa.decimal128(38, 18)), pa.array([1, 1], pa.decimal128(38, 37)), [None]),
        (pa.array([10**37, 0], pa.decimal128(38, 0)), pa.array([0, 0], pa.decimal128(38, 38)), [None]),
        (pa.array([Decimal("0.1"), Decimal("0.3")], pa.decimal128(38, 2)), pa.array([0.5, 0.3]), ["0.4"]),
        (pa.array([0, 1], pa.timestamp("us", "UTC")), pa.array([1, None]), [None, None]),
    ],
)
def test_a_measure_of_another_type_is_compared(before: pa.Array, after: pa.Array, gains: list[Any]) -> None:
    """Numbers as numbers, whatever holds them; what is none of the other's type has changed."""
    tables = (pa.table({"k": ["a", "b"], "m": each}) for each in (before, after))
    found = compare_rows(*tables, ["k"], ["m"])
    assert found.changed == len(gains) == found.measures["m"].count
    told = [row["_m_difference"] for row in found.rows.to_pylist()]
    assert [gain if gain is None else float(gain) for gain in told] == [
        gain and float(gain) for gain in gains
    ]


def test_keys_of_another_type_are_other_keys() -> None:
    """A number and a text never meet, and a column has one type; whole numbers of any length do."""
    text, number, short = (
        sales_pipeline(text=DEFINITION.replace("customer STRING", f"customer {type}")).views[0]
        for type in ("STRING", "BIGINT", "INT")
    )
    with pytest.raises(BadRange, match="other keys: customer STRING, and customer BIGINT"):
        places_of(text, number)
    assert places_of(short, number) == ["customer", "window_start", "window_end"]


@pytest.mark.parametrize("key", ["change", "n_before", "n_difference", "Change"])
def test_a_key_named_like_a_column_of_the_difference_stays_a_key(key: str) -> None:
    """It was there twice, and no two generations could be compared."""
    before, after = (pa.table({key: ["a", "b"], "n": [1, last]}) for last in (2, 5))
    found = compare_rows(before, after, [key], ["n"])
    assert found.rows.to_pylist() == [
        {key: "b", "_change": BOTH, "_n_before": 2, "_n_after": 5, "_n_difference": Decimal(3)}
    ]
    assert (found.changed, found.equal, found.measures["n"].count) == (1, 1, 1)


@pytest.fixture
def shop(tmp_path: Path, warehouse: Location, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """A day whose second generation has one more sale of a, none of b any more, and c."""
    shop = opened(tmp_path, monkeypatch, warehouse)
    shop.epoch([Sale(1, "a", 4), Sale(2, "b", 5), Sale(70, "a", 1)], watermark=START.replace(day=2))
    build(shop, "one", cut=0)
    shop.events[0] = [Sale(1, "a", 4), Sale(70, "a", 1)]
    shop.epoch([Sale(3, "a", 6), Sale(4, "c", 7)], watermark=START.replace(day=2))
    build(shop, "two", cut=1)
    return shop


def test_two_generations_are_compared_by_key(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    """Which numbers has the rebuild changed, and by how much: the first question after every backfill."""
    assert main(["diff", "shop.sales", "2013-01-01", "--format", "json"]) == 0
    printed = capsys.readouterr()
    found = {row["customer"]: row for row in map(json.loads, printed.out.splitlines())}
    assert {name: row["_change"] for name, row in found.items()} == {"a": BOTH, "b": OLD, "c": NEW}
    a = found["a"]
    assert (a["_total_before"], a["_total_after"], a["_total_difference"]) == (4, 10, 6)
    assert "one (cut 0) -> two (cut 1)" in printed.err
    assert "1 rows equal, 1 changed, 1 only before, 1 only after." in printed.err
    assert (
        "total: 1 changed, most 4 -> 10 (+6) at customer=a, window_start=2013-01-01T00:00:00Z" in printed.err
    )
    assert main(["diff", "shop.sales", "2013-01-01", "--from", "two", "--to", "two"]) == 0
    assert "3 rows, no difference." in capsys.readouterr().err


@pytest.mark.parametrize("format", ["table", "csv"])
def test_every_format_has_the_rows(shop: Shop, capsys: pytest.CaptureFixture[str], format: str) -> None:
    """A sheet for whoever asked."""
    assert main(["diff", "shop.sales", "2013-01-01", "--format", format, "--limit", "1"]) == 0
    assert "only before" in (out := capsys.readouterr().out) or "changed" in out


def test_what_cannot_be_compared_is_refused(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing compared with something would call every row new."""
    assert main(["diff", "shop.sales", "2013-01-02"]) == 4
    assert "No generation of" in capsys.readouterr().err
    assert main(["diff", "shop.sales", "2013-01-01", "--to", "one"]) == 4
    assert "No kept generation was published before generation one" in capsys.readouterr().err
