"""What Spark does with a warehouse in a bucket; ``test_on_bucket`` runs it in a process of its own.

A JVM's class path and keys are given when it starts: other tests of the same process have another.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import duckdb
import obstore
import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from obstore.store import from_url
from pyspark.sql import SparkSession
from tests.conformance.processes import test_snapshots as carts
from tests.conformance.processes.saving import save_each_epoch
from tests.conformance.reprocessing import test_rejudged as mended
from tests.conformance.reprocessing import test_restated as restated
from tests.unit.records import pipeline

from seamline.lake.log.epoch_log import known_epochs
from seamline.lake.log.master import Master
from seamline.lake.publish.forking import fork_pipeline
from seamline.lake.storage.layout import Layout
from seamline.lake.store.object_path import ObjectPath
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.protocol.savepoint import Savepoint
from seamline.runtime.spill_folder import own_spill_folder
from seamline.spark.build.reprocessing import log_of
from seamline.spark.session.session import open_spark_session
from seamline.spark.stream.catch_up import catch_up
from seamline.spark.stream.derived import saved_tails
from seamline.testing import Scenario
from seamline.testing.tables import Tables

WAREHOUSE = os.environ["SEAMLINE_WAREHOUSE"]


@pytest.fixture(scope="session")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of Spark's event log."""
    return tmp_path_factory.mktemp("events")


@pytest.fixture(scope="session")
def spark(events: Path) -> Iterator[SparkSession]:
    """A session as jobs have it, which writes down all that it knows."""
    told = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": str(events),
    }
    started = open_spark_session("tests", more=told, warehouse=WAREHOUSE)
    yield started
    started.stop()


@pytest.fixture
def place(request: pytest.FixtureRequest) -> ObjectPath:
    """A warehouse of this test."""
    return ObjectPath.parse(WAREHOUSE) / request.node.name


@pytest.fixture(scope="session")
def sold(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Scenario, Scenario]:
    """The same sales on tables in the bucket, by way of Spark, and in plain Python."""
    folder, definition = tmp_path_factory.mktemp("definitions"), restated.SHOP
    restated.correct(folder, restated.WRONG)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEAMLINE_PIPELINES", str(folder))
        tables = Tables(compile_pipeline(definition), ObjectPath.parse(WAREHOUSE) / "sold", spark)
        stored, plain = (Scenario(definition, engine, now="2024-01-05") for engine in (tables, None))
        return sell(stored, folder), sell(plain, folder)


def engine_of(shop: Scenario) -> Tables:
    assert isinstance(shop.engine, Tables)
    return shop.engine


def sell(shop: Scenario, folder: Path) -> Scenario:
    """Sell for some days, build, and build again by a corrected look-up."""
    restated.correct(folder, restated.WRONG)
    shop.send(*[restated.sale(number, "abc"[number % 3], day=1 + number % 2) for number in range(9)])
    shop.send(restated.sale(10, "b", day=4))
    shop.epoch()
    shop.batch()
    restated.correct(folder, restated.RIGHT)
    shop.restate("cities", "2024-01-01")
    shop.batch()
    return shop


@pytest.mark.faults
def test_a_build_by_spark_itself_gives_what_plain_python_gives(sold: tuple[Scenario, Scenario]) -> None:
    """Rows of a restated look-up are judged and aggregated by Spark, and its own writer writes their states."""
    shop, plain = sold
    for view in ("by_city", "by_price"):
        for side in ("merged", "batch"):
            assert shop.answer(view, side=side) == plain.answer(view, side=side) != []
    names = [each.name for each, _ in (ObjectPath.parse(WAREHOUSE) / "sold").walk_objects()]
    assert [name for name in names if name.startswith("part-") and name.endswith(".parquet")]
    assert not [name for name in names if name.endswith((".pending", ".pendingset"))]


