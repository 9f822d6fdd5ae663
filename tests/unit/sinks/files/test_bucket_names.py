"""The names of folders: readers take them for columns, stores for keys, and disks for names."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from seamline.sinks.files.bucket_names import LONGEST, name_buckets, name_value

AT = datetime(2026, 3, 1, 9, 47, 31, tzinfo=UTC)


@pytest.mark.parametrize(
    ("size", "name"),
    [
        ("1 day", "2026-03-01"),
        ("7 days", "2026-02-26"),
        ("1 hour", "2026-03-01-09"),
        ("15 minutes", "2026-03-01-09-45"),
        ("30 seconds", "2026-03-01-09-47-30"),
    ],
)
def test_pieces_of_time_are_named_by_their_start(size: str, name: str) -> None:
    """A reader chooses folders by comparing texts."""
    rows = pa.table({"window_start": pa.array([AT, None], pa.timestamp("us", "UTC"))})
    [first, second] = name_buckets(rows, [size]).to_pylist()
    assert first == f"in_window={name}"
    assert second == "in_window=__HIVE_DEFAULT_PARTITION__"


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("north", "north"),
        ("a b/c", "a%20b%2Fc"),
        ("..", "%2E%2E"),
        (".", "%2E"),
        ("", "__HIVE_DEFAULT_PARTITION__"),
        ("100%=*?[x]", "100%25%3D%2A%3F%5Bx%5D"),
        ("nul\0byte\n", "nul%00byte%0A"),
        ("ü", "%C3%BC"),
        (7, "7"),
        (-7, "-7"),
        (True, "True"),
        (date(2026, 3, 1), "2026-03-01"),
        (Decimal("1.50"), "1.50"),
    ],
)
def test_values_are_escaped(value: Any, name: str) -> None:
    """No value leads out of its folder, and no glob takes it for a pattern."""
    assert name_value(value) == name


def test_long_values_are_cut() -> None:
    """A disk has names of 255 bytes, and half an escape is none."""
    one, other = (name_value("ü" * 100 + end) for end in "ab")
    assert one != other
    assert len(one) <= LONGEST + 9
    assert one.startswith("%C3%BC") and "%-" not in one and "%C-" not in one


def test_buckets_are_in_the_order_in_which_they_are_named() -> None:
    """The outer folder first; without buckets there is none."""
    rows = pa.table(
        {"window_start": pa.array([AT] * 3, pa.timestamp("us", "UTC")), "shop": ["a", None, "b/c"]}
    )
    assert name_buckets(rows, ["shop", "1 day"]).to_pylist() == [
        "in_shop=a/in_window=2026-03-01",
        "in_shop=__HIVE_DEFAULT_PARTITION__/in_window=2026-03-01",
        "in_shop=b%2Fc/in_window=2026-03-01",
    ]
    assert name_buckets(rows, []).to_pylist() == ["", "", ""]
