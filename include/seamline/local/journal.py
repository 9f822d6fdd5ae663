"""What a replay sent, and where Kafka put it: the truth for a checker that trusts nothing of ours."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import TracebackType

import pyarrow as pa
import pyarrow.parquet as pq

from seamline.local.mischief import Sending

SCHEMA = pa.schema(
    {
        "sequence": pa.int64(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "kind": pa.string(),
        "event_id": pa.string(),
        "event_time": pa.string(),
        "kafka_timestamp_ms": pa.int64(),
    }
)
ROWS_AT_ONCE = 20_000

Row = tuple[int, int, int, str, str | None, str | None, int]


class Journal:
    """A Parquet file with one row per acknowledged record, whole only once it is closed."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.kinds: Counter[str] = Counter()
        self._sequence = 0
        self._rows: list[Row] = []
        self._file = pq.ParquetWriter(path, SCHEMA)

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def delivered(self, token: object, partition: int, offset: int) -> None:
        """Note that a sending has arrived; the RecordWriter calls this in the order of the sends."""
        assert isinstance(token, Sending)
        self.kinds[token.kind] += 1
        self._rows.append(
            (self._sequence, partition, offset, token.kind, token.event_id, token.event_time, token.at_ms)
        )
        self._sequence += 1
        if len(self._rows) >= ROWS_AT_ONCE:
            self._flush()

    def close(self) -> None:
        """Write what is left and the file's end."""
        self._flush()
        self._file.close()

    def _flush(self) -> None:
        if self._rows:
            columns = zip(*self._rows, strict=True)
            arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
            self._file.write_table(pa.table(arrays, schema=SCHEMA))
            self._rows.clear()
