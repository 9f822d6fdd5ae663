"""The DAGs as Airflow sees them."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import Asset
from airflow.sdk.definitions.asset import AssetUniqueKey
from airflow.sdk.definitions.param import process_params
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowNotFoundException,
    AirflowSkipException,
    TaskAwaitingInput,
)
from airflow.sdk.execution_time.context import OutletEventAccessor
from tests.unit.lake.publish.test_publish import DAYS as PUBLISHED
from tests.unit.lake.publish.test_publish import SHOP, VIEW, offer
from tests.unit.shop import START, Sale, Shop

from seamline.lake.publish import publishing
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.audits_table import Audits
from seamline.lake.tables.claims_table import claim_intervals, claims_of
from seamline.lake.tables.manifest_table import ManifestTable
from seamline.model.errors import (
    AuditFailed,
    BadRange,
    CertificateFailed,
    Conflict,
    DefinitionError,
    DiskFull,
    IntervalRunning,
    KafkaUnavailable,
    MeasureFailed,
    NotFound,
    PublishRefused,
)
from seamline.model.protocol.audit import Audit, Finding, Wrong
from seamline.model.protocol.job_arguments import BuildJob
from seamline.model.protocol.manifest import Act, How, Manifest, Statement
from seamline.model.time.intervals import Interval
from seamline.orchestration import airflow_connections, tasks
from seamline.orchestration.build_task import BuildOperator
from seamline.orchestration.checked_definitions import JUDGED_FOR
from seamline.orchestration.dag_docs import format_cron
from seamline.orchestration.dags import build_dags
from seamline.orchestration.failures import WAITS, ByKind, log_failure_reason
from seamline.orchestration.freshness_deadline import alert_each_once, function_of
from seamline.orchestration.intervals import untold
from seamline.orchestration.intervals.links import INTERVAL
from seamline.orchestration.intervals.partitions import list_partitions
from seamline.orchestration.pools import POOLS
from seamline.plan.wording.observation_text import RECONCILER
from seamline.runtime import java
from seamline.runtime.error_report import write_error_report

ROOT = Path(__file__).parents[2]
LAYERS = ("batch", "stream", "upkeep", "audit", "import")
IDS = {RECONCILER, *(f"flights__{layer}" for layer in LAYERS)}
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


IN_SQL = """
CREATE PIPELINE told WITH (batch.interval = '1 day', batch.start = '2013-01-01');
CREATE SOURCE t (a STRING, at TIMESTAMP, WATERMARK FOR at) WITH (connector = 'kafka', topic = 't');
CREATE VIEW v AS SELECT a, count(*) AS n FROM t GROUP BY a, TUMBLE(at, INTERVAL '1 hour');
"""


def test_a_pipeline_in_sql_has_the_dags_of_any_other(folder, tmp_path):
    """Airflow parses definitions every half minute: reading SQL must cost it no more than reading Python."""
    (folder / "told.sql").write_text(IN_SQL)
    (folder / "wrong.sql").write_text(IN_SQL.replace("told", "wrong").replace("count(*)", "sum(b)"))
    parse(folder, tmp_path)
    again = parse(folder, tmp_path)
    assert set(again["ids"]) == IDS | {f"told__{layer}" for layer in LAYERS} | {"wrong__broken"}
    assert [name for name in HEAVY if name in again["modules"]] == []
    assert set(build_dags(folder, tmp_path, only="told__batch")) == {"told__batch"}
    broken = build_dags(folder, tmp_path)["wrong__broken"]
    assert broken.description.startswith("wrong.sql cannot be used: There is no column 'b'.")
    assert "wrong.sql:4:28: views[v].measures[n]: " in broken.doc_md


GOOD = WRONG.replace('["b"]', '["a"]')
ODD = {
    "an interval that is no schedule": ("wrong.py", GOOD.replace('"1 day"', '"2 days"')),
    "an interval below a minute": ("wrong.py", GOOD.replace('"1 day"', '"30 seconds"')),
    "a tag that is too long for Airflow": (
        "wrong.py",
        GOOD.replace("views=", f"tags=['{'x' * 101}'], views="),
    ),
    "a tag that is no text": ("wrong.py", GOOD.replace("views=", "tags=[1], views=")),
    "a description that is no text": ("wrong.py", GOOD.replace("views=", "description=7, views=")),
    "a number of retries that is none": ("wrong.py", GOOD.replace("views=", "retries='2', views=")),
    "a name that no DAG may bear": ("wrong (copy).py", "import no_such_module\n"),
    "a name that is too long for a DAG": (f"wrong{'g' * 240}.py", "import no_such_module\n"),
    "a file that ends the process": ("wrong.py", "import sys\nsys.exit(3)\n"),
}


@pytest.mark.parametrize("odd", ODD)
def test_what_airflow_would_not_take_of_a_definition_hides_no_other(odd, folder, tmp_path):
    """What one file does to the parse of all must never be that none of them has a DAG."""
    name, text = ODD[odd]
    (folder / name).write_text(text)
    for _ in range(2):
        made = build_dags(folder, tmp_path)
        assert set(made) >= IDS
        [broken] = [dag for id, dag in made.items() if id.endswith("__broken")]
        assert broken.dag_id.startswith("wrong")
        assert "wrong" in broken.doc_md


def test_a_pipeline_of_tables_has_its_dags_and_asks_for_no_connection(folder, tmp_path):
    """What is read is named as what it is; a connection that nobody has made is not looked for."""
    table = GOOD.replace('KafkaSource(topic="t"', 'DeltaSource(table="/lake/t"')
    (folder / "wrong.py").write_text(table)
    made = build_dags(folder, tmp_path)
    assert set(made) == IDS | {f"wrong__{layer}" for layer in LAYERS}
    assert "Delta table `/lake/t`; intervals of 1 day" in made["wrong__batch"].doc_md
    assert airflow_connections.connection_env("") == airflow_connections.connection_env_if_any("") == {}


def test_the_layers_that_can_be_made_are_there(folder, tmp_path):
    """A stream that cannot be scheduled in batches must still be kept up."""
    (folder / "wrong.py").write_text(ODD["an interval that is no schedule"][1])
    made = build_dags(folder, tmp_path)
    others = {f"wrong__{layer}" for layer in LAYERS if layer != "batch"}
    assert set(made) == IDS | others | {"wrong__broken"}
    assert "2 days, 0:00:00 cannot be a schedule" in made["wrong__broken"].doc_md


def test_what_is_no_file_of_definitions_hides_none(folder, tmp_path):
    """An editor's lock is a link to nowhere; a folder and a link that somebody named so are said to be wrong."""
    (folder / ".#flights.py").symlink_to("ada@host.1234")
    assert set(build_dags(folder, tmp_path)) == IDS
    (folder / "gone.py").symlink_to(tmp_path / "nowhere.py")
    (folder / "drawer.py").mkdir()
    assert set(build_dags(folder, tmp_path)) == IDS | {"gone__broken", "drawer__broken"}


