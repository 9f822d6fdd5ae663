"""A store's keys come from a connection of Airflow's, and stand in the environment alone."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk.exceptions import AirflowNotFoundException
from tests.faults.rig.store_settings import set_store
from tests.services.addresses import Bucket
from tests.unit.shop import DEFINITION

from seamline.lake.store.bucket import open_bucket, use_settings
from seamline.lake.store.object_path import ObjectPath
from seamline.model.errors import ConnectionMissing, SeamlineError, SetupError, StoreRefused, StoreUnavailable
from seamline.orchestration import reconciling, reconciling_all, store_connection
from seamline.orchestration.dags import build_dags
from seamline.orchestration.store_connection import (
    SETTING,
    make_store_settings,
    read_store_settings,
    with_store_settings,
)
from seamline.plan.wording.observation_text import RECONCILER
from seamline.web.error_responses import describe_error

SECRET, TOKEN = "secret-8c1f0a7e", "token-8c1f0a7e"
ROOT = Path(__file__).parents[2]
WHO = {
    "AWS_ACCESS_KEY_ID": None,
    "AWS_SECRET_ACCESS_KEY": None,
    "AWS_SESSION_TOKEN": None,
    "AWS_ROLE_ARN": None,
    "AWS_WEB_IDENTITY_TOKEN_FILE": None,
}
ROLE = {"role_arn": "arn:aws:iam::1:role/r", "assume_role_method": "assume_role_with_web_identity"}
CHILD = "import os; print(len(os.environ['AWS_SECRET_ACCESS_KEY']), len(os.environ['AWS_SESSION_TOKEN']))"
"""What a supervisor would find in its environment."""


def test_a_connection_is_read_as_the_provider_writes_it() -> None:
    """Its older words too; keys never go together with a token that was there before."""
    keys = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"}
    assert make_store_settings("c", "aws", "k", "s", {}) == {**WHO, **keys}
    old = {"aws_access_key_id": "k", "aws_secret_access_key": "s", "aws_session_token": "t"}
    assert make_store_settings("c", "aws", "", "", old) == {**WHO, **keys, "AWS_SESSION_TOKEN": "t"}
    where = {
        "region_name": "eu-west-3",
        "endpoint_url": "https://sts",
        "service_config": {"s3": {"endpoint_url": "https://s3"}},
    }
    assert make_store_settings("c", "aws", "", "", where) == {
        "AWS_REGION": "eu-west-3",
        "AWS_ENDPOINT_URL": "https://s3",
    }
    role = make_store_settings("c", "aws", "", "", {**ROLE, "assume_role_with_web_identity_token_file": "/t"})
    assert role == {**WHO, "AWS_ROLE_ARN": ROLE["role_arn"], "AWS_WEB_IDENTITY_TOKEN_FILE": "/t"}


@pytest.mark.parametrize(
    ("kind", "extra", "fact"),
    [
        ("http", {}, "of type 'http'"),
        ("aws", {"role_arn": "r"}, "not taken on by a token's file"),
        ("aws", ROLE, "not taken on by a token's file"),
        ("aws", {"profile_name": "p"}, "profile_name"),
        ("aws", {"session_kwargs": {"profile_name": "p"}}, "session_kwargs"),
    ],
)
def test_what_the_provider_alone_would_do_is_refused(
    kind: str, extra: dict[str, str], fact: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Left out in silence it would be another user, or none."""
    monkeypatch.delenv("AWS_WEB_IDENTITY_TOKEN_FILE", raising=False)
    with pytest.raises(SetupError, match=fact) as refused:
        make_store_settings("c", kind, "k", SECRET, extra)
    assert SECRET not in str(refused.value) and refused.value.hint


def test_settings_are_there_while_a_task_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that was opened with other keys is not used."""
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of another key")
    masked: list[str] = []
    monkeypatch.setattr(store_connection, "mask_secret", masked.append)
    found = SimpleNamespace(
        conn_type="aws", login="k", password=SECRET, extra_dejson={"aws_session_token": TOKEN}
    )
    monkeypatch.setattr(store_connection.Connection, "get", lambda name: found)
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
    before = [os.environ.get(name) for name in names]
    look = with_store_settings(lambda: [os.environ.get(name) for name in names])
    assert look() == before
    monkeypatch.setenv(SETTING, "lake")
    assert look() == ["k", SECRET, TOKEN]
    assert [os.environ.get(name) for name in names] == before
    assert masked == [SECRET, TOKEN]
    held = open_bucket("s3://lake")
    with use_settings({"AWS_SESSION_TOKEN": None}):
        assert open_bucket("s3://lake") is not held


def test_a_connection_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another's keys in the environment would be used in its place."""

    def none(name: str) -> None:
        raise AirflowNotFoundException(name)

    monkeypatch.setattr(store_connection.Connection, "get", none)
    with pytest.raises(ConnectionMissing, match="'lake'"):
        read_store_settings("lake")


