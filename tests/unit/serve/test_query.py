"""Rows as people and programs read them."""

from __future__ import annotations

import csv
import io
import json

import pyarrow as pa

from seamline.serve.query import rows_written


def test_lists_and_the_like_are_json_in_csv() -> None:
    """CSV has no other way to hold them; NULL is an empty cell."""
    rows = pa.table(
        {
            "top": pa.array([["a", 'b"c'], None], pa.list_(pa.string())),
            "pair": pa.array([{"n": 1, "at": None}, {"n": 2, "at": None}]),
            "n": [1, 2],
        }
    )
    out = io.StringIO()
    rows_written(rows, "csv", out)
    header, first, second = csv.reader(io.StringIO(out.getvalue()))
    assert header == ["top", "pair", "n"]
    assert (json.loads(first[0]), json.loads(first[1]), first[2]) == (["a", 'b"c'], {"n": 1, "at": None}, "1")
    assert second[0] == ""