def test_a_verdict_does_not_outlive_what_it_was_about(folder, tmp_path, monkeypatch):
    """A definition may import what is not in its folder: that comes and goes without an edit of it."""
    (folder / "wrong.py").write_text("import seamline_test_beside\n" + GOOD)
    assert set(build_dags(folder, tmp_path)) == IDS | {"wrong__broken"}
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside/seamline_test_beside.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path / "beside"))
    [kept] = (tmp_path / "verdicts").iterdir()
    past = kept.stat().st_mtime - 2 * JUDGED_FOR
    os.utime(kept, (past, past))
    every = IDS | {f"wrong__{layer}" for layer in LAYERS}
    assert set(build_dags(folder, tmp_path)) == every
    monkeypatch.delitem(sys.modules, "seamline_test_beside")
    (tmp_path / "beside/seamline_test_beside.py").write_text("raise OSError('no disk')\n")
    made = build_dags(folder, tmp_path)
    assert set(made) == IDS | {"wrong__broken"}
    assert "no disk" in made["wrong__broken"].doc_md


def test_of_two_definitions_of_a_name_the_dags_are_of_the_one_that_runs(folder, tmp_path):
    """Its tasks find the first one; a schedule of the other would ask them for intervals of another grid."""
    (folder / "a.py").write_text(GOOD)
    (folder / "b.py").write_text(GOOD.replace("2013", "2020").replace("views=", "owner='b', views="))
    made = build_dags(folder, tmp_path)
    assert set(made) == IDS | {f"wrong__{layer}" for layer in LAYERS} | {"b__broken"}
    assert made["wrong__batch"].start_date.year == 2013


