"""Keys and values of rows in Redis: different rows have different keys, and a reader can write a key by hand."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.e2e.sinks.served_rows import ServedRows, make_view

from seamline.model.types.schema import Field, parse_type
from seamline.sinks.redis.row_texts import RowTexts
from seamline.sinks.redis.script_parts import spell_texts
from seamline.sinks.row_shape import RowShape

INSTANT = pa.timestamp("us", "UTC")
START = datetime(2026, 11, 30, 8, tzinfo=UTC)
UGLY = st.none() | st.text(st.sampled_from("%:N25a"), max_size=4)


def spell_keys(*keys: tuple[str | None, str | None], ends: bool = False) -> list[str]:
    """Write the keys of rows with two texts each, of one window."""
    identity = ("shop", "till", "window_start", "window_end")
    shape = RowShape("", identity, tuple(Field(name, parse_type("STRING", name)) for name in identity))
    rows = pa.table(
        {
            "shop": pa.array([one for one, _ in keys], pa.string()),
            "till": pa.array([other for _, other in keys], pa.string()),
            "window_start": pa.array([START] * len(keys), INSTANT),
            "window_end": pa.array([None] * len(keys), INSTANT),
        }
    )
    return RowTexts("{shop.sales}", shape, ends).spell_keys(rows).to_pylist()


def test_a_key_is_what_a_reader_would_write() -> None:
    """A point read must need no library of ours."""
    assert spell_keys(("eu", "7"), (None, "")) == [
        "{shop.sales}:eu:7:2026-11-30T08:00:00Z",
        "{shop.sales}:%N::2026-11-30T08:00:00Z",
    ]
    assert spell_keys(("a:b", "50%"), ends=True) == ["{shop.sales}:a%3Ab:50%25:2026-11-30T08:00:00Z:%N"]


@given(st.tuples(UGLY, UGLY), st.tuples(UGLY, UGLY))
def test_different_rows_have_different_keys(one: tuple[str, str], other: tuple[str, str]) -> None:
    """Rows of one key would overwrite each other."""
    first, second = spell_keys(one, other)
    assert (first == second) == (one == other)


def test_a_value_begins_with_its_window_and_has_what_people_read() -> None:
    """Deletions compare the beginning; states of sketches are for those who read the table."""
    served = ServedRows(make_view(), 1, 20)
    texts = RowTexts("{x}", RowShape.of(served.view), False)
    rows = served.as_table()
    for value, bounds, row in zip(
        texts.spell_values(rows).to_pylist(),
        texts.spell_bounds(rows).to_pylist(),
        rows.to_pylist(),
        strict=True,
    ):
        found = json.loads(value)
        assert value.startswith(bounds) and not any("__" in name and "beyond" not in name for name in found)
        assert (found["n"], found["epoch"], found["shop"]) == (row["n"], row["epoch"], row["shop"])
        assert found["day"] == (row["day"] and date.isoformat(row["day"]))


@pytest.mark.parametrize("some", [[], ["a"], ["", "ü", ""]])
def test_texts_are_given_to_scripts_as_arrow_has_them(some: list[str]) -> None:
    """A script finds each by where the one before ends; a slice begins somewhere."""
    whole = pa.array(["before", *some, "after"], pa.string())
    for texts in (pa.array(some, pa.string()), whole.slice(1, len(some))):
        data, ends = (bytes(each) for each in spell_texts(texts))
        cuts = [int.from_bytes(ends[at : at + 4], "little") for at in range(0, len(ends), 4)]
        assert [data[a:b].decode() for a, b in zip(cuts, cuts[1:], strict=False)] == some
