"""Alerts by notifiers of Airflow: those that a definition's routes name."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseNotifier, get_current_context

from seamline.model.errors import DefinitionError
from seamline.orchestration.freshness_deadline import function_of
from seamline.runtime.user_answers import await_answer

if TYPE_CHECKING:
    from seamline.model.protocol.alert import AlertStatement


def notify(path: str, pipeline: str, statement: AlertStatement) -> None:
    """Call a notifier as Airflow calls those of a task: with the context of the task that looks, and the alert.

    Templates read the alert by its fields: ``{{ alert.text }}``.
    """
    alert = {"name": statement.alert, "kind": statement.kind.value, **statement.describe(pipeline)}
    context = {**get_current_context(), "pipeline": pipeline, "alert": alert}
    call_notifier(function_of(path, "alerts"), context, "alerts")


def call_notifier(found: Any, context: Any, field: str) -> None:
    """Call a notifier, or a function of a context, which a definition names in ``field``.

    DefinitionError for a class: called, it would only make an instance.
    """
    if isinstance(found, type):
        raise DefinitionError(
            f"{found.__qualname__} is a class.",
            hint=f"make an instance in a module of yours, as pager = {found.__name__}(...), and name that.",
            field=field,
        )
    await_answer(start_notifier(found, context) if isinstance(found, BaseNotifier) else found(context))


def start_notifier(notifier: BaseNotifier, context: Any) -> Any:
    """Call a notifier of Airflow's; return what is to be awaited of one that notifies by ``async`` functions."""
    # It writes what was rendered over its templates.
    call, answers = copy(notifier), list[Any]()
    if type(notifier).notify is BaseNotifier.notify:
        call.context = context
        return call
    notify = call.notify
    call.notify = lambda context: answers.append(notify(context))  # type: ignore[method-assign]
    call(context)
    return answers[0]
