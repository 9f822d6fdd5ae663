"""Who may do what: whoever may read the runs of a pipeline's batch DAG may read what it serves.

Who may start runs of a DAG may do by HTTP what its runs do.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.base_auth_manager import ResourceMethod
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_dag
from fastapi import Depends, Request

from seamline.lake.storage.layout import definitions_folder
from seamline.model.compile.catalog import load_cached_catalog
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.orchestration.airflow_connections import connection_env_if_any, name_in_force


def may_read(pipeline: str, request: Request, user: GetUserDep) -> None:
    """Let in who may read the runs of the pipeline's batch DAG."""
    requires_access_dag("GET", DagAccessEntity.RUN, f"{pipeline}__batch")(request, user)


def may_build(pipeline: str, request: Request, user: GetUserDep) -> None:
    """Let in who may start runs of the pipeline's batch DAG."""
    requires_access_dag("POST", DagAccessEntity.RUN, f"{pipeline}__batch")(request, user)


def may_steer(pipeline: str, request: Request, user: GetUserDep) -> None:
    """Let in who may start runs of the DAG that keeps the pipeline's stream up."""
    requires_access_dag("POST", DagAccessEntity.RUN, f"{pipeline}__stream")(request, user)


def may_import(pipeline: str, request: Request, user: GetUserDep) -> None:
    """Let in who may start runs of the DAG that imports files into the pipeline."""
    requires_access_dag("POST", DagAccessEntity.RUN, f"{pipeline}__import")(request, user)


readers, builders, operators = Depends(may_read), Depends(may_build), Depends(may_steer)
importers = Depends(may_import)


def list_readable_pipelines(user: GetUserDep) -> list[str]:
    """List the pipelines that the user may read, by name."""
    return [
        name
        for name in sorted(load_cached_catalog(definitions_folder()).pipelines)
        if is_dag_run_allowed("GET", f"{name}__batch", user)
    ]


def may_operate(pipeline: str, user: GetUserDep) -> bool:
    """Return whether a page shows the user its buttons; what they do is asked again when one is pressed."""
    return all(is_dag_run_allowed("POST", f"{pipeline}__{layer}", user) for layer in ("batch", "stream"))


def may_ask_for_imports(pipeline: str, user: GetUserDep) -> bool:
    """Return whether a page shows the user the form of an import."""
    return is_dag_run_allowed("POST", f"{pipeline}__import", user)


def is_dag_run_allowed(method: ResourceMethod, dag_id: str, user: GetUserDep) -> bool:
    """Ask Airflow about the runs of a DAG."""
    return get_auth_manager().is_authorized_dag(
        method=method, access_entity=DagAccessEntity.RUN, details=DagDetails(id=dag_id), user=user
    )


def log_request_dag(layer: str) -> Callable[[Request], None]:
    """Have Airflow's audit log name the DAG that a request is about: it is shown to who may see that DAG."""

    def name(request: Request) -> None:
        request.path_params["dag_id"] = f"{request.path_params['pipeline']}__{layer}"

    return name


def kafka_env(pipeline: CompiledPipeline) -> Mapping[str, str]:
    """Return the environment with the pipeline's connection, as Airflow resolves it."""
    return {
        **os.environ,
        **connection_env_if_any(name_in_force(pipeline.name, pipeline.definition.connection)),
    }
