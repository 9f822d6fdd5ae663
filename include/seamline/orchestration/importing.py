"""The DAG that imports files: its form, which REST fills in too (``conf``), and what its tasks do."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator, Context, Param, get_current_context
from airflow.sdk.exceptions import AirflowSkipException

from seamline.model.errors import BadRange
from seamline.model.time.intervals import parse_named_moment
from seamline.orchestration.airflow_connections import connection_env, connections_env, name_in_force
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
        "Empty: continue imports that were requested before.",
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
    "csv_quote": Param('"', type="string", minLength=1, maxLength=1, title="CSV quote"),
    "csv_null": Param("", type="string", title="CSV NULL", description="The text of a cell that is NULL."),
    "dry_run": Param(
        False, type="boolean", title="Dry run", description="Show the plan and validate some rows; import nothing.",
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
    if version is not None and not (isinstance(version, int) and version >= 0):
        raise BadRange(
            f"version: {version!r} is not a version of a table.", hint="pass a whole number, or leave it out."
        )
    return ImportRequest(
        place=place,
        actor=actor,
        reason=str(params.get("reason") or ""),
        source=str(params.get("source") or ""),
        columns=columns,
        until=parse_named_moment("until", str(until)) if until else None,
        version=version,
        disjoint=bool(parse_flag("disjoint", params.get("disjoint"))),
        dialect=CsvDialect(
            str(params.get("csv_delimiter") or ","),
            str(params.get("csv_quote") or '"'),
            str(params.get("csv_null") or ""),
        ),
    )


@log_failure_reason
@with_store_settings
def plan_import(name: str, connection: str) -> list[str]:
    """Plan what the form says, show it, and request it unless it is a dry run; return the ids of what is to be done.

    The run is skipped where that is nothing.
    """
    from seamline.supervisor.imports.import_listing import list_cancelled_ids, list_open_ids
    from seamline.supervisor.imports.import_planning import ask, discard, draft_import
    from seamline.supervisor.imports.import_process import take_part
    from seamline.supervisor.imports.import_wording import describe_draft

    context = get_current_context()
    pipeline, layout = open_compiled_pipeline(name)
    request, ids = read_request(context["params"], find_run_actor(context)), None
    if request:
        env = {**os.environ, **connection_env(name_in_force(name, connection))}
        if cancelled := list_cancelled_ids(layout):
            take_part(name, layout, print_changes(), ids=cancelled, env=env)
        drafted = draft_import(pipeline, layout, request, env=env)
        lines = [*describe_draft(drafted)]
        print(*lines, sep="\n")
        context["ti"].xcom_push(key="plan", value=lines)
        if context["params"]["dry_run"]:
            discard(drafted)
            raise AirflowSkipException("It was a dry run.")
        if drafted.plan.rows:
            ask(drafted, layout)
            ids = [drafted.plan.id]
        else:
            discard(drafted)
    if not (open_ := ids or list_open_ids(layout, request.place if request else "")):
        raise AirflowSkipException("There is nothing to import.")
    return open_


class ImportSensor(BaseSensorOperator):
    """Wait for the stream to carry out the imports of some ``ids``, or do it where none runs.

    A stream may take hours: between two looks the task holds no slot of its pool.
    """

    template_fields: Sequence[str] = ("ids",)

    def __init__(self, *, pipeline: str, connection: str, ids: Any, **given: Any) -> None:
        super().__init__(mode="reschedule", poke_interval=LOOKED_EVERY, timeout=LONGEST, **given)
        self.pipeline, self.connection, self.ids = pipeline, connection, ids

    @log_failure_reason
    @with_store_settings
    def poke(self, context: Context) -> bool:
        """Return whether everything is imported or closed."""
        from seamline.supervisor.imports.import_process import say_who_imports, take_part

        pipeline, layout = open_compiled_pipeline(self.pipeline)
        if said := say_who_imports(self.pipeline, layout):
            print(said)
        connection = name_in_force(self.pipeline, self.connection)
        env = {**os.environ, **connections_env([connection, *pipeline.definition.registries])}
        return take_part(self.pipeline, layout, print_changes(), ids=self.ids, env=env)


def print_changes() -> Callable[[str], None]:
    """Make what prints a line whenever it is another one."""
    before = ""

    def tell(line: str) -> None:
        nonlocal before
        if line != before:
            before = line
            print(line)

    return tell
