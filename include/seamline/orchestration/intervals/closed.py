"""Runs of batch DAGs that begin because an interval has closed: at most one for each, by the id of the run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.configuration import conf
from airflow.sdk import BaseOperator, Context, get_current_context
from airflow.sdk.exceptions import AirflowSkipException, DagRunTriggerException

from seamline.orchestration.failures import log_failure_reason
from seamline.orchestration.reconciling_all import fail_if_any
from seamline.orchestration.store_connection import with_store_settings

if TYPE_CHECKING:
    from seamline.lake.storage.layout import Layout
    from seamline.model.compile.compiled_pipeline import CompiledPipeline
    from seamline.model.time.intervals import Interval

CLOSED = "closed"
"""The value of ``Batch(when=)``, and what the ids of such runs begin with."""


@log_failure_reason
@with_store_settings
def list_closed() -> list[dict[str, str]]:
    """List the intervals to build of pipelines with ``when="closed"``, as StartBuild takes them; skip if there is none.

    They are as many as Airflow maps a task to, at most: the next look finds the others.
    Pipelines whose batch DAG is paused are left out: the runs would wait, and build all at once later.
    """
    from seamline.lake.storage.delta_table import Table
    from seamline.lake.storage.layout import definitions_folder, locate_tables
    from seamline.lake.tables.table_format import require_format
    from seamline.model.compile.catalog import load_catalog

    context = get_current_context()
    found: list[dict[str, str]] = []
    failed: list[tuple[CompiledPipeline, BaseException]] = []
    for pipeline in load_catalog(definitions_folder()).pipelines.values():
        if pipeline.definition.batch.when != CLOSED:
            continue
        try:
            layout = locate_tables(pipeline.name)
            if not Table.exists(layout.table("control")):
                continue
            if context["ti"].get_dag(f"{pipeline.name}__batch").is_paused:
                print(f"{pipeline.name}: its batch DAG is paused")
                continue
            some = find_just_closed(pipeline, require_format(layout))
            found += [{"pipeline": pipeline.name, "interval": each.id} for each in some]
        except (Exception, SystemExit) as error:  # noqa: BLE001 - it is told with those of the others
            failed.append((pipeline, error))
    found = found[-conf.getint("core", "max_map_length") :]
    for each in found:
        print(f"{each['pipeline']} {each['interval']} has closed and is not built")
    if not found:
        fail_if_any(failed, context)
        raise AirflowSkipException("nothing has closed that is not built")
    for pipeline, problem in failed:
        print(f"{pipeline.name}: {type(problem).__name__}: {problem}")
    return found


def find_just_closed(pipeline: CompiledPipeline, layout: Layout) -> list[Interval]:
    """Find the newest intervals of a pipeline that have closed and lack a generation."""
    from seamline.lake.publish.derived_changes import find_reach_ahead
    from seamline.lake.publish.planning import read_spanning_views
    from seamline.lake.tables.manifest_table import manifest_of
    from seamline.lake.tables.reprocessed import read_reprocessed_log
    from seamline.plan.batch.batch_plan import last_edge
    from seamline.plan.stream.overdue_intervals import list_just_closed

    log = read_reprocessed_log(pipeline, layout)
    return list_just_closed(
        log,
        manifest_of(layout),
        pipeline.grid,
        watermark=pipeline.timed.watermark_at(last_edge(log)),
        ahead=find_reach_ahead(pipeline, layout),
        spanning=read_spanning_views(pipeline, layout),
    )


class StartBuild(BaseOperator):
    """Start a run of a batch DAG over the dirty intervals, because one has closed; skip if it was started before.

    If a scheduled run has built the interval meanwhile, the run finds nothing to do.
    """

    template_fields: Sequence[str] = ("pipeline", "interval")

    def __init__(self, *, pipeline: str, interval: str, **given: Any) -> None:
        super().__init__(**given)
        self.pipeline, self.interval = pipeline, interval

    def execute(self, context: Context) -> None:
        """Let Airflow start it."""
        raise DagRunTriggerException(
            trigger_dag_id=f"{self.pipeline}__batch",
            dag_run_id=f"{CLOSED}__{self.interval}",
            conf={"reason": f"closed: {self.interval}"},
            logical_date=None,
            reset_dag_run=False,
            skip_when_already_exists=True,
            wait_for_completion=False,
            allowed_states=[],
            failed_states=[],
            poke_interval=0,
            deferrable=False,
        )
