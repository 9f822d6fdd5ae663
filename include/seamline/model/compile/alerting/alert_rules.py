"""What a route of alerts may say."""

from __future__ import annotations

from seamline.model.compile.problems import Problems
from seamline.model.definition.pipeline import Pipeline
from seamline.model.protocol.alert import AlertKind, Severity


def check_alerts(pipeline: Pipeline, problems: Problems) -> None:
    """Note routes that name no notifier, no severity, no alert that there is, or one that their severity excludes."""
    for at, route in enumerate(pipeline.alerts):
        place, parts = f"alerts[{at}]", route.notifier.split(".")
        if len(parts) < 2 or not all(map(str.isidentifier, parts)):
            problems.note(
                f"{place}.notifier",
                route.origin,
                f"{route.notifier!r} is not the name of a notifier.",
                'write "module.name" of one that the tasks of Airflow can import.',
            )
        if route.severity not in [*Severity]:
            told = f"{route.severity!r} is not a severity."
            problems.note(f"{place}.severity", route.origin, told, f"choose from {', '.join(Severity)}.")
        for name in sorted({*route.alerts} - {*AlertKind}):
            told = f"There is no alert {name!r}."
            problems.note(f"{place}.alerts", route.origin, told, f"choose from {', '.join(AlertKind)}.")
        for name in sorted({*route.alerts} & {*AlertKind}):
            if route.severity == Severity.CRITICAL and AlertKind(name).severity is not Severity.CRITICAL:
                told = f"{name!r} is a warning, and this route sends only what is critical."
                problems.note(f"{place}.alerts", route.origin, told, "leave the name out, or severity=.")
