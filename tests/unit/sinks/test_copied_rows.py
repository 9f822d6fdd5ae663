"""Rows as COPY reads them: texts that PostgreSQL cannot have stay apart, and values keep what they are."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from seamline.sinks.postgres.copied_rows import SYMBOL, copy_texts, escape_text, spell_jsonb

UGLY = st.text(st.sampled_from(f"\0{SYMBOL}0a\\"), max_size=6)


@given(UGLY, UGLY)
def test_texts_without_nul_are_apart_if_they_were(one: str, other: str) -> None:
    """Two keys that become one would be one row, and the other would be lost without a word."""
    assert "\0" not in escape_text(one)
    assert (escape_text(one) == escape_text(other)) == (one == other)


@given(st.lists(UGLY | st.dictionaries(UGLY, UGLY, max_size=2), max_size=3))
def test_jsonb_has_no_nul_either(value: list[object]) -> None:
    """PostgreSQL refuses it in names and values alike, and takes a backslash before for what it is."""
    escaped = json.loads(spell_jsonb(value))
    assert "\0" not in str(escaped).replace("\\x00", "\0")
    plain = not any(each in json.dumps(value) for each in ("\\u0000", "\\u2400"))
    assert escaped == value or not plain


def test_values_are_spelled_for_postgresql() -> None:
    """NULL is nothing, an empty text is quoted, a DECIMAL has its digits, an instant is one of UTC."""
    rows = pa.table(
        {
            "text": pa.array(["", None, 'a "b"\n']),
            "sum": pa.array([Decimal("1.50"), None, Decimal("-0.01")], pa.decimal128(38, 2)),
            "mean": pa.array([float("nan"), None, float("-inf")]),
            "at": pa.array([datetime(2026, 1, 2, 3, tzinfo=UTC), None, None], pa.timestamp("us", "UTC")),
            "raw": pa.array([b"\0\xff", None, b""]),
            "map": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int64())),
            "no": pa.array([True, None, False]),
        }
    )
    assert b"".join(copy_texts(rows)).decode() == (
        '"","1.50",nan,2026-01-02 03:00:00.000000,"\\x00ff","{""k"": 1}",true\n'
        ",,,,,,\n"
        '"a ""b""\n","-0.01",-inf,,"\\x","{}",false\n'
    )


def test_large_rows_are_spelled_in_pieces() -> None:
    """Memory is bounded by the piece, whatever a difference has."""
    assert len(list(copy_texts(pa.table({"n": pa.array(range(25_000))})))) == 3
    assert list(copy_texts(pa.table({"n": pa.array([], pa.int64())}))) == []
