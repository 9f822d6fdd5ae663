"""What a record may cost: one that is larger is refused before anything is made of it.

The bounds are those of the source. What a record of as many parts takes is at most 2.5 kB for each, in maps; what one
of as many bytes takes is about ten times as much, where it is text: far less than a worker may take.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from seamline.model.definition import KafkaSource

LARGE, MANY = "record too large", "record of too many parts"


def outsized(rows: pa.Table, source: KafkaSource, *, parts: bool) -> tuple[pa.Table, pa.Table]:
    """Part records into those within bounds and those that are not, with reason and detail.

    ``parts`` are counted by the commas between them, as JSON has them.
    """
    sizes = pc.add(length(rows["_value"]), length(rows["_key"]))
    bound = min(source.max_record_bytes, source.max_record_parts) if parts else source.max_record_bytes
    if not rows.num_rows or pc.max(sizes).as_py() <= bound:
        return rows, rows.slice(0, 0)
    why = [
        excess(size, value, source, parts=parts) if size > bound else None
        for size, value in zip(sizes.to_pylist(), (each for each in rows["_value"]), strict=True)
    ]
    good = pa.array([each is None for each in why])
    reason, detail = zip(*(each for each in why if each), strict=True) if any(why) else ((), ())
    refused = rows.filter(pc.invert(good)).append_column("_reason", pa.array(reason, pa.string()))
    return rows.filter(good), refused.append_column("_detail", pa.array(detail, pa.string()))


def length(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Give the bytes of each value; none is none."""
    return pc.fill_null(pc.binary_length(values), 0).cast(pa.int64())


def excess(size: int, value: pa.BinaryScalar, source: KafkaSource, *, parts: bool) -> tuple[str, str] | None:
    """Give (reason, detail) of a record that is out of bounds."""
    if size > source.max_record_bytes:
        return LARGE, f"{size} bytes"
    found = (value.as_py() or b"").count(b",") + 1 if parts else 0
    return (MANY, f"{found} parts") if found > source.max_record_parts else None