def test_a_mended_definition_is_seen_at_once(folder, tmp_path):
    """The verdict is kept by content: it must never outlive an edit."""
    (folder / "wrong.py").write_text(WRONG)
    build_dags(folder, tmp_path)
    (folder / "wrong.py").write_text(WRONG.replace('["b"]', '["a"]'))
    assert set(build_dags(folder, tmp_path)) == IDS | {f"wrong__{layer}" for layer in LAYERS}


def test_a_task_start_runs_its_own_definition_only(folder, tmp_path):
    """Every task start parses the file again; the other pipelines are not its business, broken ones included."""
    (folder / "other.py").write_text("from pathlib import Path\nPath(__file__).with_suffix('.run').touch()\n")
    assert set(build_dags(folder, tmp_path, only="flights__batch")) == {"flights__batch"}
    assert set(build_dags(folder, tmp_path, only=RECONCILER)) == {RECONCILER}
    assert not list(folder.glob("*.run"))
    assert "other__broken" in build_dags(folder, tmp_path, only="other__broken")


def test_a_task_starts_of_a_pipeline_whose_name_is_put_together(folder, tmp_path):
    """Its file does not have the name in its text."""
    file = folder / "flights.py"
    file.write_text(file.read_text().replace('"flights"', '"fli" + "ghts"'))
    assert "flights__batch" in build_dags(folder, tmp_path, only="flights__batch")


def test_what_one_run_is_asked_for_is_in_no_other_form(folder, tmp_path):
    """Airflow writes it into the fields of the DAG that it has parsed."""
    batch = build_dags(folder, tmp_path)["flights__batch"]
    asked = {"from": "2013-01-01T00:00:00Z", "to": "2013-01-02T00:00:00Z", "reason": "so"}
    assert process_params(batch, batch.tasks[0], asked, suppress_exception=False)["reason"] == "so"
    again = build_dags(folder, tmp_path)["flights__batch"]
    assert set(process_params(again, again.tasks[0], {}, suppress_exception=False).values()) == {None}


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
        assert dag.catchup is False
        if dag.dag_id == RECONCILER:
            continue
        assert dag.max_active_runs == 1
        assert dag.start_date.isoformat() == "2013-01-01T00:00:00+00:00"
        assert {"demo", "seamline", "flights"} <= set(dag.tags)
        for task in dag.tasks:
            assert task.owner == "data-platform"
            assert task.pool in POOLS
    batch = made["flights__batch"]
    order = [task.task_id for task in batch.topological_sort()]
    assert order == ["plan", "build", "certify", "publish", "all_certified"]
    assert {task.task_id for task in batch.leaves} == {"publish", "all_certified"}
    assert sorted(batch.params) == ["dirty", "from", "reason", "to"]


def test_what_stays_wrong_fails_at_once_and_what_passes_is_tried_again():
    """A retry of wrong data is a wrong answer later; a failure for a conflict wakes somebody for nothing."""

    def verdict(error: BaseException, at: int = 1, retries: int = 1) -> tuple[str, float | None]:
        found = ByKind(retries).evaluate(error, at, retries + WAITS)
        delay = found.retry_delay
        assert found.reason == f"{type(error).__name__}: it is so"
        return found.action.value, delay and delay.total_seconds()

    for final in (CertificateFailed, DefinitionError, BadRange, NotFound, PublishRefused, MeasureFailed):
        assert verdict(final("it is so\nand so", hint="fix it")) == ("fail", None)
    for passing in (Conflict("it is so"), KafkaUnavailable("it is so"), OSError("it is so")):
        assert [verdict(passing, at, 2) for at in (1, 2, 3)] == [("retry", 30), ("retry", 60), ("fail", None)]
    assert [verdict(IntervalRunning("it is so"), at)[1] for at in range(1, 8)] == [
        30,
        60,
        120,
        240,
        480,
        600,
        600,
    ]


def test_a_first_run_that_no_task_could_be_started_for_is_tried_again(folder, tmp_path):
    """On a busy machine Airflow gave the task up before it ran: nothing started the stream, then or later."""
    [task] = build_dags(folder, tmp_path)["flights__stream"].tasks
    assert isinstance(task.retry_policy, ByKind)
    assert task.retries > task.retry_policy.retries > 0


