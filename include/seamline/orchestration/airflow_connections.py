"""Airflow's connections, for processes that outlive a task."""

from __future__ import annotations

from collections.abc import Iterable

from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowNotFoundException

from seamline.model.definition.pipeline import Pipeline


def name_in_force(pipeline: str, declared: str) -> str:
    """Return the connection by which a pipeline's topics are read: the declared one, unless a failover has decided."""
    from seamline.lake.storage.layout import locate_tables
    from seamline.lake.tables.decided import find_connection

    return find_connection(declared, locate_tables(pipeline))


def connection_env(name: str) -> dict[str, str]:
    """Resolve a connection as Airflow does (secrets backends too) into what a process outside can read.

    A pipeline without topics has no connection, and needs nothing.
    """
    if not name:
        return {}
    return {f"AIRFLOW_CONN_{name.upper()}": Connection.get(name).as_json()}


def connections_env(names: Iterable[str]) -> dict[str, str]:
    """Resolve several connections."""
    return {variable: text for name in names for variable, text in connection_env(name).items()}


def sink_connections_env(pipeline: Pipeline) -> dict[str, str]:
    """Resolve the connections of a pipeline's sinks; one that is missing is no reason not to start the stream."""
    return {
        key: text
        for name in list_sink_connections(pipeline)
        for key, text in connection_env_if_any(name).items()
    }


def list_sink_connections(pipeline: Pipeline) -> list[str]:
    """List the connections by which a pipeline's sinks write, each once."""
    return sorted({name for sink in pipeline.sinks if (name := getattr(sink, "connection", ""))})


def connection_env_if_any(name: str) -> dict[str, str]:
    """Return the same, or nothing: what needs no broker is done without one."""
    try:
        return connection_env(name)
    except AirflowNotFoundException:
        return {}


def connections_env_if_any(names: Iterable[str]) -> dict[str, str]:
    """Resolve those of several connections that there are."""
    return {variable: text for name in names for variable, text in connection_env_if_any(name).items()}
