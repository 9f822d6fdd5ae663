"""The lineage of the tasks that build and publish; without the settings of OpenLineage's client nothing is imported.

Airflow's own provider for OpenLineage is not needed. Where it is there too, the runs that it tells of are the
parents of ours: they are named as it names them.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from airflow.sdk.configuration import conf

from seamline.lineage.configuration import is_configured, read_namespace

if TYPE_CHECKING:
    from seamline.lake.storage.layout import Layout
    from seamline.lineage.task_attempts import TaskAttempt
    from seamline.model.protocol.job_arguments import BuildJob


def report_build(context: Any, job: BuildJob, layout: Layout) -> AbstractContextManager[None]:
    """Return what tells the lineage of a build while it runs."""
    if not is_configured():
        return nullcontext()
    from seamline.lineage.batch_lineage import BuildLineage
    from seamline.lineage.batch_reporter import report_task

    return report_task(BuildLineage(find_attempt(context), layout, job).look)


def report_publication(context: Any, layout: Layout) -> AbstractContextManager[None]:
    """Return what tells the lineage of a publication while it is made."""
    if not is_configured():
        return nullcontext()
    from seamline.lineage.batch_lineage import PublicationLineage
    from seamline.lineage.batch_reporter import report_task

    return report_task(PublicationLineage(find_attempt(context), layout).look)


def find_attempt(context: Any) -> TaskAttempt:
    """Find what names the running attempt at a task; a run without a logical date is known by when it may begin."""
    from seamline.lineage.task_attempts import TaskAttempt

    run, task = context["dag_run"], context["ti"]
    return TaskAttempt(
        namespace=conf.get("openlineage", "namespace", fallback="") or read_namespace(),
        dag=str(run.dag_id),
        task=str(task.task_id),
        run=str(run.run_id),
        moment=run.logical_date or run.run_after,
        attempt=int(task.try_number),
        mapped=int(task.map_index if task.map_index is not None else -1),
        cleared=int(run.clear_number or 0),
    )