def test_one_dag_reconciles_all_pipelines(folder, tmp_path, monkeypatch):
    """Two hundred pipelines are one run every two minutes, and nobody has to unpause it."""
    (folder / "other.py").write_text(WRONG.replace('["b"]', '["a"]').replace('"wrong"', '"other"'))
    monkeypatch.setenv("AIRFLOW__CORE__MAX_CONSECUTIVE_FAILED_DAG_RUNS_PER_DAG", "3")
    made = build_dags(folder, tmp_path)
    dag = made[RECONCILER]
    assert {task.task_id: task.queue for task in dag.tasks} == {
        "streams": "stream",
        "driver": "stream",
        "freshness": "default",
        "closed": "default",
        "build_closed": "default",
    }
    assert (dag.schedule, dag.is_paused_upon_creation) == (timedelta(minutes=2), False)
    assert dag.max_consecutive_failed_dag_runs == 0
    assert {task.pool for task in dag.tasks} <= set(POOLS)
    assert {made[f"{name}__stream"].schedule for name in ("flights", "other")} == {"@once"}
    for file in folder.glob("*.py"):
        file.write_text("broken")
    assert RECONCILER in build_dags(folder, tmp_path)
    for file in folder.glob("*.py"):
        file.unlink()
    assert build_dags(folder, tmp_path) == {}


def test_a_reconcile_that_hangs_on_a_lost_host_does_not_hold_up_the_next(folder, tmp_path):
    """Airflow finds out after five minutes that a task's host is gone, and the streams of that host are down."""
    dag = build_dags(folder, tmp_path)[RECONCILER]
    assert dag.max_active_runs == 2


def test_the_only_run_of_a_streams_dag_waits_for_its_worker(folder, tmp_path):
    """No run follows it: one that is ended while there is no pool, or no worker of its queue, starts no stream."""
    dag = build_dags(folder, tmp_path)["flights__stream"]
    [task] = dag.tasks
    assert (dag.dagrun_timeout, task.execution_timeout) == (None, timedelta(minutes=5))


def test_the_reason_of_a_failure_is_the_first_thing_in_the_log(capsys):
    """Nobody should have to read a traceback upwards."""

    @log_failure_reason
    def task() -> None:
        raise BadRange("2050 has not begun.", hint="wait.")

    with pytest.raises(BadRange):
        task()
    assert capsys.readouterr().out.startswith("BadRange: 2050 has not begun.")

    @log_failure_reason
    def full() -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(DiskFull):
        full()
    assert capsys.readouterr().out.startswith("DiskFull: The disk is full")


def test_a_plan_of_an_interval_that_is_running_waits_and_is_made_anew(monkeypatch, tmp_path, capsys):
    """Made before the other run was through, its cut would be below the one published by then."""
    shop = Shop(tmp_path)
    shop.epoch([Sale(1, "a", 4)], watermark=START.replace(day=3))
    params = {"from": "2013-01-01T00:00Z", "to": "2013-01-02T00:00Z"}
    kind = SimpleNamespace(value="manual")
    run = SimpleNamespace(run_type=kind, triggering_user_name="ada", run_after=datetime.now(UTC))
    monkeypatch.setattr(
        tasks, "get_current_context", lambda: {"run_id": "r1", "dag_run": run, "params": params}
    )
    monkeypatch.setattr(tasks, "open_compiled_pipeline", lambda _: (shop.compiled, shop.layout))
    day = Interval.parse("2013-01-01/2013-01-02")
    with claim_intervals(shop.layout, "r2", "cli:ada", [day]), pytest.raises(IntervalRunning):
        tasks.plan("shop")
    capsys.readouterr()
    with claim_intervals(shop.layout, "r1", "an earlier attempt", [day]):
        made = tasks.plan("shop")
    assert BuildJob.parse(made["argv"]) == BuildJob(
        "shop", "r1", 0, (day,), "asked for", shop.manifest.read().version, "airflow:ada"
    )
    assert (made["cut"], made["intervals"], made["waits"]) == (0, 1, False)
    assert "| 2013-01-01T00:00:00Z | 1 |" in made["table"]
    log = capsys.readouterr().out.splitlines()
    assert log[0] == "shop: 2013-01-01T00:00:00Z/2013-01-02T00:00:00Z (asked for)"
    assert "    asked for" in log


