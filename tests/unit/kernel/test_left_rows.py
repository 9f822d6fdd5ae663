"""Rows that an import has left to the topic stay with it, also when records are validated again."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa

from seamline.spark.build.reprocessing_task import LEFT, refuse_left_rows

BORDER = datetime(2026, 1, 2, tzinfo=UTC)
EARLIER = BORDER.replace(day=1)


def test_rows_that_are_of_after_the_border_now_are_refused() -> None:
    """They had no time, or another one, when they were imported; records of the topic may be of any time."""
    rows = pa.table(
        {
            "_topic_id": ["import:one", "import:one", "t"],
            "_event_time": pa.array([EARLIER, BORDER, BORDER], pa.timestamp("us", "UTC")),
            "_offset": [0, 1, 2],
            "_value": [b"a", b"b", b"c"],
        }
    )
    refused = pa.table({"_offset": pa.array([], pa.int64()), "_value": pa.array([], pa.binary()),
                        "_reason": pa.array([], pa.string()), "_detail": pa.array([], pa.string())})  # fmt: skip
    kept, left = refuse_left_rows(rows, refused, {"import:one": BORDER})
    assert kept["_offset"].to_pylist() == [0, 2]
    assert left.select(["_offset", "_reason"]).to_pylist() == [{"_offset": 1, "_reason": LEFT}]
