"""The task that publishes what a person has approved."""

from __future__ import annotations

from typing import Any

from airflow.sdk import Asset, get_current_context
from airflow.sdk.exceptions import AirflowSkipException

from seamline.orchestration.approving.waiting_changes import WAITS
from seamline.orchestration.failures import log_failure_reason
from seamline.orchestration.intervals.untold import BY_AIRFLOW, PUBLISH, PUBLISH_APPROVED, list_untold
from seamline.orchestration.lineage.reported_tasks import report_publication
from seamline.orchestration.store_connection import with_store_settings
from seamline.orchestration.tasks import announce_publication, open_compiled_pipeline

APPROVE = "approve_change"
"""The id of the task that asks."""


@log_failure_reason
@with_store_settings
def publish_approved(name: str, asset: Asset, intervals: Asset) -> None:
    """Publish what of the run waited for approval alone, in the name of who approved it; skip if nothing did.

    What an attempt has published that died before it could report is reported by the next one.
    """
    from seamline.plan.publish.publication import Decision
    from seamline.tracing.traced_publication import publish_traced

    context = get_current_context()
    ti: Any = context["ti"]
    if not ti.xcom_pull(task_ids=PUBLISH, key=WAITS):
        raise AirflowSkipException("nothing waited for approval")
    pipeline, layout = open_compiled_pipeline(name)
    decision = Decision(
        find_approver(ti.xcom_pull(task_ids=APPROVE)), "its change was approved", approved=True
    )
    with report_publication(context, layout):
        done = publish_traced(pipeline, layout, str(context["run_id"]), decision=decision)
    for interval, why in done.held_back.items():
        print(f"held back {interval}: {why}")
    statements = [*done.statements, *list_untold(context, layout, asset, PUBLISH_APPROVED, done.statements)]
    if not statements:
        raise AirflowSkipException("published already")
    announce_publication(context, name, layout, statements, asset, intervals)


def find_approver(answer: Any) -> str:
    """Name who answered, by what the task that asks returned."""
    user = (answer or {}).get("responded_by_user") or {}
    return f"{BY_AIRFLOW}{user.get('name') or user.get('id') or 'unknown'}"
