"""The connections of sinks: what a supervisor starts reads them, and a missing one stops its own sink alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
from airflow.sdk.exceptions import AirflowNotFoundException
from tests.unit.shop import sales_pipeline

from seamline import DeadLetterSink, KafkaSink, PostgresSink, RedisSink
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.orchestration import airflow_connections
from seamline.orchestration.reconciling_all import find_stream_env, read_connection


@pytest.fixture
def sinking(monkeypatch: pytest.MonkeyPatch) -> CompiledPipeline:
    """A pipeline with three sinks, whose connections are all there but Redis's."""

    def find(name: str) -> dict[str, str]:
        if name == "redis_default":
            raise AirflowNotFoundException(name)
        return {f"AIRFLOW_CONN_{name.upper()}": "{}"}

    monkeypatch.setattr(airflow_connections, "connection_env", find)
    monkeypatch.setattr("seamline.orchestration.reconciling_all.connection_env", find)
    plain = sales_pipeline()
    sinks = (
        KafkaSink("sales", topic="out", connection="kafka_out"),
        PostgresSink("sales", table="sales"),
        RedisSink("sales"),
        DeadLetterSink("rejected", topic="rejected", connection="kafka_dead"),
    )
    return replace(plain, definition=replace(plain.definition, sinks=sinks))


def test_a_supervisor_is_given_the_connections_of_sinks(sinking: CompiledPipeline) -> None:
    """Airflow may keep them where no process outside can read them."""
    assert airflow_connections.sink_connections_env(sinking.definition).keys() == {
        "AIRFLOW_CONN_KAFKA_DEAD",
        "AIRFLOW_CONN_KAFKA_OUT",
        "AIRFLOW_CONN_POSTGRES_DEFAULT",
    }


def test_a_look_at_all_streams_gives_them_too(sinking: CompiledPipeline) -> None:
    """The task for all pipelines asks Airflow once for each connection."""
    names = ["kafka_default", *airflow_connections.list_sink_connections(sinking.definition)]
    found = find_stream_env(sinking, {name: read_connection(name) for name in names})
    assert found.keys() == {
        f"AIRFLOW_CONN_{name}" for name in ("KAFKA_DEAD", "KAFKA_DEFAULT", "KAFKA_OUT", "POSTGRES_DEFAULT")
    }
