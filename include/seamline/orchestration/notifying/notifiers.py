"""Alerts by notifiers of Airflow: those that a definition's routes name."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseNotifier, get_current_context

from seamline.model.time.intervals import format_utc_instant
from seamline.orchestration.freshness_deadline import function_of

if TYPE_CHECKING:
    from seamline.model.protocol.alert import AlertStatement


def notify(path: str, pipeline: str, statement: AlertStatement) -> None:
    """Call a notifier as Airflow calls those of a task: with the context of the task that looks, and the alert."""
    found: Any = function_of(path, "alerts")
    # Airflow's notifiers write what was rendered over their templates.
    call = copy(found) if isinstance(found, BaseNotifier) else found
    call(
        {**get_current_context(), "pipeline": pipeline, "alert": describe_alert(pipeline, statement)},
    )


def describe_alert(pipeline: str, statement: AlertStatement) -> dict[str, str]:
    """Say what templates know of an alert: ``{{ alert.text }}``."""
    return {
        "pipeline": pipeline,
        "name": statement.alert,
        "kind": statement.kind.value,
        "subject": statement.subject,
        "severity": statement.kind.severity.value,
        "state": statement.state,
        "message": statement.message,
        "at": format_utc_instant(statement.at),
        "text": f"{pipeline}: {statement}",
    }