@pytest.mark.faults
def test_a_spark_that_serves_a_bucket_builds_on_a_disk(
    spark: SparkSession, sold: tuple[Scenario, Scenario], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A resident driver has one Spark for pipelines whose warehouses are in either."""
    monkeypatch.setenv("SEAMLINE_PIPELINES", str(tmp_path))
    restated.correct(tmp_path, restated.WRONG)
    tables = Tables(compile_pipeline(restated.SHOP), tmp_path / "own", spark)
    shop = sell(Scenario(restated.SHOP, tables, now="2024-01-05"), tmp_path)
    for side in ("merged", "batch"):
        assert shop.answer("by_city", side=side) == sold[1].answer("by_city", side=side) != []
    assert [*(tmp_path / "own").rglob("part-*.parquet")]


@pytest.mark.faults
def test_a_mended_definition_validates_again_and_a_fork_goes_on(
    spark: SparkSession, place: ObjectPath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Raw bytes, rows validated again and windows of events are read by Spark, from a log and from its fork."""
    monkeypatch.setenv("SEAMLINE_PIPELINES", str(tmp_path))
    (tmp_path / "cities.csv").write_text("shop,name\na,Oslo\nb,Rome\n")
    shop = Scenario(mended.WRONG, Tables(compile_pipeline(mended.WRONG), place, spark), now="2024-01-20")
    mended.live(shop, mended.WRONG, mended.WRONG, mended.MENDED)
    plain = mended.live(Scenario(mended.MENDED, now="2024-01-20"), *[mended.MENDED] * 3)
    assert shop.batch()
    plain.batch()
    assert mended.answers(shop) == mended.answers(plain)

    engine = engine_of(shop)
    [*_, last] = known_epochs(engine.layout)
    version, at = engine.pipeline.record_version, datetime(2024, 1, 20, tzinfo=UTC)
    point = Savepoint("p", last.number, engine.positions, {}, version, "ada", "", at)
    other = compile_pipeline(replace(mended.MENDED, name="branch"))
    to = Layout(place, other.name)
    assert fork_pipeline(engine.pipeline, engine.layout, point, other, to) > 0
    assert len(Master.open(to).table.read(["_offset"])) == len(
        Master.open(engine.layout).table.read(["_offset"])
    )
    branch = Scenario(replace(mended.MENDED, name="branch"), Tables(other, place, spark), now="2024-01-20")
    assert branch.batch()
    assert log_of(spark, other, to).count() == log_of(spark, engine.pipeline, engine.layout).count() > 0


def test_a_view_that_is_behind_catches_up(spark: SparkSession, place: ObjectPath) -> None:
    """Spark computes the slices that it lacks from the log's files."""
    declared = pipeline("id INT NOT NULL, at TIMESTAMP")
    engine = Tables(compile_pipeline(declared), place, spark)
    shop, view = Scenario(declared, engine, now="2024-01-20"), engine.pipeline.views[0].id
    for number in range(3):
        shop.send({"id": number, "at": "2024-01-05T09:00Z"})
        shop.epoch()
        if not number:
            engine.writer.frontiers[view] = -1
        elif engine.writer.behind:
            assert catch_up(spark, engine.writer) and not engine.writer.behind
    assert [row["n"] for row in shop.answer("all_rows")] == [3]


@pytest.mark.faults
def test_a_fold_goes_on_from_snapshots(
    spark: SparkSession, place: ObjectPath, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are written on this machine, and put into the bucket when the next ones are."""
    save_each_epoch(monkeypatch)
    caplog.set_level("INFO", logger="seamline.stream")
    life = Scenario(
        carts.CARTS, Tables(compile_pipeline(carts.CARTS), place, spark), now=f"{carts.DAY}T23:00"
    )
    plain = Scenario(carts.CARTS, now=f"{carts.DAY}T23:00")
    for hour in range(8, 13):
        for each in (life, plain):
            each.send(*(carts.click(user, f"{hour:02}:10") for user in ("ada", "bob")), topic="clicks")
            each.epoch()
        if hour == 11:
            saved_tails.UPLOADING.finish()
            life.restart()
    assert carts.tell(life) == carts.tell(plain) != []
    assert "2 keys of pasts are folded again" in caplog.text and ", from those at epoch 2" in caplog.text
    files = [each.name for each, _ in (place / "carts" / "snapshots").walk_objects()]
    assert len(files) >= 12 and all(name.endswith(".parquet") for name in files)
    assert not [*(own_spill_folder() / "snapshots").glob("2-*")]


@pytest.mark.faults
def test_upkeep_changes_no_answer(sold: tuple[Scenario, Scenario]) -> None:
    """Files that Spark has put there are read, packed and cleared away as ours are."""
    shop, plain = sold
    engine_of(shop).upkeep()
    for view in ("by_city", "by_price"):
        assert shop.answer(view) == plain.answer(view) != []


@pytest.mark.faults
def test_other_readers_see_the_serving_table(sold: tuple[Scenario, Scenario], spark: SparkSession) -> None:
    """Whoever has the table's address and the keys needs nothing of ours."""
    engine = engine_of(sold[0])
    url = str(engine.layout.serving(engine.pipeline.views[0]))
    # Not the interval, which is in no file: Polars takes partitions from paths, and not from the log.
    columns = ["cities_name", "window_start", "n", "paid"]

    def ordered(rows: pa.Table) -> list[dict[str, Any]]:
        return sorted(rows.select(columns).to_pylist(), key=repr)

    by_spark = ordered(spark.read.format("delta").load(url).toArrow())
    assert len(by_spark) >= 4
    assert ordered(pl.read_delta(url).to_arrow()) == by_spark
    served = DeltaTable(url).to_pyarrow_dataset()
    with duckdb.connect() as connection:
        connection.register("served", served)
        assert ordered(connection.sql("SELECT * FROM served").to_arrow_table()) == by_spark


def test_a_write_that_fails_leaves_no_file(spark: SparkSession, place: ObjectPath) -> None:
    """One task has written all it had when another fails: of neither there is anything to be found."""

    def half(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for each in batches:
            yield each
            if 0 in each.column(0).to_pylist():
                raise ValueError("no more")

    rows = spark.range(0, 1000, 1, 4).mapInArrow(half, "id BIGINT")
    with pytest.raises(Exception, match="no more"):
        rows.write.parquet(str(place))
    assert [each.name for each, stat in place.walk_objects() if stat.st_size] == []
    spark.range(10).write.parquet(str(place / "whole"))
    assert spark.read.parquet(str(place / "whole")).count() == 10
    assert json.loads((place / "whole" / "_SUCCESS").read_text())["committer"] == "magic"


def test_no_key_is_in_what_spark_tells(spark: SparkSession, events: Path) -> None:
    """Its pages, its log of events and its settings are read by many."""
    told = spark.sparkContext.getConf().toDebugString() + "".join(
        each.read_text() for each in events.rglob("*") if each.is_file()
    )
    assert "fs.s3a.aws.credentials.provider" in told and "SparkListenerEnvironmentUpdate" in told
    secrets = [os.environ["AWS_SECRET_ACCESS_KEY"], os.environ.get("AWS_SESSION_TOKEN")]
    assert not [each for each in secrets if each and each in told]


def test_the_archive_of_classes_fits(spark: SparkSession) -> None:
    """Jars in front of Spark's own would make every start as slow as without an archive."""
    path = spark.sparkContext._jvm.java.lang.System.getProperty("java.class.path")  # type: ignore[union-attr]
    names = [Path(each).name for each in path.split(os.pathsep)]
    at = names.index(next(name for name in names if name.startswith("hadoop-aws")))
    assert at > max(place for place, name in enumerate(names) if name.startswith("spark-sql_"))


def test_the_store_is_the_one_that_was_named() -> None:
    """A warehouse elsewhere would prove nothing."""
    assert urlsplit(WAREHOUSE).scheme == "s3"
    assert obstore.list(from_url(WAREHOUSE.rsplit("/", 1)[0])).collect()
