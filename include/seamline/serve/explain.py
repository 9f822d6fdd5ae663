"""One number taken apart: generation, slices, rows in the master, and the proof that they add up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial, reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from seamline.kernel.restated_rows import open_reprocessing
from seamline.lake.engine import states
from seamline.lake.engine.pane_ranges import Span, to_unix_micros
from seamline.lake.engine.windowing import format_grouping_set as spelled_set
from seamline.lake.log.epoch_log import read_condensed_log
from seamline.lake.read import merged_read, originals
from seamline.lake.read.answer_ways import format_interval_id
from seamline.lake.read.answers import Answer
from seamline.lake.read.snapshot import Snapshot
from seamline.lake.storage import layout as places
from seamline.lake.storage.arrow_types import INSTANT, arrow_type
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.certificates_table import Certificates
from seamline.lake.tables.decided import list_restatements
from seamline.lake.tables.view_versions import find_served_version, find_view
from seamline.model.compile.catalog import load_pipeline
from seamline.model.compile.compiled_pipeline import GROUPING, CompiledPipeline, CompiledView
from seamline.model.errors import BadRange, NotFound
from seamline.model.measures import NetSum
from seamline.model.protocol.certificate_checks import Certificate
from seamline.model.protocol.read_request import ReadRequest
from seamline.model.protocol.restated_views import count_named_restatements, list_view_restatements
from seamline.model.protocol.restatement import Restatement
from seamline.model.protocol.seam import Side
from seamline.model.time.intervals import EPOCH, Interval, format_utc_instant, parse_moment
from seamline.model.time.window_arithmetic import Ruling, Whole
from seamline.model.time.zone_clock import MICROSECOND
from seamline.serve.explained_number import Explanation, Part, Row
from seamline.serve.imported_rows import name_imported_rows

FOREVER = datetime.max.replace(tzinfo=UTC)


def explain(
    view: str,
    key: Mapping[str, str | None],
    window: str | datetime = "",
    *,
    page: int = 0,
    size: int = 20,
    layout: Layout | None = None,
) -> Explanation:
    """Take apart the number of one key and the window that starts at ``window`` (``start/end`` if several do).

    ``page`` counts from 0 over the master's rows, ``size`` a page. Raises NotFound if there is no such row.
    """
    name, _, view_name = view.partition(".")
    pipeline = load_pipeline(places.definitions_folder(), name)
    layout = layout or places.locate_tables(pipeline.name)
    return explain_number(
        pipeline, find_view(pipeline, layout, view_name), layout, key, bounds_of(window), page=page, size=size
    )


Asked = tuple[datetime | None, datetime | None]
"""The start and the end of a window, as far as they were said."""


def bounds_of(window: str | datetime) -> Asked:
    """Parse a window's start, or ``start/end``; None for what is not given."""
    if isinstance(window, datetime):
        return parse_moment(window.isoformat()), None
    start, _, end = window.partition("/")
    return parse_moment(start) if start else None, parse_moment(end) if end else None


def explain_number(
    pipeline: CompiledPipeline,
    view: CompiledView,
    layout: Layout,
    key: Mapping[str, str | None],
    asked: Asked,
    *,
    page: int = 0,
    size: int = 20,
) -> Explanation:
    """Take apart one number of the version that is served under the view's name.

    Reads as an answer is read: again where tables move meanwhile, ReadUnstable after several attempts.
    """
    pipeline, view = find_served_version(pipeline, layout, view)
    values, start = parse_key_values(view, key), validate_window_start(view, asked[0])
    once = partial(explain_pinned, pipeline, view, layout, values, (start, asked[1]), page=page, size=size)
    return merged_read.retry_unstable_read(view, once)


