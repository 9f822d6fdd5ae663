"""Planning an import: what is taken of which files, what is left to the topic, and what becomes of a sample of it.

One implementation for the command line, the DAG's form, and the pages.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import read_airflow_connection
from seamline.lake.imports.found_history import find_history, has_lines
from seamline.lake.imports.history_facts import History
from seamline.lake.imports.import_options import OFFSET, ImportOptions
from seamline.lake.imports.import_plans import (
    ImportPlan,
    discard_stages,
    list_imported_tables,
    list_taken_files,
    save_plan,
    staging_folder,
)
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.control_table import ControlTable
from seamline.lake.tables.decided import ask_for_import, list_failovers
from seamline.lineage.configuration import is_configured
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.errors import BadRange, Conflict
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.holes import list_moving_ranges
from seamline.model.protocol.imported.imports import (
    Import,
    find_closed_places,
)
from seamline.model.protocol.offsets import Lane
from seamline.model.time.intervals import Interval
from seamline.plan.lineage.lineage_events import RunState
from seamline.plan.stream.import_plan import (
    HistoryFile,
    name_import,
    plan_files,
)
from seamline.supervisor.imports.earlier_imports import (
    EarlierImports,
    list_plan_notes,
    read_earlier_imports,
)
from seamline.supervisor.imports.import_requests import (
    ImportRequest,
    find_time_column,
    find_topic,
    make_options,
    require_columns,
)
from seamline.supervisor.imports.import_samples import Sample, validate_sample
from seamline.supervisor.imports.import_wording import describe_border

FIRST = datetime(1, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class DraftedImport:
    """An import that may be asked for."""

    request: ImportRequest
    """What was wanted."""
    history: History
    """What is there."""
    plan: ImportPlan
    """What is taken of it."""
    decision: Import
    """The decision, as it would be recorded."""
    skipped: int
    """Rows that earlier imports have taken."""
    left: int
    """Rows of files that are left to the topic whole, by ``--until``."""
    sample: Sample | None
    """What becomes of the first rows; None where it was not tried."""
    notes: tuple[str, ...]
    """What is to be known of earlier imports, a line each."""
    earlier: EarlierImports
    """What there was before it."""


def draft_import(
    pipeline: CompiledPipeline,
    layout: Layout,
    request: ImportRequest,
    *,
    env: Mapping[str, str] = os.environ,
) -> DraftedImport:
    """Plan an import; nothing is decided, but text is staged. BadRange, NotFound for what cannot be imported."""
    topic = find_topic(pipeline, request.source)
    alone = next(each for each in pipeline.by_source if topic in each.source.topics)
    options = make_options(alone, request, topic, lines=has_lines(request.place))
    earlier = read_earlier_imports(layout)
    history = find_history(
        request.place,
        staging=staging_folder(layout),
        time_column=find_time_column(alone, options),
        dialect=request.dialect,
        version=request.version,
        taken=list_taken_files(earlier.plans, earlier.rows),
        imported=list_imported_tables(earlier.plans, earlier.rows),
    )
    try:
        if history.columns.names:
            require_columns(history, options)
        if OFFSET in options.named:
            options = replace(options, border=find_border(alone, layout, topic, earlier.log, env))
        return complete_draft(alone, layout, request, history, options, earlier)
    except BaseException:
        discard_stages(history.files)
        raise


def complete_draft(
    pipeline: CompiledPipeline,
    layout: Layout,
    request: ImportRequest,
    history: History,
    options: ImportOptions,
    earlier: EarlierImports,
) -> DraftedImport:
    """Plan what is taken of what was found; ``pipeline`` is of the source alone."""
    # Of a table all versions count as imported up to this one: what is left to the topic of it, too.
    wanted = [each for each in history.files if history.table_id or not is_left_whole(each, request.until)]
    files = plan_files(wanted, earlier.rows)
    now = datetime.now(UTC)
    facts = {
        "options": options.to_json(),
        "place": request.place,
        "table": history.table_id,
        "version": history.version,
        "closed": sorted(lane.topic_id for lane in find_closed_places(earlier.log)),
    }
    plan = ImportPlan(
        name_import(files, facts), options, tuple(files), now, history.table_id, history.version
    )
    event_id = pipeline.source.event_id
    decision = Import(
        id=plan.id,
        topic=options.topic,
        origin=request.place,
        end=plan.rows,
        actor=request.actor,
        reason=request.reason,
        at=now,
        bounds=find_bounds([each.file for each in files], request.until),
        until=None if options.border or event_id else request.until,
        border=describe_border(event_id, options, request.actor),
    )
    return DraftedImport(
        request=request,
        history=history,
        plan=plan,
        decision=decision,
        skipped=sum(min(earlier.rows.get(each.identity, 0), each.rows) for each in wanted),
        left=sum(each.rows for each in history.files) - sum(each.rows for each in wanted),
        sample=validate_sample(pipeline, layout, plan, earlier.log),
        notes=tuple(list_plan_notes(history, earlier.plans, request.until)),
        earlier=earlier,
    )


def discard(drafted: DraftedImport) -> None:
    """Delete what was staged for a plan that is not asked for."""
    discard_stages(drafted.history.files)


def ask(drafted: DraftedImport, layout: Layout) -> None:
    """Ask for an import that was drafted, of one row at least.

    BadRange if all of the rows that were tried are refused: most likely none is what it was taken for, and a row in the
    quarantine is not imported again. Conflict if another import was asked for, or cancelled, meanwhile.
    """
    sample = drafted.sample
    if sample and sample.refused and not sample.accepted:
        most = max(sample.refused, key=lambda reason: sample.refused[reason])
        discard(drafted)
        columns = ", ".join(drafted.history.columns.names)
        raise BadRange(
            f"None of the first {sum(sample.refused.values())} rows is valid; most often: {most}.",
            hint=f"check --map, --source and --csv-delimiter; the columns are {columns}.",
        )
    save_plan(layout, drafted.plan)
    try:
        ask_for_import(
            ControlTable.ensure(layout), drafted.decision, drafted.earlier.known, drafted.earlier.done
        )
    except Conflict:
        discard(drafted)
        raise
    if is_configured():
        from seamline.lineage.import_lineage import tell_import

        tell_import(layout, drafted.decision, RunState.START)


def find_border(
    pipeline: CompiledPipeline, layout: Layout, topic: str, log: Sequence[Epoch], env: Mapping[str, str]
) -> tuple[tuple[int, int], ...]:
    """Find from which offset on each partition of a topic is read.

    BadRange if the log has read nothing of a partition that has records: until a stream has, Kafka may delete some; and
    after a failover was decided on, also before the stream has begun it.
    """
    if list_failovers(layout) or any(epoch.begun for epoch in log):
        raise BadRange(
            f"The offsets of rows are of the cluster that {pipeline.name} was read from before a failover.",
            hint="divide what is imported by event id or by time.",
        )
    with TopicAdmin(read_airflow_connection(pipeline.definition.connection, env)) as admin:
        id, first, ends = admin.topic_id(topic), admin.beginning_offsets(topic), admin.end_offsets(topic)
    begun: dict[Lane, int] = {}
    for epoch in log:
        for part in list_moving_ranges(epoch):
            begun[part.lane] = min(part.start, begun.get(part.lane, part.start))
    if unread := [
        each for each, end in ends.items() if end > first.get(each, 0) and Lane(id, each) not in begun
    ]:
        raise BadRange(
            f"No record of partition {unread[0]} of {topic!r} was read yet: where the topic's part begins is unknown.",
            hint=f"start the stream first: `seamline stream start {pipeline.name}`.",
        )
    return tuple((each, begun.get(Lane(id, each), at)) for each, at in sorted(first.items()))


def is_left_whole(file: HistoryFile, until: datetime | None) -> bool:
    """Return whether all rows of a file are left to the topic."""
    return until is not None and file.low is not None and file.low >= until


def find_bounds(files: Sequence[HistoryFile], until: datetime | None) -> Interval | None:
    """Find the event times that the rows of files can have; None for any."""
    lows, highs = [each.low for each in files], [each.high for each in files]
    low = FIRST if None in lows or not lows else min(at for at in lows if at)
    high = None if None in highs or not highs else max(at for at in highs if at) + timedelta(microseconds=1)
    end = min((at for at in (high, until) if at), default=None)
    return Interval(low, end) if end is not None and low < end else None
