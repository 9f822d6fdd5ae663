"""Where a data file is written: on disk right there; for a bucket in memory, and put there once it is whole."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from seamline.lake.store.fetched_files import keep_copy, name_copy, shrink_cache
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
            whole = data.to_pybytes()
            self.place.write_bytes(whole)
            # Whoever wrote it is likely to read it next; where it cannot be kept, it is fetched.
            with suppress(OSError):
                keep_copy(name_copy(self.place), whole)
                shrink_cache()
            return data.size, pq.read_metadata(pa.BufferReader(data))
        return self.place.stat().st_size, pq.read_metadata(self.place)
