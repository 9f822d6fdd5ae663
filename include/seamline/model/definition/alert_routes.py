"""Where alerts of a pipeline go beside its function and the webhook: notifiers of Airflow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from seamline.model.definition.origin import Origin, declare_origin_field


@dataclass(frozen=True)
class AlertRoute:
    """A notifier of Airflow and the alerts that it gets, each when it is raised and when it is cleared."""

    notifier: str
    """"module.name" of a notifier, or of a function of a context, that the tasks of Airflow can import."""
    severity: str = "warning"
    """The least severity that is sent: "warning" for all, or "critical"."""
    alerts: Sequence[str] = ()
    """The alerts that are sent, by their names without subjects; all of them if empty."""
    origin: Origin = declare_origin_field()