def explain_pinned(
    pipeline: CompiledPipeline,
    view: CompiledView,
    layout: Layout,
    values: Row,
    bounds: tuple[datetime, datetime | None],
    *,
    page: int,
    size: int,
) -> Explanation:
    """Take apart one number from what is pinned now; Unsettled, or a file that is gone, where tables move meanwhile."""
    snapshot = Snapshot.pin(pipeline, view, layout, ReadRequest(version=view.fingerprint))
    wanted = Span.between(bounds[0], bounds[0] + timedelta(microseconds=1))
    answer, taken = merged_read.read_snapshot(snapshot, wanted, Side.MERGED)
    row = the_row(view, answer.table, values, *bounds)
    span = Interval(row["window_start"], row["window_end"] or FOREVER)
    panes = pc.and_(
        pc.greater_equal(taken["pane"], pa.scalar(span.start, INSTANT)),
        pc.less(taken["pane"], pa.scalar(span.end, INSTANT)),
    )
    own = filter_by_key(taken.filter(panes), values)
    known = count_known_restatements(view, layout, answer)
    decided = restatements_of_answer(pipeline, view, layout, known)
    decisions = list_restatements(layout)
    again = {id: open_reprocessing(pipeline, layout, decisions[: known[id]]) for id in decided}
    found, shown = originals.read_original_rows(
        pipeline, view, layout, values, span, answer.intervals, again=again, page=page, size=size
    )
    return Explanation(
        view=view.qualified,
        key=values,
        window=span,
        row=row,
        intervals=answer.intervals,
        certificates=find_certificates(layout, view, answer),
        parts=present_parts(view, own, answer),
        originals=found,
        together=present_merged_row(view, own),
        page=name_imported_rows(layout, shown),
        restated=decided,
    )


def count_known_restatements(view: CompiledView, layout: Layout, answer: Answer) -> Mapping[str, int]:
    """Count the decisions by which each interval's rows are made: by its build, or, where joined, by its epoch."""
    if view.derived is None:
        return {id: way.restated for id, way in answer.intervals.items()}
    log = read_condensed_log(layout)
    return {id: count_named_restatements(log, way.complete_to) for id, way in answer.intervals.items()}


def restatements_of_answer(
    pipeline: CompiledPipeline, view: CompiledView, layout: Layout, known: Mapping[str, int]
) -> Mapping[str, Sequence[Restatement]]:
    """List the restatements about each interval among the first so many, by interval id."""
    decisions, grid = list_restatements(layout), pipeline.grid
    found = {
        id: list_view_restatements(view, grid, grid.named(id), decisions[:count])
        for id, count in known.items()
    }
    return {id: mine for id, mine in found.items() if mine}


def validate_window_start(view: CompiledView, start: datetime | None) -> datetime:
    """Check that windows may start there; BadRange if none can, or where nothing is said and must be."""
    windows = view.windows
    if isinstance(windows, Whole):
        return EPOCH + windows.start * MICROSECOND
    if start is None:
        raise BadRange(f"{view.qualified} has more than one window.", hint="pass the start of one.")
    if isinstance(windows, Ruling):
        found = EPOCH + windows.at(windows.last_starting_by(to_unix_micros(start))) * MICROSECOND
        if found != start:
            raise BadRange(
                f"No window starts at {format_utc_instant(start)}.",
                hint=f"the last before it starts at {format_utc_instant(found)}.",
            )
    return start


def the_row(view: CompiledView, table: pa.Table, values: Row, start: datetime, end: datetime | None) -> Row:
    """Find the row of a key and window; NotFound if there is none, BadRange if there are several."""
    rows = filter_by_key(table, values)
    if view.grouped:
        names = spelled_set([key.name for key in view.keys if key.name in values])
        rows = rows.filter(pc.equal(rows[GROUPING], names))
    found: list[Row] = [row for row in rows.to_pylist() if end in (None, row["window_end"])]
    if not found:
        raise NotFound(
            f"{view.qualified} has no row for {format_key(values)} at {format_utc_instant(start)}.",
            hint="see `seamline query`.",
        )
    if len(found) > 1:
        longest = max(row["window_end"] for row in found)
        raise BadRange(
            f"{len(found)} windows start at {format_utc_instant(start)}.",
            hint=f"pass the end too: {format_utc_instant(start)}/{format_utc_instant(longest)} is the longest.",
        )
    return found[0]


