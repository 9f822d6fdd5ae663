"""What a task has published before it died, and has told nobody: Airflow hears of events when a task has ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset
from airflow.sdk.execution_time.context import InletEventsAccessor

if TYPE_CHECKING:
    from seamline.lake.storage.layout import Layout
    from seamline.model.protocol.manifest import Statement

PUBLISH, PUBLISH_APPROVED = "publish", "publish_approved"
"""The ids of the tasks that publish."""
BY_AIRFLOW = "airflow:"
"""What the actor of a publication begins with that somebody has approved in Airflow."""
APART = timedelta(hours=1)
"""So far the clock of Airflow's database may be behind this one's."""
LOOKED_AT = 10_000
"""How many events since then are looked at for one of our own."""


def list_untold(
    context: Any, layout: Layout, asset: Asset, task: str, told: Iterable[Statement]
) -> list[Statement]:
    """List what earlier attempts at a task have published and told nobody, beside what is about to be ``told``.

    What was approved in Airflow is ``publish_approved``'s, whatever else of the run is ``publish``'s.
    """
    from seamline.lake.publish.publishing import list_run_publications

    run, new = str(context["run_id"]), {(each.view, each.interval) for each in told}
    earlier = [
        each
        for each in list_run_publications(layout, run)
        if (each.view, each.interval) not in new
        and each.actor.startswith(BY_AIRFLOW) == (task == PUBLISH_APPROVED)
    ]
    if not earlier or has_publish_event(asset, context["dag_run"].dag_id, run, task, earlier):
        return []
    return earlier


def has_publish_event(
    asset: Asset, dag_id: str, run: str, task: str, statements: Sequence[Statement]
) -> bool:
    """Return whether Airflow has an event of a run's task that came after these statements."""
    since = min(each.at for each in statements if each.at) - APART
    accessor = InletEventsAccessor(asset_name=asset.name, asset_uri=asset.uri)
    return any(
        (each.source_dag_id, each.source_run_id, each.source_task_id) == (dag_id, run, task)
        for each in accessor.after(since.isoformat()).limit(LOOKED_AT)
    )
