"""A warehouse that Spark made moves into a bucket, by way of a kill, and back: the same answers and proofs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.conformance.reprocessing import test_restated as restated
from tests.faults.rig.store_settings import set_store
from tests.services.addresses import Bucket

from seamline.lake.move import destination
from seamline.lake.move.moving import move_warehouse
from seamline.lake.read import merged_read
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.store.locations import Location, parse_location
from seamline.lake.tables.control_table import ControlTable
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.protocol.read_request import ReadRequest
from seamline.model.protocol.seam import Side
from seamline.testing import Scenario
from seamline.testing.tables import Tables

KILLED_AT = 30
pytestmark = pytest.mark.faults


def sell(shop: Scenario, day: int) -> None:
    """Sell for a day and a bit, and build what is over."""
    shop.send(*[restated.sale(10 * day + number, "abc"[number % 3], day=day) for number in range(6)])
    shop.send(restated.sale(10 * day + 9, "b", day=day + 2))
    shop.epoch()
    shop.batch()


def state_of(warehouse: Location, tables: Tables) -> dict[str, Any]:
    """Return what is answered there, on either side, and what was certified."""
    layout = Layout(warehouse, tables.pipeline.name)
    found: dict[str, Any] = {
        f"{view.name} {side}": merged_read.read_merged_answer(
            tables.pipeline, view, layout, ReadRequest(side=side)
        ).table.to_pylist()
        for view in tables.pipeline.views
        for side in Side
    }
    return {**found, "certificates": Table.open(layout.table("certificates")).read().to_pylist()}


def test_answers_and_certificates_move_along(
    spark: SparkSession, bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of Spark's writer, of look-ups and of reports are carried; then the pipeline goes on where it is."""
    definitions, here, back = tmp_path / "definitions", tmp_path / "here", tmp_path / "back"
    definitions.mkdir()
    restated.correct(definitions, restated.RIGHT)
    there = parse_location(set_store(monkeypatch, bucket, bucket.endpoint, tmp_path)["SEAMLINE_WAREHOUSE"])
    monkeypatch.setenv("SEAMLINE_PIPELINES", str(definitions))
    monkeypatch.setenv("SEAMLINE_WAREHOUSE", str(here))
    tables = Tables(compile_pipeline(restated.SHOP), here, spark)
    shop, plain = (Scenario(restated.SHOP, engine, now="2024-01-09") for engine in (tables, None))
    for each in (shop, plain):
        sell(each, 1)
    before = state_of(here, tables)
    assert before["certificates"] and before["by_city batch"]

    destination.begin_destination(here, there, actor="ada")
    command = [sys.executable, "-m", "seamline.cli", "migrate", "--to", str(there)]
    env = {**os.environ, "SEAMLINE_FAIL": f"moved:{KILLED_AT}:python"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    report = move_warehouse(here, there, actor="ada")
    assert report.compared >= KILLED_AT - 2 and report.copied
    assert state_of(there, tables) == before
    move_warehouse(there, back, actor="ada")
    assert state_of(back, tables) == before

    # As a supervisor does: the next token is above all that the tables carry.
    tables.layout = Layout(back, tables.pipeline.name)
    tables.token = ControlTable.ensure(tables.layout).given
    tables.restart()
    for each in (shop, plain):
        sell(each, 4)
    for view in ("by_city", "by_price"):
        assert shop.answer(view) == plain.answer(view) != []
