"""What tasks lack of a registry's schemas, said through Spark; and what a log names of a registry that is new to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import DataFrame, SparkSession
from tests.unit.kafka.registry.small_registry import SmallRegistry, open_registry
from tests.unit.records import batch, pipeline

from seamline import Json
from seamline.kernel.kernel_config import KernelConfig
from seamline.kernel.kernel_result import KernelResult
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.schemas.kept_schemas import KeptSchemas, SchemasWanted, require_registry
from seamline.model.compile.compiled_pipeline import CompiledPipeline, compile_pipeline
from seamline.model.schemas.writer_schema import find_wanted_schemas
from seamline.spark.stream.registries import Registries
from seamline.spark.stream.surveying import Surveys
from seamline.spark.tasks.state_parts import run_epoch_in_parts
from seamline.spark.tasks.task import REPORT, collect_reports, kernel_task, merge_task_reports

pytestmark = pytest.mark.faults
MADE = compile_pipeline(pipeline("id BIGINT, at TIMESTAMP", format=Json(registry="main")))


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[SmallRegistry]:
    """A registry that the connection names."""
    with open_registry() as made:
        monkeypatch.setenv("AIRFLOW_CONN_MAIN", json.dumps({"host": made.url}))
        yield made


SURVEYED = compile_pipeline(
    pipeline("id BIGINT, at TIMESTAMP", format=Json(registry="main"), event_id=["id"], dedup_within="1 hour")
)


@pytest.mark.parametrize("parts", [0, 2], ids=["whole", "in parts"])
def test_tasks_say_what_they_lack_and_keep_their_workers(
    spark: SparkSession, tmp_path: Path, parts: int
) -> None:
    """Through Spark, whether the driver merges states or tasks do; two tasks may lack different ones."""
    frame = spark.createDataFrame(records(1, 2, 3, 4)).repartition(2)
    config = config_of(MADE, tmp_path, parts)
    with pytest.raises(SchemasWanted) as found:
        run_tasks(frame, config)
    assert set(found.value.ids) <= {1, 2, 3, 4}


def test_a_survey_says_what_it_lacks(spark: SparkSession, tmp_path: Path) -> None:
    """It fails by an error, in which Spark leaves the words."""
    surveys = Surveys(SURVEYED, Layout(tmp_path, "records"), tmp_path / "ids")
    with pytest.raises(Exception, match="are not kept yet") as found:
        surveys.survey(spark.createDataFrame(records(7)), config_of(SURVEYED, tmp_path))
    assert find_wanted_schemas(str(found.value)) == {"main": [7]}


@pytest.mark.parametrize("exists", [False, True])
def test_a_registry_that_is_new_to_a_log_is_asked_for_what_its_records_name(
    registry: SmallRegistry, spark: SparkSession, tmp_path: Path, exists: bool
) -> None:
    """A build would take what is not kept for unknown, and refuse what has counted."""
    layout = Layout(tmp_path, "records")
    for number in (3, 5):
        registry.add(f"/schemas/ids/{number}", schema="{}", schemaType="JSON")
    if exists:
        rows = pa.table(
            {
                "_topic": ["t", "t", "u", "t"],
                "_value": pa.array([HEADS[3], b"{", HEADS[4], HEADS[5]], pa.binary()),
            }
        )
        write_deltalake(str(layout.table("master")), rows)
    Registries(MADE, layout).begin(spark)
    Registries(MADE, layout).begin(spark)
    ids = [3, 5] if exists else []
    assert registry.paths == [f"/schemas/ids/{number}" for number in ids]
    require_registry(layout.schemas, "main")
    assert [*KeptSchemas(layout.schemas).find("main", ids)] == ids


def run_tasks(frame: DataFrame, config: KernelConfig) -> KernelResult:
    """Run the kernel as a driver does."""
    if config.parts:
        return run_epoch_in_parts(frame, config)
    return merge_task_reports(collect_reports(frame.mapInArrow(kernel_task(config), REPORT)))


HEADS = {number: b"\x00" + number.to_bytes(4) for number in range(10)}


def records(*numbers: int) -> pa.Table:
    """Make raw records that name schemas."""
    values = [HEADS[number] + b'{"id": 1, "at": "2024-03-01T10:00:00Z"}' for number in numbers]
    return pa.Table.from_batches([batch(values)])


def config_of(pipeline: CompiledPipeline, folder: Path, parts: int = 0) -> KernelConfig:
    """Return an epoch's task, which keeps no schema yet."""
    for name in ("master", "quarantine"):
        (folder / name).mkdir(exist_ok=True)
    return KernelConfig(
        pipeline=pipeline,
        topic_ids={"t": "T"},
        token=1,
        epoch=5,
        committed={},
        views=frozenset(view.id for view in pipeline.views),
        master=folder / "master",
        quarantine=folder / "quarantine",
        parts=parts,
        slices={view.id: folder / view.name for view in pipeline.views},
        kept=KeptSchemas(folder / "schemas", final=False),
    )