def test_upkeep_asks_the_topic_through_the_connection_if_there_is_one(monkeypatch, tmp_path, capsys):
    """Airflow may keep it where no process outside can read it; without one the tables are kept up all the same."""
    shop = Shop(tmp_path)
    shop.epoch([Sale(1)])
    monkeypatch.setattr(tasks, "open_compiled_pipeline", lambda _: (shop.compiled, shop.layout))
    monkeypatch.setattr(
        airflow_connections, "connection_env", lambda name: {f"AIRFLOW_CONN_{name.upper()}": "{"}
    )
    tasks.upkeep("shop", "kafka_default")
    assert "AIRFLOW_CONN_KAFKA_DEFAULT is neither a connection in JSON" in capsys.readouterr().out

    def none(name):
        raise AirflowNotFoundException(name)

    monkeypatch.setattr(airflow_connections, "connection_env", none)
    tasks.upkeep("shop", "kafka_default")
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "ledger: 0 rows repaired"
    assert told[-1].endswith("There is no connection named 'kafka_default'.")


def test_a_build_claims_its_intervals_before_spark_starts(monkeypatch, tmp_path):
    """A JVM that starts to find the interval taken is a minute lost; a claim that a failure leaves is ten."""
    shop = Shop(tmp_path)
    monkeypatch.setenv("SEAMLINE_WAREHOUSE", "s3://lake/of-all-others")
    monkeypatch.setenv("SEAMLINE_WAREHOUSE_SHOP", str(shop.warehouse))
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", "spark://local")
    monkeypatch.setattr("seamline.runtime.java.spark_jars", lambda: ["delta.jar"])
    monkeypatch.setattr("seamline.runtime.java.java_home", Path)
    layout, now = shop.layout, datetime.now(UTC)
    shop.epoch([Sale(1)])
    job = BuildJob("shop", "r1", 0, (Interval.parse("2013-01-01/2013-01-03"),))
    theirs = {"spark.driver.extraJavaOptions": "-Dtheirs"}
    build = BuildOperator(task_id="build", application_args=job.to_argv(), conf=theirs)
    submitted: list[str] = []

    def submit(self, context):
        submitted.append(self.application)
        if len(submitted) in (2, 3):
            write_error_report(layout.failure(job.run), Conflict("late", hint="plan again"))
        if len(submitted) > 1:
            raise AirflowException("Cannot execute: x. Error code is: 33.")

    monkeypatch.setattr(
        "airflow.providers.apache.spark.operators.spark_submit.SparkSubmitOperator.execute", submit
    )
    with (
        claim_intervals(layout, "r2", "cli:ada", [Interval.parse("2013-01-02/2013-01-03")]),
        pytest.raises(IntervalRunning),
    ):
        build.execute({})
    assert submitted == []
    build.execute({})
    [claim] = claims_of(layout, now=now)
    assert (claim.run, claim.process, claim.spans) == ("r1", "", job.spans)
    assert build.conf["spark.driver.extraJavaOptions"] == f"{java.jvm_options(brief=True)} -Dtheirs"
    assert build.jars is None, "an executor in the driver has the driver's class path"
    with pytest.raises(Conflict, match="late"):
        build.execute({})
    assert claims_of(layout, now=now) == ()
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", "spark://far:7077")
    with pytest.raises(Conflict, match="late"):
        build.execute({})
    assert build.jars == "delta.jar"
    with pytest.raises(AirflowException, match="Error code is: 33"):
        build.execute({})