def parse_key_values(view: CompiledView, key: Mapping[str, str | None]) -> dict[str, Any]:
    """Parse key values by their types; BadRange if they are no grouping set, or one cannot be read."""
    if sorted(key) not in [sorted(names) for names in view.sets]:
        sets = " or ".join(", ".join(names) or "no keys" for names in view.sets)
        asked = " ".join(f"--key {key.name}=VALUE" for key in view.keys) or "no --key"
        raise BadRange(f"{view.qualified} has the keys {sets}.", hint=f"pass each once: {asked}.")
    values = {}
    for each in (each for each in view.keys if each.name in key):
        text = key[each.name]
        try:
            read = pa.scalar(text).cast(arrow_type(each.type.spark)).as_py() if text is not None else None
        except pa.ArrowInvalid:
            raise BadRange(
                f"{text!r} is not a valid {each.type.spark}.", hint=f"{each.name} is of that type."
            ) from None
        values[each.name] = read
    return values


def filter_by_key(table: pa.Table, key: Row) -> pa.Table:
    """Keep the rows of one key."""
    for name, value in key.items():
        mask = (
            pc.is_null(table[name])
            if value is None
            else pc.equal(table[name], pa.scalar(value, table[name].type))
        )
        table = table.filter(mask)
    return table


def present_parts(view: CompiledView, taken: pa.Table, answer: Answer) -> list[Part]:
    """Present each generation's and each slice's share by itself, generations first."""
    by = ["_speed", "_at", "from_epoch", "to_epoch"]
    merged = states.aggregate_states(view, taken, by, {"rows": "sum"})
    groups = merged.select([*by, "rows"]).to_pylist()
    found = []
    shares = states.present_states(view, count_changed_totals(view, merged), keep=[]).to_pylist()
    for group, row in zip(groups, shares, strict=True):
        interval = format_interval_id(group["_at"])
        way = answer.intervals[interval]
        speed = group["_speed"]
        source = f"slice of {interval}" if speed else f"generation {way.generation} of {interval}"
        epochs = (group["from_epoch"], group["to_epoch"]) if speed else (0, way.cut)
        found.append(Part(source, epochs, group["rows"], row))
    return sorted(found, key=lambda part: (part.source.startswith("slice"), part.epochs))


def count_changed_totals(view: CompiledView, merged: pa.Table) -> pa.Table:
    """Let a share that has withdrawn as many values as it added present the total that it changes, not NULL."""
    for state in view.states:
        if not isinstance(state.measure, NetSum):
            continue
        *totals, counted = (part.name for part in state.parts)
        changed = reduce(pc.or_, (pc.fill_null(pc.not_equal(merged[name], 0), False) for name in totals))
        evened = pc.and_(pc.equal(merged[counted], 0), changed)
        at = merged.schema.get_field_index(counted)
        shown = pc.if_else(evened, pa.scalar(1, merged.schema.field(at).type), merged[counted])
        merged = merged.set_column(at, merged.schema.field(at), shown)
    return merged


def present_merged_row(view: CompiledView, taken: pa.Table) -> Row:
    """Merge states of one key and window, and present them."""
    merged = states.aggregate_states(view, taken, [], {"rows": "sum"})
    row: Row = states.present_states(view, merged, keep=[]).to_pylist()[0]
    return row


def find_certificates(layout: Layout, view: CompiledView, answer: Answer) -> dict[str, Certificate]:
    """Find the certificate of every generation that answers, by interval."""
    if not Table.exists(layout.table("certificates")):
        return {}
    table = Certificates.ensure(layout)
    found = {}
    for interval, way in answer.intervals.items():
        for certificate in table.of(view=view.id, interval=interval):
            if certificate.generation == way.generation:
                found[interval] = certificate
    return found


def format_key(key: Mapping[str, Any]) -> str:
    """Format a key for people."""
    return ", ".join(f"{name}={value}" for name, value in key.items()) or "all rows"
