"""Rows are written column by column as they would be one by one."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamline.model.types.exact_json import dump_finite_json
from seamline.serve import json_lines
from seamline.serve.query import format_scalar, rows_written

INSTANTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))
WHOLE = st.integers(-(2**63), 2**63 - 1)
COLUMNS = {
    pa.int64(): WHOLE,
    pa.bool_(): st.booleans(),
    pa.string(): st.text(),
    pa.float64(): st.floats(),
    pa.timestamp("us", "UTC"): INSTANTS,
    pa.date32(): st.dates(date(1, 1, 2)),
    pa.decimal128(38, 9): st.decimals(-(10**28), 10**28, places=9, allow_nan=False),
    pa.binary(): st.binary(),
    pa.list_(pa.struct([("value", pa.string()), ("n", pa.int64())])): st.lists(
        st.fixed_dictionaries({"value": st.text(), "n": WHOLE})
    ),
}


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """Make a table of each type, NULLs included, some under names that a template would take for its own."""
    size = draw(st.integers(0, 6))
    names = draw(st.lists(st.text(), min_size=len(COLUMNS), max_size=len(COLUMNS), unique=True))
    columns = [
        pa.array(draw(st.lists(st.none() | values, min_size=size, max_size=size)), kind)
        for kind, values in COLUMNS.items()
    ]
    return pa.table(columns, names=names)


@given(tables())
def test_each_line_is_the_row_as_python_writes_it(rows: pa.Table) -> None:
    """Nobody's reader may notice that a million of them are written otherwise."""
    out = io.StringIO()
    rows_written(rows, "json", out)
    assert out.getvalue() == "".join(
        dump_finite_json(row, default=format_scalar) + "\n" for row in rows.to_pylist()
    )


def test_a_double_that_is_no_number_is_null() -> None:
    """JSON has no word for it: a reader would refuse the line."""
    odd = [1.5, float("nan"), float("inf")]
    rows = pa.table({"mean": odd, "ends": [[each] for each in odd]})
    lines = "".join(json_lines.json_lines(rows, format_scalar)).splitlines()
    assert lines == [
        '{"mean": 1.5, "ends": [1.5]}',
        '{"mean": null, "ends": [null]}',
        '{"mean": null, "ends": [null]}',
    ]


def test_a_window_is_spelled_once_however_many_rows_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """A million rows took 35 seconds, most of it for the same instants and names."""
    start, count, said = datetime(2026, 1, 1, tzinfo=UTC), 2 * json_lines.BATCH, list[object]()
    rows = pa.table(
        {
            "carrier": pa.array(["UA", "B6"] * (count // 2)),
            "window_start": pa.array([start, start + timedelta(hours=1)] * (count // 2)),
            "total": pa.array([Decimal("1.50"), None] * (count // 2), pa.decimal128(18, 2)),
            "n": pa.array(range(count)),
        }
    )
    one = json_lines.dump_finite_json

    def dumps_(value: object, **named: object) -> str:
        said.extend(value if isinstance(value, list) else [value])
        return one(value, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(json_lines, "dump_finite_json", dumps_)
    out = io.StringIO()
    rows_written(rows, "json", out)
    assert len(said) <= 2 * (4 + 2 + 2 + 2)
    last = json.loads(out.getvalue().splitlines()[-1])
    assert last == {"carrier": "B6", "window_start": "2026-01-01T01:00:00Z", "total": None, "n": count - 1}
