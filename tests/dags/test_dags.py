"""The DAGs as Airflow sees them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from seamline.orchestration.dags import build_dags, cron
from seamline.orchestration.pools import POOLS

ROOT = Path(__file__).parents[2]
IDS = {"flights__batch", "flights__stream", "flights__upkeep"}
HEAVY = (
    "pyspark",
    "delta",
    "deltalake",
    "duckdb",
    "pyarrow",
    "pandas",
    "kafka",
    "great_expectations",
    "sqlglot",
)
WRONG = """
from seamline import *
wrong = Pipeline(
    name="wrong",
    source=KafkaSource(topic="t", schema="a STRING, at TIMESTAMP", event_time="at"),
    views=[View("v", keys=["b"], window=Tumbling("1 hour"), measures={"n": count()})],
    batch=Batch(interval="1 day", start="2013-01-01"),
)
"""
PARSE = """
import json, sys
from seamline.orchestration.dags import parsed_dags
ids = sorted(parsed_dags())
print(json.dumps({"ids": ids, "modules": sorted(sys.modules)}))
"""


@pytest.fixture
def folder(tmp_path):
    """The demo's definitions in a folder that a test may add to."""
    place = tmp_path / "pipelines"
    place.mkdir()
    (place / "flights.py").write_text((ROOT / "include/pipelines/flights.py").read_text())
    return place


def parse(folder: Path, home: Path) -> dict[str, list[str]]:
    """Parse in a process of its own, as the DAG processor does."""
    env = {
        **os.environ,
        "SEAMLINE_PIPELINES": str(folder),
        "SEAMLINE_HOME": str(home),
        "PYTHONPATH": str(ROOT / "include"),
    }
    done = subprocess.run([sys.executable, "-c", PARSE], env=env, capture_output=True, text=True, check=True)
    found: dict[str, list[str]] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_airflow_finds_exactly_our_dags(monkeypatch, tmp_path):
    """A DAG file without the words that Airflow looks for is skipped without a word."""
    from airflow.dag_processing.dagbag import DagBag

    monkeypatch.setenv("SEAMLINE_PIPELINES", str(ROOT / "include/pipelines"))
    monkeypatch.setenv("SEAMLINE_HOME", str(tmp_path))
    bag = DagBag(str(ROOT / "dags"))
    assert bag.import_errors == {}
    assert set(bag.dags) == IDS


def test_parsing_needs_no_engine(folder, tmp_path):
    """A DAG file is parsed every half minute and at each task's start."""
    parse(folder, tmp_path)
    again = parse(folder, tmp_path)
    assert set(again["ids"]) == IDS
    assert [name for name in HEAVY if name in again["modules"]] == []


def test_a_broken_definition_shows_itself_and_hides_no_other(folder, tmp_path):
    """One bad file must not take a team's DAGs away."""
    (folder / "wrong.py").write_text(WRONG)
    (folder / "worse.py").write_text("import no_such_module\n")
    made = build_dags(folder, tmp_path)
    assert set(made) == IDS | {"wrong__broken", "worse__broken"}
    assert "There is no column 'b'." in made["wrong__broken"].doc_md
    assert "no_such_module" in made["worse__broken"].doc_md


def test_a_mended_definition_is_seen_at_once(folder, tmp_path):
    """The verdict is kept by content: it must never outlive an edit."""
    (folder / "wrong.py").write_text(WRONG)
    build_dags(folder, tmp_path)
    (folder / "wrong.py").write_text(WRONG.replace('["b"]', '["a"]'))
    assert set(build_dags(folder, tmp_path)) == IDS | {"wrong__batch", "wrong__stream", "wrong__upkeep"}


def test_a_task_start_builds_its_own_definition_only(folder, tmp_path):
    """Every task start parses the file again; the other pipelines are not its business."""
    (folder / "other.py").write_text(WRONG.replace('["b"]', '["a"]').replace('"wrong"', '"other"'))
    assert set(build_dags(folder, tmp_path, only="flights__batch")) == IDS


def test_every_dag_survives_serialization(folder, tmp_path):
    """What the scheduler and the pages see is the serialized DAG."""
    from airflow.serialization.serialized_objects import DagSerialization

    for dag_id, dag in build_dags(folder, tmp_path).items():
        again = DagSerialization.deserialize_dag(DagSerialization.serialize_dag(dag))
        assert again.dag_id == dag_id
        assert again.task_ids == dag.task_ids


def test_parsing_twice_gives_the_same_dags(folder, tmp_path):
    """A clock or a random name in a DAG makes a new version at every parse."""
    from airflow.serialization.serialized_objects import DagSerialization

    def serialized() -> str:
        dags = build_dags(folder, tmp_path)
        return json.dumps(
            {key: DagSerialization.serialize_dag(dag) for key, dag in dags.items()}, default=str
        )

    assert serialized() == serialized()


def test_the_dags_have_what_their_definition_says(folder, tmp_path):
    """Owner, tags, start and pools are the definition's, not defaults that somebody forgot."""
    made = build_dags(folder, tmp_path)
    for dag in made.values():
        assert dag.max_active_runs == 1
        assert dag.catchup is False
        assert dag.start_date.isoformat() == "2013-01-01T00:00:00+00:00"
        assert {"demo", "seamline", "flights"} <= set(dag.tags)
        for task in dag.tasks:
            assert task.owner == "data-platform"
            assert task.pool in POOLS
    batch = made["flights__batch"]
    order = [task.task_id for task in batch.topological_sort()]
    assert order == ["plan", "build", "certify", "publish", "all_certified"]
    assert {task.task_id for task in batch.leaves} == {"publish", "all_certified"}
    assert sorted(batch.params) == ["from", "reason", "to"]


@pytest.mark.parametrize(
    ("hours", "expected"), [(24, "0 0 * * *"), (1, "0 * * * *"), (6, "0 */6 * * *"), (0.5, "*/30 * * * *")]
)
def test_an_interval_is_a_schedule(hours, expected):
    """The data interval of a run must be an interval of the grid."""
    assert cron(timedelta(hours=hours)) == expected
