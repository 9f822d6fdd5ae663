"""Where a number has gone: which version each sink's target shows, what the row is there, and since when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from seamline.lake.read.sinks.row_history import ShownSince, find_shown_since
from seamline.lake.read.sinks.shown_rows import ShownRows
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.sinks.recorded_positions import read_known_copy
from seamline.lake.tables.sinks.served_versions import ServedVersion, ServedVersions
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.definition.sinks.sink_base import CHANGE, Sink
from seamline.model.errors import SeamlineError
from seamline.model.protocol.sinks.positions import SinkPosition
from seamline.sinks.audit.opened_target import (
    OpenedTarget,
    Opening,
    find_shown_view,
    open_to_read,
    read_shown_versions,
)
from seamline.sinks.audit.sink_audit import list_differing_columns
from seamline.sinks.row_shape import RowShape
from seamline.sinks.sending import find_view
from seamline.sinks.targets import open_target

Row = Mapping[str, Any]
SAME, OTHER, ABSENT = "same", "other", "absent"
"""What was read back of a row."""
NO_ROW = "it cannot be asked for one row; `seamline sinks audit` reads all of it"
NOT_ASKED = "the target was not asked; `seamline explain` asks it"


@dataclass(frozen=True)
class SentNumber:
    """One row in the target of one sink."""

    sink: str
    """The sink's name."""
    target: str
    """Where it writes to."""
    position: SinkPosition | None = None
    """Where the target stands; None if nothing was sent yet, or that is not known."""
    newest: int = -1
    """The newest version of the serving table."""
    moved: str = ""
    """When the target last moved, UTC, as the warehouse knows; empty if it does not."""
    since: ShownSince | None = None
    """Since which version the row is as the target's version shows it; None if that does not show it."""
    sent: bool = True
    """Whether the row is one of those that are sent, as ``when=`` says."""
    held: str = ""
    """What was read back, SAME, OTHER or ABSENT; empty where the target was not asked."""
    columns: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    """Of another row the columns that differ: what the target has, and what its version shows."""
    looked: bool = False
    """Whether the version that the target shows was looked at."""
    note: str = ""
    """Why something is not known; empty if all is."""


def list_sent_numbers(
    pipeline: CompiledPipeline, layout: Layout, view: str, row: Row, opening: Opening | None = open_target
) -> list[SentNumber]:
    """Say of each sink of a view what its target has of a row of the view's answer.

    Without ``opening`` no target is asked: it is said what the warehouse knows.
    """
    sinks = [each for each in pipeline.definition.sinks if isinstance(each, Sink) and each.view == view]
    return [find_sent_number(pipeline, layout, sink, row, opening) for sink in sinks]


def find_sent_number(
    pipeline: CompiledPipeline, layout: Layout, sink: Sink, row: Row, opening: Opening | None
) -> SentNumber:
    """Say what one target has; where it cannot be asked, what the warehouse knows of it."""
    view = pipeline.view(sink.view)
    assert view is not None
    versions, copy = ServedVersions(layout.serving(view)), read_known_copy(layout, sink.id)
    target = sink.name_target(pipeline.name)
    known = SentNumber(sink.id, target, copy.position if copy else None, versions.find_newest())
    known = replace(known, moved=copy.at if copy else "")
    if known.newest < 0:
        return known
    if opening is None:
        return look_at_version(pipeline, layout, sink, versions, row, replace(known, note=NOT_ASKED))
    try:
        with open_to_read(pipeline, layout, sink, versions, opening) as opened:
            here = replace(known, position=opened.position)
            here = look_at_version(pipeline, layout, sink, versions, row, here)
            return judge_held(opened, sink, versions, row, here)
    except SeamlineError as error:
        told = replace(known, note=error.message)
        return look_at_version(pipeline, layout, sink, versions, row, told)


def look_at_version(
    pipeline: CompiledPipeline,
    layout: Layout,
    sink: Sink,
    versions: ServedVersions,
    row: Row,
    made: SentNumber,
) -> SentNumber:
    """Find the row in the version that a target shows, and since which one it is so."""
    try:
        found = find_shown_row(
            versions, made.position, sink, row, list_shown_places(pipeline, layout, sink, made)
        )
    except SeamlineError as error:
        return replace(made, note=error.message)
    if found is None:
        return made
    shown, places, rows = found
    if not rows.num_rows:
        return replace(made, looked=True)
    sent = sink.when == CHANGE or bool(rows[sink.when][0].as_py())
    return replace(made, looked=True, since=find_shown_since(shown, rows, places), sent=sent)


def list_shown_places(
    pipeline: CompiledPipeline, layout: Layout, sink: Sink, made: SentNumber
) -> Sequence[str]:
    """List what identifies rows in a target; nothing where nobody knows."""
    shown = find_shown_view(made.position)
    view = find_view(pipeline, layout, sink.view, shown) if shown else pipeline.view(sink.view)
    return RowShape.of(view).identity if view else ()


def find_shown_row(
    versions: ServedVersions, position: SinkPosition | None, sink: Sink, row: Row, places: Sequence[str]
) -> tuple[ShownRows, Sequence[str], pa.Table] | None:
    """Find a row in the version that a target shows; None where it shows none."""
    version = read_shown_versions(versions, position, sink.id)[0] if position else None
    if version is None or not places or not row.keys() >= set(places):
        return None
    shown = ShownRows(version, sink.when)
    return shown, places, shown.find(make_place(version, places, row), places)


def make_place(version: ServedVersion, places: Sequence[str], row: Row) -> pa.Table:
    """Make a table of what identifies a row."""
    schema = pa.schema([version.schema.field(name) for name in places])
    return pa.Table.from_pylist([{name: row[name] for name in places}], schema=schema)


def judge_held(
    opened: OpenedTarget, sink: Sink, versions: ServedVersions, row: Row, made: SentNumber
) -> SentNumber:
    """Ask a target for one row, and compare it with what its version shows; say why where it cannot be asked."""
    found = find_shown_row(versions, opened.position, sink, row, opened.places)
    if found is None:
        return made
    shown, places, rows = found
    held = opened.reading.read_row(make_place(shown.version, places, row))
    if held is None:
        return replace(made, note=NO_ROW)
    there = [each for each in held["value"].to_pylist() if each is not None]
    if not there:
        return replace(made, held=ABSENT)
    if not rows.num_rows:
        return replace(made, held=OTHER)
    columns = list_differing_columns(there[-1], opened.target.spell_values(rows)[0].as_py())
    return replace(made, held=OTHER if columns else SAME, columns=columns)
