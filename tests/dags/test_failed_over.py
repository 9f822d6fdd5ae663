"""Streams that go on from another cluster: Airflow's tasks give them that cluster's connection."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.shop import DEFINITION

from seamline.lake.storage.layout import locate_tables
from seamline.lake.tables.control_table import ControlTable, Desired
from seamline.lake.tables.decided import decide_failover
from seamline.model.errors import ConnectionMissing
from seamline.model.protocol.clusters.failovers import By, Failover
from seamline.model.protocol.offsets import Lane
from seamline.orchestration import airflow_connections, reconciling_all

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ControlTable:
    """A stream that should run, and was failed over."""
    (tmp_path / "shop.py").write_text(DEFINITION)
    for name in ("SEAMLINE_PIPELINES", "SEAMLINE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("SEAMLINE_WAREHOUSE", str(tmp_path / "warehouse"))
    control = ControlTable.ensure(locate_tables("shop"))
    lease = control.take("ada", now=NOW)
    closed, begun = {Lane("t", 0): 1}, {Lane("n", 0): 4}
    made = Failover("kafka_b", "kafka_default", By.OFFSETS, closed, begun, False, None, "", "ada", "", NOW)
    decide_failover(control, lease, made, ())
    control.release(lease)
    control.want(Desired.RUNNING, actor="ada", reason="", now=NOW)
    return control


def test_a_supervisor_is_given_the_connection_in_force(
    shop: ControlTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one of the definition may lead to a cluster that is gone."""
    started: list[Mapping[str, str]] = []

    def start(name: str, env: Mapping[str, str]) -> int:
        started.append(env)
        shop.take("there", now=datetime.now(UTC))
        return 77

    def find(name: str) -> dict[str, str]:
        return {f"AIRFLOW_CONN_{name.upper()}": "{}"}

    looked: list[Mapping[str, str]] = []
    made: Any = SimpleNamespace(add=lambda *_, **__: None)
    monkeypatch.setattr(reconciling_all, "get_current_context", lambda: {"outlet_events": {None: made}})
    monkeypatch.setattr(reconciling_all, "connection_env", find)
    monkeypatch.setattr(reconciling_all, "send_alerts", lambda pipeline, env, say, ask: looked.append(env))
    monkeypatch.setattr("seamline.supervisor.outside.start_detached", start)
    reconciling_all.reconcile_streams(None)  # type: ignore[arg-type]
    assert started == looked == [{"AIRFLOW_CONN_KAFKA_B": "{}"}]


def test_a_connection_is_named_by_what_was_decided(shop: ControlTable) -> None:
    """Tasks know the definition's alone; a pipeline without topics needs none."""
    assert airflow_connections.name_in_force("shop", "kafka_default") == "kafka_b"
    assert airflow_connections.name_in_force("shop", "") == ""
    assert airflow_connections.name_in_force("other", "kafka_default") == "kafka_default"
    # A failover that is decided on between two looks is no reason for a traceback.
    assert isinstance(reconciling_all.find_connected({}, "kafka_b"), ConnectionMissing)
