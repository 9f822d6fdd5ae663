"""Which files of the log may contain rows of an interval, by their statistics."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.storage.arrow_types import INSTANT
from seamline.lake.storage.table_cache import Files
from seamline.model.time.intervals import Interval


def files_of(files: Files, interval: Interval, until: int) -> list[str]:
    """List the master's files that may contain rows of an interval up to an epoch."""
    if not files.actions.num_rows:
        return []
    files = files.keep(pc.less_equal(files.low("_epoch").cast(pa.int64()), until))
    files = files.keep(pc.less(files.low("_event_time").cast(INSTANT), pa.scalar(interval.end, INSTANT)))
    files = files.keep(
        pc.greater_equal(files.high("_event_time").cast(INSTANT), pa.scalar(interval.start, INSTANT))
    )
    return files.paths
