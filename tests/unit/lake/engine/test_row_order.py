"""The order of many rows, by numbers: held to the order that Arrow finds row by row."""

from __future__ import annotations

import random
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from seamline.lake.engine import row_order
from seamline.lake.engine.row_order import find_repeated, order_rows

TEXTS = [
    "",
    "a",
    "aa",
    "a\0",
    "a\0b",
    "ab",
    "é",
    "shop 1",
    "shop 12",
    "shop 123456789",
    "shop 1234567890",
    None,
]
LONG = [
    "common start, then 1",
    "common start, then 12",
    "common start, then 12345678",
    "common start, then 123456789",
]
VALUES: dict[str, tuple[list[Any], pa.DataType]] = {
    "text": (TEXTS, pa.string()),
    "long": (LONG, pa.string()),
    "bytes": ([b"", b"\0", b"\xff", b"\xff\xff", None], pa.binary()),
    "number": ([None, -(2**63), -1, 0, 1, 2**63 - 1], pa.int64()),
    "small": ([-7, 3], pa.int32()),
    "day": ([None, *(date(1969, 12, 30) + timedelta(days=each) for each in range(4))], pa.date32()),
    "exact": ([Decimal("-1.5"), Decimal("2.0"), None], pa.decimal128(10, 1)),
    "same": (["always"], pa.string()),
    "none": ([None], pa.string()),
}


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Call a few rows many."""
    monkeypatch.setattr(row_order, "MANY", 1)


def rows(dice: random.Random) -> pa.Table:
    """Make rows, in chunks that begin anywhere."""
    count = dice.randrange(1, 30)
    columns = {}
    for name, (values, kind) in VALUES.items():
        chunks = [pa.array(dice.choices(values, k=count + 3), kind)[at : at + count] for at in (0, 3)]
        columns[name] = pa.chunked_array(chunks)
    return pa.table(columns)


def test_the_order_is_arrows() -> None:
    """An order that a text's first bytes alone decide would differ for texts that share them."""
    for seed in range(150):
        dice = random.Random(seed)
        table = rows(dice)
        by = dice.sample([*VALUES], dice.randrange(1, 5))
        expected = table.take(pc.sort_indices(table, [(name, "ascending") for name in by]))
        assert table.take(order_rows(table, by)).select(by).equals(expected.select(by)), seed


def test_every_row_that_has_company_is_found() -> None:
    """One that is missed would stay a row of its own, with a part of the answer."""
    for seed in range(20):
        table, by = rows(random.Random(seed)), ["text", "small", "day"]
        keys = [tuple(row.values()) for row in table.select(by).to_pylist()]
        assert find_repeated(table, by).tolist() == [keys.count(key) > 1 for key in keys]
