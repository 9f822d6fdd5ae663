"""Where a data file is written: on disk right there; for a bucket in memory, and put there once it is whole."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from seamline.lake.store.fetched_files import keep_copy, name_copy
from seamline.lake.store.locations import Location
from seamline.lake.store.object_path import ObjectPath


class DataTarget:
    """One file that is being written; ``sink`` is what a Parquet writer takes."""

    def __init__(self, place: Location) -> None:
        self.place = place
        self.sink: Path | pa.BufferOutputStream
        if isinstance(place, ObjectPath):
            self.sink = pa.BufferOutputStream()
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            self.sink = place

    def finish(self) -> tuple[int, pq.FileMetaData]:
        """Put the file in its place; return its bytes and its footer."""
        if isinstance(self.place, ObjectPath):
            assert isinstance(self.sink, pa.BufferOutputStream)
            data = self.sink.getvalue()
            self.place.write_bytes(data.to_pybytes())
            # Whoever wrote it is likely to read it next.
            keep_copy(name_copy(self.place), data.to_pybytes())
            return data.size, pq.read_metadata(pa.BufferReader(data))
        return self.place.stat().st_size, pq.read_metadata(self.place)
