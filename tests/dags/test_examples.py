"""The shipped DAGs that build on a pipeline: Airflow takes them, and a partition starts a run of its own."""

from __future__ import annotations

from datetime import UTC
from pathlib import Path

from airflow.assets.manager import asset_manager
from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db
from airflow.models.asset import AssetModel, AssetPartitionDagRun
from airflow.models.dag import DagModel
from airflow.models.dagbundle import DagBundleModel
from airflow.partition_mappers.temporal import StartOfDayMapper
from airflow.serialization.serialized_objects import DagSerialization
from airflow.utils.session import create_session
from pendulum import DateTime
from sqlalchemy import select
from tests.unit.examples import declared

from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.orchestration.assets import Assets
from seamline.orchestration.intervals.partitions import partition_key
from seamline.provider.spans import span_of

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "include" / "examples" / "dags"
HOUR = "2024-01-01T05:00:00Z"


def test_the_examples_are_dags_of_what_there_is() -> None:
    """The names of assets and views are text in a DAG: one that is misspelt waits for ever."""
    bag = DagBag(str(FOLDER))
    assert bag.import_errors == {}
    assert set(bag.dags) == {"ad_campaigns_hours", "ad_campaigns_days"}
    pipeline = declared("ad_campaigns")
    views = {f"{pipeline.name}.{view.name}" for view in pipeline.views}
    for dag in bag.dags.values():
        DagSerialization.serialize_dag(dag)
        assert {task.view for task in dag.tasks} <= views
    asset = bag.dags["ad_campaigns_hours"].timetable.asset_condition
    ours = Assets.of(pipeline).intervals
    assert (asset.name, asset.uri) == (ours.name, ours.uri)


def test_the_days_of_the_example_wait_for_24_hours_each() -> None:
    """The sensor takes the data interval of its run: of a run of another length, or by hand, it would take less."""
    days = DagBag(str(FOLDER)).dags["ad_campaigns_days"]
    scheduled = DagSerialization.from_dict(DagSerialization.to_dict(days))
    ran = scheduled.timetable.infer_manual_data_interval(run_after=DateTime(2024, 1, 3, 7, tzinfo=UTC))
    run = {"data_interval_start": ran.start, "data_interval_end": ran.end}
    sensor, grid = days.get_task("all_hours"), compile_pipeline(declared("ad_campaigns")).grid
    span = span_of(run, sensor.start, sensor.end, grid)
    assert str(span) == "2024-01-02T00:00:00Z/2024-01-03T00:00:00Z"
    assert len([*grid.within(span)]) == 24


def test_an_interval_that_is_published_starts_the_run_of_its_partition(database: None) -> None:
    """One to one: the key of the run is the interval."""
    bag = DagBag(str(FOLDER), bundle_name="dags-folder")
    with create_session() as session:
        if session.get(DagBundleModel, "dags-folder") is None:
            session.add(DagBundleModel(name="dags-folder"))
    sync_bag_to_db(bag, "dags-folder", None)
    with create_session() as session:
        dag = session.get(DagModel, "ad_campaigns_hours")
        assert dag is not None
        dag.is_paused = False
        asset = session.scalars(select(AssetModel).where(AssetModel.name == "ad_campaigns/intervals")).one()
        asset_manager.register_asset_change(
            asset=asset, extra={}, partition_key=partition_key(HOUR), session=session
        )
        session.flush()
        rows = session.scalars(select(AssetPartitionDagRun)).all()
        assert [(row.target_dag_id, row.partition_key) for row in rows] == [
            ("ad_campaigns_hours", partition_key(HOUR))
        ]
        session.rollback()


def test_a_partition_is_what_airflows_mappers_read() -> None:
    """Their default format has no zone; a key that they cannot read starts nothing, and says so in a log alone."""
    key = partition_key(HOUR)
    assert key == "2024-01-01T05:00:00"
    assert StartOfDayMapper().to_downstream(key) == "2024-01-01"