@pytest.mark.parametrize(("warehouse", "jars"), [("/srv/warehouse", 1), ("s3://lake/warehouse", 3)])
def test_a_driver_gets_the_jars_for_a_bucket_behind_sparks_own(monkeypatch, warehouse, jars):
    """In front of them they would keep the archive of classes from fitting; on disk nothing changes."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cret")
    monkeypatch.delenv(java.BEHIND, raising=False)
    monkeypatch.setattr(java, "spark_jars", lambda: ["delta.jar"])
    monkeypatch.setattr(java, "store_jars", lambda: ["aws.jar", "sdk.jar"])
    monkeypatch.setattr(java, "java_home", Path)
    monkeypatch.setattr(
        "airflow.providers.apache.spark.operators.spark_submit.SparkSubmitOperator.execute", lambda *_: None
    )
    build = BuildOperator(task_id="build", application_args=[])
    build.submit({}, warehouse, brief=False, near=True)
    assert build.env_vars.get(java.BEHIND) == ("aws.jar:sdk.jar" if jars > 1 else None)
    assert build.conf["spark.driver.extraClassPath"] == "delta.jar"
    assert build.jars is None
    build.submit({}, warehouse, brief=False, near=False)
    assert len(build.jars.split(",")) == jars
    assert "s3cret" not in repr((build.conf, build.env_vars, build.application_args))


def test_a_large_plan_waits_for_approval_where_the_definition_says_so(folder, tmp_path, monkeypatch):
    """A year that was asked for by mistake is seen before it is built; a small plan waits for nobody."""
    file = folder / "flights.py"
    file.write_text(file.read_text().replace('start="2013-01-01")', 'start="2013-01-01", approve_above=5)'))
    batch = build_dags(folder, tmp_path)["flights__batch"]
    order = [task.task_id for task in batch.topological_sort()]
    assert order == ["plan", "approve", "build", "certify", "publish", "all_certified"]
    approve = batch.get_task("approve")
    assert approve.downstream_task_ids == {"build"}
    approve.needed = False
    assert approve.execute({}) is None
    asked = {}
    monkeypatch.setattr(
        "airflow.providers.standard.operators.hitl.upsert_hitl_detail", lambda **given: asked.update(given)
    )
    approve.needed, approve.body = True, "| 2013-01-01 | 700 |"
    with pytest.raises(TaskAwaitingInput):
        approve.execute({"task_instance": SimpleNamespace(id="ti")})
    assert (asked["body"], asked["options"], asked["defaults"]) == (
        "| 2013-01-01 | 700 |",
        ["Approve", "Reject"],
        ["Reject"],
    )


def test_a_freshness_deadline_is_looked_after_twice(folder, tmp_path):
    """Airflow sees a run that takes too long; only the ledger sees an interval that no run was ever for."""
    from airflow.serialization.serialized_objects import DagSerialization

    file = folder / "flights.py"
    file.write_text(
        file.read_text().replace('start="2013-01-01")', 'start="2013-01-01", fresh_within="6 hours")')
    )
    made = build_dags(folder, tmp_path)
    [alert] = made["flights__batch"].deadline
    assert alert.interval == timedelta(hours=6)
    assert (alert.callback.path, alert.callback.kwargs) == (
        "seamline.orchestration.freshness_deadline.missed",
        {"name": "flights"},
    )
    DagSerialization.serialize_dag(made["flights__batch"])
    assert made[RECONCILER].get_task("freshness").upstream_task_ids == set()


def test_what_is_overdue_is_told_once_whoever_finds_it(tmp_path):
    """A deadline's callback may run twice, and the task runs every two minutes; people are woken once."""
    days = [Interval.parse("2013-01-01/2013-01-02"), Interval.parse("2013-01-02/2013-01-03")]
    said = []
    alert_each_once(tmp_path / "late", days[:1], said.append)
    alert_each_once(tmp_path / "late", days[:1], said.append)
    assert said == days[:1]

    def broken(_: Interval) -> None:
        raise OSError("no network")

    with pytest.raises(OSError, match="no network"):
        alert_each_once(tmp_path / "late", days, broken)
    alert_each_once(tmp_path / "late", days, said.append)
    assert said == days


def test_consumers_are_told_which_intervals_changed():
    """An event of a hundred days names the newest, with rows and cut, and how many there are."""
    days = [f"2013-01-{day:02}T00:00:00Z" for day in range(1, 32)] + [
        f"2013-02-{day:02}T00:00:00Z" for day in range(1, 29)
    ]
    made = [Statement(Act.PUBLISH, view, 7, day, "g", rows=2) for day in days for view in ("a/1", "b/2")]
    found = tasks.summarize_changes(made)
    assert (found["intervals"], found["rows"], found["cut"], len(found["changed"])) == (
        59,
        236,
        7,
        tasks.TOLD,
    )
    assert found["changed"]["2013-02-28T00:00:00Z"] == {"cut": 7, "rows": {"a/1": 2, "b/2": 2}}
    assert json.loads(json.dumps(found)) == found


