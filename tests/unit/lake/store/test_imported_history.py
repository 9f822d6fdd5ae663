"""Files in a bucket are found, planned and read for an import as those on disk are, a range of each at a time."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from seamline.lake.engine.duckdb_connections import open_duckdb
from seamline.lake.imports.found_history import find_history
from seamline.lake.imports.history_records import read_history_records
from seamline.lake.imports.import_options import ImportOptions
from seamline.lake.imports.import_plans import (
    ImportPlan,
    delete_unused_stages,
    load_plan,
    require_planned_files,
    save_plan,
    staging_folder,
)
from seamline.lake.storage.layout import Layout
from seamline.lake.store.locations import Location, list_places
from seamline.model.errors import BadRange, NotFound
from seamline.plan.stream.import_plan import find_file_rows, plan_files

AT = datetime(2026, 1, 1, tzinfo=UTC)


def put_parquet(place: Location, *numbers: int) -> None:
    """Write a file of numbers."""
    written = pa.BufferOutputStream()
    pq.write_table(pa.table({"n": [*numbers]}), written)
    place.write_bytes(written.getvalue().to_pybytes())


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["parquet", "delta", "csv"])
def test_history_in_a_bucket_is_planned_and_read(lake: Location, kind: str) -> None:
    """A plan is kept beside the tables; staged rows go with the last import that needs them."""
    place, layout = lake / "theirs", Layout(lake / "ours", "orders")
    if kind == "delta":
        write_deltalake(str(place), pa.table({"n": [1, 2, 3]}))
    elif kind == "csv":
        (place / "a.csv.gz").write_bytes(gzip.compress(b"n\n1\n2\n3\n"))
    else:
        put_parquet(place / "a.parquet", 1, 2, 3)
    found = find_history(str(place), staging=staging_folder(layout), time_column="")
    plan = ImportPlan("id", ImportOptions("orders", bare=("n",)), tuple(plan_files(found.files, {})), AT)
    save_plan(layout, plan)
    assert load_plan(layout, "id") == plan
    require_planned_files(plan, 0, plan.rows)
    with open_duckdb() as con:
        records = [
            row
            for run in find_file_rows(plan.files, 1, 3)
            for batch in read_history_records(con, run, plan.options, plan.at)
            for row in batch.to_pylist()
        ]
    assert [(row["offset"], json.loads(row["value"])) for row in records] == [(1, {"n": 2}), (2, {"n": 3})]
    assert delete_unused_stages(layout, [each.file for each in plan.files], [plan]) == 0
    assert delete_unused_stages(layout, [], []) == 0
    assert delete_unused_stages(layout, [], [plan]) == (kind == "csv")
    assert list_places(staging_folder(layout), "*.parquet") == []


@pytest.mark.slow
def test_an_object_that_was_replaced_is_not_imported(lake: Location) -> None:
    """Written again as it was, it is the same; with another content, or gone, it is refused."""
    place, layout = lake / "theirs", Layout(lake / "ours", "orders")
    put_parquet(place / "a.parquet", 1, 2, 3)
    found = find_history(str(place), staging=staging_folder(layout), time_column="")
    plan = ImportPlan("id", ImportOptions("orders"), tuple(plan_files(found.files, {})), AT)
    put_parquet(place / "a.parquet", 1, 2, 3)
    require_planned_files(plan, 0, 3)
    put_parquet(place / "a.parquet", 1, 3, 2)
    with pytest.raises(BadRange, match="was replaced"):
        require_planned_files(plan, 0, 3)
    (place / "a.parquet").unlink()
    with pytest.raises(BadRange, match="was deleted"):
        require_planned_files(plan, 0, 3)
    with pytest.raises(NotFound, match="The plan of import nothing"):
        load_plan(layout, "nothing")
