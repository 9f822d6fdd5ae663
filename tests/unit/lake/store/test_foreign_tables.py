"""Tables of others in a bucket: read as they are now, by the settings of the warehouse's store."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from seamline.lake.audit.foreign_tables import open_foreign_table
from seamline.lake.store.locations import Location


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_tables_in_a_bucket_are_read_as_they_are_now(lake: Location, kind: str) -> None:
    """Others write the same object again."""
    place = lake / f"theirs.{kind}"
    for number in (7, 8):
        table = pa.table({"n": [number]})
        if kind == "delta":
            write_deltalake(str(place), table, mode="overwrite")
        else:
            written = pa.BufferOutputStream()
            pq.write_table(table, written)
            place.write_bytes(written.getvalue().to_pybytes())
        with open_foreign_table(str(place)) as found:
            assert found.read({"orders": "n"}, {"orders": "INT"}).to_pylist() == [{"orders": number}]