class Consumers:
    """An Airflow that hears of a task's events when it has ended well, and not before."""

    def __init__(self, monkeypatch, layout):
        self.events: list[SimpleNamespace] = []
        self.asked = 0
        monkeypatch.setattr(tasks, "open_compiled_pipeline", lambda _: (SHOP, layout))
        monkeypatch.setattr(tasks, "get_current_context", lambda: self.context)
        monkeypatch.setattr(untold, "InletEventsAccessor", self.accessor)

    def accessor(self, asset_name, asset_uri):
        """Answer as Airflow does of the events of an asset."""
        assert (asset_name, asset_uri) == (SERVING.name, SERVING.uri)
        self.asked += 1
        return SimpleNamespace(after=lambda _: SimpleNamespace(limit=lambda _: self.events))

    def run(self, run: str) -> dict[str, Any]:
        """Run the task ``publish``; what it tells is heard."""
        kind, told = SimpleNamespace(value="scheduled"), SimpleNamespace(extra={})
        dag_run = SimpleNamespace(run_type=kind, dag_id="shop__batch")
        self.partitions = OutletEventAccessor(AssetUniqueKey.from_asset(INTERVALS))
        outlets = {SERVING: told, INTERVALS: self.partitions}
        self.task = SimpleNamespace()
        self.context = {"run_id": run, "dag_run": dag_run, "outlet_events": outlets, "task": self.task}
        tasks.publish("shop", SERVING, INTERVALS)
        self.events.append(
            SimpleNamespace(
                source_dag_id="shop__batch", source_run_id=run, source_task_id="publish", extra=told.extra
            )
        )
        return told.extra


SERVING = Asset(name="shop/serving", uri="x-seamline://shop/serving")
INTERVALS = Asset(name="shop/intervals", uri="x-seamline://shop/intervals")


def test_consumers_are_told_by_the_retry_of_a_publish_that_died_after_its_commit(monkeypatch, tmp_path):
    """Airflow hears of an event when a task has ended: what is published before, and never told, is lost to them."""
    layout = Layout(tmp_path, "shop")
    consumers = Consumers(monkeypatch, layout)
    offer(layout, "a")

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(publishing, "refresh_serving", killed)
    with pytest.raises(KeyboardInterrupt):
        consumers.run("a")
    version = ManifestTable.ensure(layout).table.version
    monkeypatch.setattr(publishing, "refresh_serving", lambda *_: None)
    told = consumers.run("a")
    assert (told["intervals"], sorted(told["changed"]), told["manifest_version"]) == (
        2,
        [*PUBLISHED],
        version,
    )
    with pytest.raises(AirflowSkipException, match="published already"):
        consumers.run("a")
    assert ManifestTable.ensure(layout).table.version == version


def test_each_certified_interval_is_a_partition_and_a_correction_is_one_again(monkeypatch, tmp_path):
    """A DAG that is mapped to intervals runs again for the one that was corrected, and sees why."""
    layout = Layout(tmp_path, "shop")
    monkeypatch.setattr(publishing, "refresh_serving", lambda *_: None)
    consumers = Consumers(monkeypatch, layout)
    offer(layout, "a")
    consumers.run("a")
    keys = [day.removesuffix("Z") for day in PUBLISHED]
    assert consumers.partitions.partition_keys == {*keys}
    view = VIEW.id
    facts = {"cut": 5, "rows": {view: 1}, "certificate": "a", "correction": False, "cause": "test"}
    told = consumers.partitions.extra["partitions"]
    assert told == {key: {**facts, "interval": day} for key, day in zip(keys, PUBLISHED, strict=True)}
    assert consumers.task.seamline_pages[INTERVAL].endswith("interval=2013-01-02T00%3A00%3A00Z")
    offer(layout, "b", cut=9, expected="g-a", days=PUBLISHED[:1])
    consumers.run("b")
    assert consumers.partitions.partition_keys == {keys[0]}
    assert consumers.partitions.extra["partitions"][keys[0]] == {
        **facts,
        "interval": PUBLISHED[0],
        "cut": 9,
        "certificate": "b",
        "correction": True,
    }


def test_what_is_only_provisional_is_no_partition():
    """It is published, and nobody has certified it."""
    made = [Statement(Act.PUBLISH, "a/1", 7, PUBLISHED[0], "g", certified=True, how=How.PROVISIONAL)]
    assert list_partitions(made, Manifest()) == {}


