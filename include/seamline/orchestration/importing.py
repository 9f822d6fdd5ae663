"""The DAG that imports files: its form, which REST fills in too (``conf``), and what its tasks do."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator, Context, Param, get_current_context
from airflow.sdk.exceptions import AirflowSkipException

from seamline.model.errors import BadRange
from seamline.model.time.intervals import parse_moment
from seamline.orchestration.airflow_connections import connection_env
from seamline.orchestration.failures import log_failure_reason
from seamline.orchestration.run_intervals import parse_flag, require_known_fields
from seamline.orchestration.store_connection import with_store_settings
from seamline.orchestration.tasks import find_run_actor, open_compiled_pipeline

if TYPE_CHECKING:
    from seamline.supervisor.imports.import_requests import ImportRequest

LOOKED_EVERY, LONGEST = 15.0, 30 * 86_400.0
"""Seconds between two looks at an import that a stream does, and after which nobody waits for it any more."""
IMPORT = {
    "from": Param(
        None,
        type=["null", "string"],
        title="From",
        description="A Delta table, or Parquet, CSV or JSON lines: a file, a folder, or the URL of one in a bucket. "
        "Empty: go on with what was asked for.",
    ),
    "source": Param(
        None, type=["null", "string"], title="Source", description="The source, or topic, that the rows are of; "
        "empty where there is only one.",
    ),
    "map": Param(
        [],
        type="array",
        items={"type": "string"},
        title="Columns",
        description="NAME=COLUMN, a line each: a field, or _key, _value, _kafka_timestamp, _partition, _offset, "
        "and the column that it is taken from.",
    ),
    "until": Param(
        None, type=["null", "string"], format="date-time", title="Until",
        description="Rows of this event time and later are left to the topic.",
    ),
    "disjoint": Param(
        False, type="boolean", title="Disjoint", description="Declare that no row is, or will be, in the topic too.",
    ),
    "version": Param(
        None, type=["null", "integer"], minimum=0, title="Version",
        description="The version of a Delta table; empty for the newest.",
    ),
    "csv_delimiter": Param(",", type="string", minLength=1, maxLength=1, title="CSV delimiter"),
    "dry_run": Param(
        False, type="boolean", title="Dry run", description="Only show rows, bytes, and what becomes of some.",
    ),
    "reason": Param(None, type=["null", "string"], title="Reason", description="Reason, recorded in the control log."),
}  # fmt: skip


def read_request(params: Mapping[str, object], actor: str) -> ImportRequest | None:
    """Read the form; None if nothing new is asked for. BadRange names the field that is wrong."""
    from seamline.lake.imports.staged_rows import CsvDialect
    from seamline.supervisor.imports.import_requests import ImportRequest

    require_known_fields(params, IMPORT)
    if not (place := str(params.get("from") or "")):
        return None
    pairs = params.get("map") or []
    if not isinstance(pairs, list):
        raise BadRange(f"map: {pairs!r} is not a list.", hint='pass for example ["shop=store"].')
    columns = dict(str(each).split("=", 1) for each in pairs if "=" in str(each))
    if len(columns) < len(pairs):
        raise BadRange(
            "map: a line is not NAME=COLUMN, or a name is there twice.", hint="for example shop=store."
        )
    until, version = params.get("until"), params.get("version")
    return ImportRequest(
        place=place,
        actor=actor,
        reason=str(params.get("reason") or ""),
        source=str(params.get("source") or ""),
        columns=columns,
        until=parse_moment(str(until)) if until else None,
        version=None if version is None else int(str(version)),
        disjoint=bool(parse_flag("disjoint", params.get("disjoint"))),
        dialect=CsvDialect(str(params.get("csv_delimiter") or ",")),
    )


@log_failure_reason
@with_store_settings
def plan_import(name: str, connection: str) -> None:
    """Plan what the form says, show it, and ask for it unless it is a dry run; skipped where nothing is to be done."""
    from seamline.supervisor.imports.import_planning import ask, draft_import
    from seamline.supervisor.imports.import_process import is_import_open
    from seamline.supervisor.imports.import_wording import describe_draft

    context = get_current_context()
    pipeline, layout = open_compiled_pipeline(name)
    if request := read_request(context["params"], find_run_actor(context)):
        drafted = draft_import(pipeline, layout, request, env={**os.environ, **connection_env(connection)})
        lines = [*describe_draft(drafted)]
        print(*lines, sep="\n")
        context["ti"].xcom_push(key="plan", value=lines)
        if context["params"]["dry_run"]:
            raise AirflowSkipException("It was a dry run.")
        if drafted.plan.rows:
            ask(drafted, layout)
    if not is_import_open(layout):
        raise AirflowSkipException("Nothing new is to be imported.")


class ImportSensor(BaseSensorOperator):
    """Wait for the stream to import what was asked for, or do it where none runs.

    A stream may take hours: between two looks the task holds no slot of its pool.
    """

    def __init__(self, *, pipeline: str, connection: str, **given: Any) -> None:
        super().__init__(mode="reschedule", poke_interval=LOOKED_EVERY, timeout=LONGEST, **given)
        self.pipeline, self.connection = pipeline, connection

    @log_failure_reason
    @with_store_settings
    def poke(self, context: Context) -> bool:
        """Return whether everything is imported or closed."""
        from seamline.supervisor.imports.import_process import say_who_imports, take_part

        _, layout = open_compiled_pipeline(self.pipeline)
        print(say_who_imports(self.pipeline, layout))
        told = -1

        def tell(done: int, whole: int) -> None:
            nonlocal told
            if done != told:
                told = done
                print(f"{done} of {whole} rows")

        return take_part(self.pipeline, layout, tell, env={**os.environ, **connection_env(self.connection)})
