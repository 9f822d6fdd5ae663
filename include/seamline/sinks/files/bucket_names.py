"""The folders that rows are in: each is named for a piece of time or a value, as readers of files understand it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from seamline.model.compile.sinks.file_rules import LABEL, starts_like_duration
from seamline.model.time.intervals import parse_duration
from seamline.serve.query import format_scalar
from seamline.sinks.row_shape import BOUNDS

NULL = "__HIVE_DEFAULT_PARTITION__"
"""What stands for NULL, and for a text without letters."""
SPECIAL = re.compile(r"[^A-Za-z0-9._-]")
LONGEST = 100
"""Letters of a name: what is longer is cut, and told from others by a hash."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
WINDOW = "window"


def name_buckets(rows: pa.Table, buckets: Sequence[str]) -> pa.Array:
    """Name the folder of each row, which is empty where there are no buckets."""
    parts: list[Any] = []
    for bucket in buckets:
        if starts_like_duration(bucket):
            parts.append(name_each(rows[BOUNDS[0]], WINDOW, partial(name_piece, size=parse_duration(bucket))))
        else:
            parts.append(name_each(rows[bucket], bucket, name_value))
    if not parts:
        return pa.array([""] * rows.num_rows, pa.string())
    return pc.binary_join_element_wise(*parts, "/")


def name_each(column: pa.ChunkedArray, label: str, name: Callable[[Any], str]) -> pa.Array:
    """Name the folders of values, each value that occurs once."""
    whole = column.combine_chunks()
    known = (
        pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole
    ).dictionary_encode()
    names = [f"{LABEL}{label}={name(each)}" for each in known.dictionary.to_pylist()]
    return pc.fill_null(pc.take(pa.array(names, pa.string()), known.indices), f"{LABEL}{label}={NULL}")


def name_piece(start: datetime, size: timedelta) -> str:
    """Name the piece of time in which a window starts, by its own start, as far as that is needed."""
    at = EPOCH + (start - EPOCH) // size * size
    date = at.date().isoformat()
    if not size % timedelta(days=1):
        return date
    if not size % HOUR:
        return f"{date}-{at.hour:02}"
    return f"{date}-{at.hour:02}-{at.minute:02}" + ("" if not size % MINUTE else f"-{at.second:02}")


def name_value(value: Any) -> str:
    """Name a value: what a path or a key of a store may not have is written as % and two digits for each byte."""
    text = value if isinstance(value, str) else format_scalar(value)
    name = SPECIAL.sub(lambda found: "".join(f"%{each:02X}" for each in found[0].encode()), str(text))
    if len(name) > LONGEST:
        # No half of an escape is left, and two that begin alike are two.
        cut = re.sub(r"%[0-9A-F]?$", "", name[:LONGEST])
        name = f"{cut}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    return re.sub(r"^\.+$", lambda dots: "%2E" * len(dots[0]), name) or NULL