def test_consumers_are_not_told_again_of_what_another_run_has_replaced(monkeypatch, tmp_path):
    """A task cleared weeks later tells nobody of a generation that answers no more, and of its own only once."""
    layout = Layout(tmp_path, "shop")
    monkeypatch.setattr(publishing, "refresh_serving", lambda *_: None)
    consumers = Consumers(monkeypatch, layout)
    offer(layout, "a")
    consumers.run("a")
    assert consumers.asked == 0
    offer(layout, "b", cut=9, expected="g-a", days=PUBLISHED[:1])
    consumers.run("b")
    consumers.events.clear()
    told = consumers.run("a")
    assert sorted(told["changed"]) == [PUBLISHED[1]]


def test_a_build_without_a_plan_says_what_to_clear(tmp_path):
    """The XCom of a plan that is cleared alone, or was cleaned away, is gone."""
    for gone in (None, [], "None"):
        build = BuildOperator(task_id="build", application_args=gone)
        with pytest.raises(NotFound, match="no plan of this run"):
            build.execute({})


def test_a_function_that_is_not_there_is_named():
    """The first time it is called is when it is needed."""
    assert function_of("json.dumps") is json.dumps
    for path in ("json.nothing", "nowhere.call", "dumps"):
        with pytest.raises(DefinitionError, match="cannot be imported"):
            function_of(path)


def test_the_build_shows_its_plan_and_names_its_application(folder, tmp_path):
    """The rendered page of a run's build is where its plan is looked up later."""
    batch = build_dags(folder, tmp_path)["flights__batch"]
    assert batch.get_task("plan").multiple_outputs
    build = batch.get_task("build")
    assert "plan" in build.template_fields
    assert build.template_fields_renderers["plan"] == "md"
    assert build.name == "{{ dag.dag_id }}.{{ task.task_id }}.{{ run_id }}"


@pytest.mark.parametrize(
    ("hours", "expected"), [(24, "0 0 * * *"), (1, "0 * * * *"), (6, "0 */6 * * *"), (0.5, "*/30 * * * *")]
)
def test_an_interval_is_a_schedule(hours, expected):
    """The data interval of a run must be an interval of the grid."""
    assert format_cron(timedelta(hours=hours)) == expected


def test_an_audit_fails_its_task_unless_the_form_says_not_to(monkeypatch, tmp_path, capsys):
    """What is wrong is told, kept and handed on either way."""
    shop = Shop(tmp_path)
    shop.epoch([Sale(1)])
    wrong = Finding(Wrong.LOST, "partition 0 of topic id t", 1, "1 records that Kafka has: 7")
    found = Audit("shop", datetime(2026, 1, 1, tzinfo=UTC), 0.5, "", 0, (), {}, {}, (), (wrong,))
    given, pushed = {}, {}

    def audited(pipeline, layout, *, actor, sinks, env):
        given.update(actor=actor, sinks=sinks, env=env)
        return replace(found, actor=actor)

    monkeypatch.setattr("seamline.supervisor.auditing.audit", audited)
    monkeypatch.setattr(tasks, "open_compiled_pipeline", lambda _: (shop.compiled, shop.layout))
    monkeypatch.setattr(tasks, "connection_env", lambda name: {"AIRFLOW_CONN": name})
    run = SimpleNamespace(run_type=SimpleNamespace(value="manual"), triggering_user_name="ada")
    ti = SimpleNamespace(xcom_push=lambda key, value: pushed.update({key: value}))
    context = {"dag_run": run, "ti": ti, "params": {"fail": False}}
    monkeypatch.setattr(tasks, "get_current_context", lambda: context)
    tasks.audit("shop", "kafka_default")
    assert given == {"actor": "airflow:ada", "sinks": False, "env": {"AIRFLOW_CONN": "kafka_default"}}
    assert pushed["findings"] == [f"lost: {wrong.place}: {wrong.said}"]
    assert pushed["findings"][0] in capsys.readouterr().out
    assert Audits.ensure(shop.layout).newest(5) == [replace(found, actor="airflow:ada")]
    context["params"]["fail"] = True
    with pytest.raises(AuditFailed, match="found 1 problem:\nlost: partition 0"):
        tasks.audit("shop", "kafka_default")
    assert len(Audits.ensure(shop.layout).newest(5)) == 2
    monkeypatch.setattr(tasks, "sink_connections_env", lambda _: {"AIRFLOW_CONN_REDIS": "redis"})
    context["params"] = {"fail": False, "sinks": True}
    tasks.audit("shop", "kafka_default")
    assert given["sinks"] and given["env"] == {"AIRFLOW_CONN": "kafka_default", "AIRFLOW_CONN_REDIS": "redis"}
