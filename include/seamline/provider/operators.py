"""Operators: a build of a range through a pipeline's batch DAG, and a question to a view."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from airflow.sdk import BaseOperator, Context, DagRunState
from airflow.sdk.exceptions import AirflowSkipException, DagRunTriggerException

from seamline.model.errors import SeamlineError, SetupError
from seamline.model.time.intervals import Interval, format_utc_instant
from seamline.orchestration.failures import log_failure_reason
from seamline.orchestration.intervals.links import (
    CERTIFICATES,
    INTERVAL,
    RUN,
    CertificateLink,
    IntervalLink,
    RunLink,
    interval_page,
    report_page,
    show_pages,
)
from seamline.plan.wording.plan_text import format_plan
from seamline.provider.hooks import SeamlineHook, split_view
from seamline.provider.spans import Bound, span_of

ROWS, BYTES = 1_000, 256 * 1024
"""What goes into an XCom, which Airflow keeps in its database."""


class SeamlineBackfillOperator(BaseOperator):
    """Plan a build of a span, and run it through the batch DAG of its pipeline, as that DAG's form does.

    The span is from ``start`` to ``end``; without them the run's partition, or else its data interval. Where nothing
    is to be built the task is skipped. It fails with the run, and at once while that DAG is paused. Each try starts a
    run of its own; the claims of runs keep two of them from building one interval at once. The XCom is the run's id.
    """

    template_fields: Sequence[str] = ("pipeline", "start", "end", "reason", "seamline_conn_id")
    operator_extra_links = (RunLink(), IntervalLink(), CertificateLink())
    ui_color = "#dcebf7"

    def __init__(
        self,
        *,
        pipeline: str,
        start: Bound = "",
        end: Bound = "",
        reason: str = "",
        seamline_conn_id: str = SeamlineHook.default_conn_name,
        wait_for_completion: bool = True,
        deferrable: bool = True,
        poke_interval: int = 30,
        **given: Any,
    ) -> None:
        super().__init__(**given)
        self.pipeline, self.start, self.end, self.reason = pipeline, start, end, reason
        self.seamline_conn_id = seamline_conn_id
        self.wait_for_completion, self.deferrable = wait_for_completion, deferrable
        self.poke_interval = poke_interval

    @log_failure_reason
    def execute(self, context: Context) -> None:
        """Plan, say the plan, and start the run: Airflow waits for it."""
        hook, ti = SeamlineHook(self.seamline_conn_id), context["ti"]
        with hook.reading():
            compiled, _ = hook.open_pipeline(self.pipeline)
        span = span_of(context, self.start, self.end, compiled.grid)
        plan = hook.plan(self.pipeline, span)
        lines = list(format_plan(plan))
        print(*lines, sep="\n")
        ti.xcom_push(key="plan", value=lines)
        if not plan.builds:
            raise AirflowSkipException(f"{self.pipeline}: nothing of {span} is to be built.")
        dag_id = name_batch_dag(self.pipeline)
        require_unpaused(ti, dag_id)
        asked = {
            "run": name_run(ti, span),
            "span": str(span),
            "view": compiled.views[0].name,
        }
        ti.xcom_push(key="asked", value=asked)
        self.show(asked)
        if not (self.wait_for_completion and self.deferrable):
            # Airflow ends the task, or waits in it, without another word to it.
            ti.xcom_push(key="return_value", value=asked["run"])
        raise DagRunTriggerException(
            trigger_dag_id=dag_id,
            dag_run_id=asked["run"],
            conf={
                "from": format_utc_instant(span.start),
                "to": format_utc_instant(span.end),
                "reason": self.reason or f"asked for by {ti.dag_id}",
            },
            logical_date=None,
            reset_dag_run=False,
            skip_when_already_exists=False,
            wait_for_completion=self.wait_for_completion,
            allowed_states=[DagRunState.SUCCESS],
            failed_states=[DagRunState.FAILED],
            poke_interval=self.poke_interval,
            deferrable=self.deferrable,
        )

    def execute_complete(self, context: Context, event: tuple[str, dict[str, Any]]) -> str:
        """Fail with the run; return its id otherwise."""
        ti = context["ti"]
        [run] = event[1]["run_ids"]
        asked = ti.xcom_pull(task_ids=self.task_id, key="asked", map_indexes=ti.map_index)
        if asked:
            self.show(asked)
        if event[1].get(run) != DagRunState.SUCCESS:
            raise SeamlineError(
                f"Run {run} of {name_batch_dag(self.pipeline)} has failed.",
                hint="see its tasks; what was certified by then is published.",
            )
        return str(run)

    def show(self, asked: Mapping[str, str]) -> None:
        """Name the pages of the run."""
        run, interval = asked["run"], Interval.parse(asked["span"]).id
        pages = {
            RUN: f"../dags/{name_batch_dag(self.pipeline)}/runs/{quote(run)}",
            INTERVAL: interval_page(self.pipeline, asked["view"], interval),
            CERTIFICATES: report_page(self.pipeline, run),
        }
        show_pages(self, pages)


def name_batch_dag(pipeline: str) -> str:
    """Name the DAG that builds."""
    return f"{pipeline}__batch"


def require_unpaused(ti: Any, dag_id: str) -> None:
    """Raise SetupError where a run would wait until somebody unpauses its DAG."""
    if ti.get_dag(dag_id).is_paused:
        raise SetupError(f"{dag_id} is paused: its runs wait.", hint=f"airflow dags unpause {dag_id}")


def name_run(ti: Any, span: Interval) -> str:
    """Name the run that one try of a task starts."""
    who = f"{ti.dag_id}\n{ti.task_id}\n{ti.run_id}\n{ti.map_index}\n{ti.try_number}"
    return f"asked__{span.id}__{hashlib.sha256(who.encode()).hexdigest()[:12]}"


class SeamlineQueryOperator(BaseOperator):
    """Ask a view, as ``seamline.read`` does.

    Without ``path`` the rows are the XCom: a list of objects, or their JSON with ``as_json``. More than
    ``max_rows`` rows, or ``max_bytes`` of JSON, are an error. With ``path`` they go to a file of any size, which is
    there when it is whole: Parquet, CSV, JSON lines or an Arrow stream, as its ending says; the XCom is the path.
    The XCom ``answer`` says how far the answer is right.
    """

    template_fields: Sequence[str] = (
        "view",
        "where",
        "start",
        "end",
        "as_of",
        "served_at",
        "path",
        "seamline_conn_id",
    )
    operator_extra_links = (IntervalLink(),)
    ui_color = "#dcebf7"

    def __init__(
        self,
        *,
        view: str,
        where: str | None = None,
        start: Bound = "",
        end: Bound = "",
        as_of: int | str = "",
        served_at: Bound = "",
        side: str = "merged",
        phases: Sequence[str] = (),
        path: str = "",
        as_json: bool = False,
        max_rows: int = ROWS,
        max_bytes: int = BYTES,
        seamline_conn_id: str = SeamlineHook.default_conn_name,
        **given: Any,
    ) -> None:
        super().__init__(**given)
        self.view, self.where, self.start, self.end = view, where, start, end
        self.as_of, self.served_at, self.side, self.phases = as_of, served_at, side, phases
        self.path, self.as_json, self.max_rows, self.max_bytes = path, as_json, max_rows, max_bytes
        self.seamline_conn_id = seamline_conn_id

    @log_failure_reason
    def execute(self, context: Context) -> Any:
        """Ask, and hand the rows on."""
        from seamline.provider.answers import Limits, describe_told, take_rows, write_file
        from seamline.serve.query import format_answer_footer

        hook = SeamlineHook(self.seamline_conn_id)
        with hook.reading():
            stream = hook.stream(self.view, self.where or None, **self.options())
            if self.path:
                found: Any = str(write_file(stream, Path(self.path)))
            else:
                text = take_rows(stream, Limits(self.max_rows, self.max_bytes))
                found = text if self.as_json else json.loads(text)
        told = stream.told()
        print(format_answer_footer(told))
        context["ti"].xcom_push(key="answer", value=describe_told(told))
        for interval in [*told.intervals][-1:]:
            show_pages(self, {INTERVAL: interval_page(*split_view(self.view), interval)})
        return found

    def options(self) -> Any:
        """Return the options of the read; what is empty is not given."""
        given = {
            name: getattr(self, name) for name in ("start", "end", "as_of", "served_at", "side", "phases")
        }
        return {name: value for name, value in given.items() if value not in ("", None, ())}