def test_every_task_has_them() -> None:
    """One that was forgotten would look for the warehouse with no keys, or another's."""
    from seamline.orchestration import build_task, freshness_deadline, importing, tasks
    from seamline.orchestration.intervals import closed

    for task in (
        tasks.plan,
        tasks.certify,
        tasks.publish,
        tasks.upkeep,
        tasks.audit,
        reconciling.reconcile,
        reconciling.reconcile_driver,
        reconciling_all.reconcile_streams,
        reconciling_all.report_all_overdue_intervals,
        freshness_deadline.notify_overdue,
        build_task.BuildOperator.execute,
        importing.plan_import,
        importing.ImportSensor.poke,
        closed.list_closed,
    ):
        layers, wrapped = [], task
        while hasattr(wrapped, "__wrapped__"):
            layers.append(wrapped.__code__.co_filename)
            wrapped = wrapped.__wrapped__
        assert any(each.endswith("store_connection.py") for each in layers), task


@pytest.mark.parametrize("kind", [StoreRefused, StoreUnavailable])
def test_a_page_says_that_its_store_is_away(kind: type[SeamlineError]) -> None:
    """503: whoever asks may ask again."""
    status, said, _ = describe_error(kind("away", hint="wait"))
    assert (status, said["error"], said["message"], said["hint"]) == (503, kind.__name__, "away", "wait")


def test_parsing_asks_no_bucket(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Airflow's parser may have no keys: every DAG would be gone until it has."""
    (tmp_path / "shop.py").write_text(DEFINITION)
    monkeypatch.setenv("SEAMLINE_WAREHOUSE", "s3://nobodys/warehouse")
    monkeypatch.setattr(ObjectPath, "is_dir", Mock(side_effect=StoreRefused("no keys", hint="")))
    assert {"shop__batch", RECONCILER} <= set(build_dags(tmp_path, tmp_path))


@pytest.mark.slow
def test_a_secret_is_in_nothing_that_airflow_keeps(
    database: None,
    bucket: Bucket,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Not in its database, with rendered fields and XComs, nor in a log; what a task starts has it."""
    store = set_store(monkeypatch, bucket, bucket.endpoint, tmp_path / "home")
    (tmp_path / "shop.py").write_text(DEFINITION)
    extra = {"region_name": bucket.region, "endpoint_url": bucket.endpoint, "aws_session_token": TOKEN}
    connection = {"conn_type": "aws", "login": "key", "password": SECRET, "extra": extra}
    kafka = {"conn_type": "kafka", "extra": {"bootstrap.servers": "127.0.0.1:9"}}
    for name in store:
        if name not in ("AWS_ALLOW_HTTP", "SEAMLINE_WAREHOUSE"):
            monkeypatch.delenv(name)
    for name, value in {
        "AIRFLOW_CONN_LAKE": json.dumps(connection),
        "AIRFLOW_CONN_KAFKA_DEFAULT": json.dumps(kafka),
        "SEAMLINE_HOME": str(tmp_path / "home"),
        "SEAMLINE_PIPELINES": str(tmp_path),
        SETTING: "lake",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("airflow.settings.DAGS_FOLDER", str(ROOT / "dags"))
    children: list[str] = []

    def start(pipeline: str, env: Mapping[str, str]) -> int:
        told = subprocess.run(
            [sys.executable, "-c", CHILD],
            env={**os.environ, **env},
            capture_output=True,
            text=True,
            check=True,
        )
        children.append(told.stdout.strip())
        return 1

    monkeypatch.setattr("seamline.supervisor.outside.start_detached", start)
    monkeypatch.setattr(reconciling, "look_for_alerts", lambda name, env: None)
    monkeypatch.setattr(reconciling, "await_lease", lambda control, before: 1)
    with caplog.at_level(logging.DEBUG):
        done = DagBag(str(ROOT / "dags")).dags["shop__stream"].test()
    assert [str(each.state) for each in done.get_task_instances()] == ["success"]
    assert children == [f"{len(SECRET)} {len(TOKEN)}"]
    assert not {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} & set(os.environ)
    said = "".join([*capfd.readouterr(), caplog.text])
    folders = (Path(os.environ["AIRFLOW_HOME"]), tmp_path)
    kept = {each: each.read_bytes() for folder in folders for each in folder.rglob("*") if each.is_file()}
    assert any(b"shop__stream" in data for data in kept.values())
    assert "started supervisor" in said
    for secret in (SECRET, TOKEN):
        assert secret not in said
        assert not [each for each, data in kept.items() if secret.encode() in data]
