"""Planning an import: what is taken of which files, what is left to the topic, and what becomes of a sample of it.

One implementation for the command line, the DAG's form, and the pages.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import read_airflow_connection
from seamline.kernel.epoch_kernel import open_worker_duckdb, validate_records
from seamline.kernel.formats import open_readers
from seamline.kernel.kernel_config import configure_validation
from seamline.kernel.marks import join_marks
from seamline.kernel.raw import add_coordinates
from seamline.lake.imports.found_history import find_history, has_lines
from seamline.lake.imports.history_facts import History
from seamline.lake.imports.history_records import read_history_records
from seamline.lake.imports.import_options import OFFSET
from seamline.lake.imports.import_plans import (
    ImportPlan,
    list_imported_tables,
    load_plans,
    save_plan,
    staging_folder,
)
from seamline.lake.log.epoch_log import read_condensed_log
from seamline.lake.storage.arrow_types import INSTANT
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.control_table import ControlTable
from seamline.lake.tables.decided import ask_for_import
from seamline.lake.tables.lookups.lookup_tables import Lookups
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.lookups.named_versions import in_force
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.holes import list_moving_ranges
from seamline.model.protocol.imported.imports import (
    Import,
    find_closed_places,
    find_taken_places,
    list_open_imports,
)
from seamline.model.protocol.offsets import Lane
from seamline.model.protocol.seam import NOTHING
from seamline.model.time.intervals import Interval, format_utc_instant
from seamline.plan.stream.import_plan import (
    HistoryFile,
    find_file_rows,
    list_taken_rows,
    name_import,
    plan_files,
)
from seamline.supervisor.imports.import_requests import (
    ImportRequest,
    find_time_column,
    find_topic,
    make_options,
    require_columns,
)
from seamline.supervisor.imports.import_wording import SAMPLE, describe_border

FIRST = datetime(1, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Sample:
    """What becomes of the first rows."""

    accepted: int
    """How many are accepted."""
    refused: Mapping[str, int]
    """How many are refused, by reason."""
    example: str
    """The first refused record, empty for none."""
    detail: str
    """Why it is refused."""


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
    sample: Sample | None
    """What becomes of the first rows; None where it was not tried."""
    notes: tuple[str, ...]
    """What is to be known of earlier imports, a line each."""
    known: tuple[Import, ...]
    """The imports that there were."""
    done: tuple[str, ...]
    """The ids of those that are done."""


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
    known, log = ControlTable.ensure(layout).read().imports, read_condensed_log(layout)
    taken = find_taken_places(log, known)
    plans = load_plans(layout, taken)
    rows = list_taken_rows({id: plan.files for id, plan in plans.items()}, taken)
    history = find_history(
        request.place,
        staging=staging_folder(layout),
        time_column=find_time_column(alone, options),
        dialect=request.dialect,
        version=request.version,
        imported=list_imported_tables(plans.values(), rows),
    )
    require_columns(history, options)
    if OFFSET in options.named:
        options = replace(options, border=find_border(pipeline, topic, log, env))
    # Of a table all versions count as imported up to this one: what is left to the topic of it, too.
    wanted = [each for each in history.files if history.table_id or not is_left_whole(each, request.until)]
    files = plan_files(wanted, rows)
    now = datetime.now(UTC)
    closed = sorted(lane.topic_id for lane in find_closed_places(log))
    facts = {
        "options": options.to_json(),
        "table": history.table_id,
        "version": history.version,
        "closed": closed,
    }
    id = name_import(files, facts)
    plan = ImportPlan(id, options, tuple(files), now, history.table_id, history.version)
    decision = Import(
        id=id,
        topic=topic,
        origin=request.place,
        end=plan.rows,
        actor=request.actor,
        reason=request.reason,
        at=now,
        bounds=find_bounds([each.file for each in files], request.until),
        until=None if options.border or alone.source.event_id else request.until,
        border=describe_border(alone.source.event_id, options, request.actor),
    )
    open_ = {each.id for each in list_open_imports(log, known)}
    return DraftedImport(
        request=request,
        history=history,
        plan=plan,
        decision=decision,
        skipped=sum(min(rows.get(each.identity, 0), each.rows) for each in wanted),
        sample=validate_sample(alone, layout, plan, log),
        notes=tuple(list_plan_notes(history, plans.values(), request.until)),
        known=known,
        done=tuple(each.id for each in known if each.id not in open_),
    )


def ask(drafted: DraftedImport, layout: Layout) -> None:
    """Ask for an import that was drafted. Conflict if another was asked for, or cancelled, meanwhile."""
    save_plan(layout, drafted.plan)
    ask_for_import(ControlTable.ensure(layout), drafted.decision, drafted.known, drafted.done)


def list_plan_notes(history: History, plans: Iterable[ImportPlan], until: datetime | None) -> Iterator[str]:
    """Say which files another import has read under another name, and what earlier ones have left to the topic."""
    mine = {each.mark: each.name for each in history.files}
    for plan in plans:
        theirs = {each.file.mark: each.file.name for each in plan.files}
        again = sorted(mine[mark] for mark in mine.keys() & theirs.keys() if mine[mark] != theirs[mark])
        if again:
            yield (
                f"{again[0]} has what import {plan.id} has read as {theirs[find_mark(mine, again[0])]}: the same rows "
                "count twice if they are read again"
            )
        same = (history.table_id and plan.table_id == history.table_id) or mine.keys() & theirs.keys()
        if same and plan.options.until and (until is None or until > plan.options.until):
            at = format_utc_instant(plan.options.until)
            yield f"rows of {at} and later stay where import {plan.id} has left them: with the topic"


def find_mark(names: Mapping[str, str], name: str) -> str:
    """Find by which mark a file is known."""
    return next(mark for mark, each in names.items() if each == name)


def find_border(
    pipeline: CompiledPipeline, topic: str, log: Sequence[Epoch], env: Mapping[str, str]
) -> tuple[tuple[int, int], ...]:
    """Find from which offset on each partition of a topic is read, or will be."""
    with TopicAdmin(read_airflow_connection(pipeline.definition.connection, env)) as admin:
        id = admin.topic_id(topic)
        first = {Lane(id, partition): at for partition, at in admin.beginning_offsets(topic).items()}
    begun: dict[Lane, int] = {}
    for epoch in log:
        for part in list_moving_ranges(epoch):
            begun[part.lane] = min(part.start, begun.get(part.lane, part.start))
    return tuple((lane.partition, begun.get(lane, at)) for lane, at in sorted(first.items()))


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


def validate_sample(
    pipeline: CompiledPipeline, layout: Layout, plan: ImportPlan, log: Sequence[Epoch]
) -> Sample | None:
    """Validate the first rows of a plan as the stream would, with the look-ups of now; nothing is written but these.

    None where rules that come from a topic decide about them: only the stream has these.
    """
    if any(join.of for join in pipeline.lookups):
        return None
    tables = Lookups(pipeline.lookups, layout, in_force(log, pipeline.record_version))
    lookups = tables.version_paths(tables.current_versions())
    runs = find_file_rows(plan.files, 0, min(SAMPLE, plan.rows))
    con = open_worker_duckdb()
    batches = [each for run in runs for each in read_history_records(con, run, plan.options, plan.at)]
    if not sum(batch.num_rows for batch in batches):
        return Sample(0, {}, "", "")
    raw = add_coordinates(
        pa.Table.from_batches(batches), {plan.options.topic: ""}, NOTHING, pipeline.record_version
    )
    config = configure_validation(pipeline, lookups)
    accepted, refused = validate_records(
        con, join_marks(con, raw, pipeline, None), config, open_readers(pipeline)
    )
    if plan.options.until is not None:
        bound = pa.scalar(plan.options.until, INSTANT)
        accepted = accepted.filter(pc.less(accepted["_event_time"], bound))
    reasons: dict[str, int] = {}
    for reason in refused["_reason"].to_pylist():
        reasons[reason] = reasons.get(reason, 0) + 1
    first = refused.slice(0, 1).to_pylist()
    example = first[0]["_value"].decode(errors="replace")[:300] if first else ""
    return Sample(accepted.num_rows, reasons, example, str(first[0]["_detail"] or "") if first else "")
