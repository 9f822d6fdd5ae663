"""Columns that others add to our tables are theirs."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import deltalake
from deltalake import DeltaTable
from tests.unit.shop import Shop

from seamline.lake.tables.builds_table import BuildRow, Builds

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def test_a_column_of_somebody_elses_is_passed_over(tmp_path: Path) -> None:
    """One on the manifest ended every read with a TypeError."""
    shop = Shop(tmp_path)
    builds = Builds.ensure(shop.layout)
    builds.append([BuildRow("r", shop.view.id, "2013-01-01", "g", 0, 1, 1, 1, 0, 0, "", 0.1, "test", NOW)])
    before = shop.manifest.statements(), builds.all()
    theirs = deltalake.Field("theirs", deltalake.schema.PrimitiveType("string"))
    for table in (shop.manifest.table, builds.table):
        DeltaTable(str(table.root)).alter.add_columns([theirs])
    shop.manifest.read()
    assert (shop.manifest.statements(), builds.all()) == before
