"""The serving table: the merged answer as plain rows, for people who just want a table."""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime

import deltalake
import numpy as np
import pyarrow as pa
from deltalake.transaction import RemoveAction

from seamline.lake.log.log_lines import SERVED, SHOWN, VIEW_VERSION
from seamline.lake.read import decorations
from seamline.lake.read.answer_ways import format_interval_id
from seamline.lake.read.answers import Answer
from seamline.lake.read.merged_read import read_merged_answer
from seamline.lake.read.serving_lag import read_serving_lag
from seamline.lake.storage import data_files
from seamline.lake.storage.arrow_types import INSTANT, arrow_type, decoration_fields, key_fields
from seamline.lake.storage.commit_conflicts import retry_overtaken
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import Files
from seamline.lake.tables.view_versions import find_served_version
from seamline.model.compile.compiled_pipeline import GROUPING, CompiledPipeline, CompiledView
from seamline.model.compile.fingerprint import hash_json_facts
from seamline.model.errors import Conflict, Overtaken
from seamline.model.time.intervals import Grid
from seamline.model.time.window_arithmetic import Ruling
from seamline.model.time.zone_clock import MICROSECOND, UTC_CLOCK

APP = "seamline.serving"
HELD = "seamline.held"
LOOKUPS = "seamline.lookups"
CLOCK = "seamline.clock"
ATTEMPTS = 10


def serving_schema(view: CompiledView) -> pa.Schema:
    """Return the columns of a view's serving table; ``interval`` is the Delta partition column.

    An approximate measure is there presented, and as its state columns for those who merge further; a total that no
    DECIMAL holds is NULL, and a text (``view.beyond``).
    """
    measures = [pa.field(each.name, arrow_type(each.result)) for each in view.measures]
    sketches = [
        pa.field(part.name, arrow_type(part.type))
        for each in view.states
        if each.measure.approximate
        for part in each.parts
    ]
    return pa.schema(
        [
            *([pa.field(GROUPING, pa.string())] if view.grouped else []),
            *key_fields(view),
            *decoration_fields(view),
            pa.field("window_start", INSTANT),
            pa.field("window_end", INSTANT),
            *measures,
            *(pa.field(name, pa.string()) for name in view.beyond),
            *sketches,
            pa.field("batch_part", pa.int64()),
            pa.field("speed_part", pa.int64()),
            pa.field("epoch", pa.int64()),
            pa.field("certified", pa.bool_()),
            pa.field("complete", pa.bool_()),
            pa.field("phase", pa.string()),
            pa.field("manifest_version", pa.int64()),
            pa.field("interval", pa.string()),
        ]
    )


def ensure_serving_table(layout: Layout, view: CompiledView) -> Table:
    """Open the serving table; create it if missing."""
    return Table.ensure(layout.serving(view), serving_schema(view), partition_by=["interval"])


def refresh_serving_table(
    pipeline: CompiledPipeline, layout: Layout, view: CompiledView, intervals: Collection[str] = ()
) -> bool:
    """Replace the served rows of what is behind, and of some intervals, by the merged answer in one commit.

    Tells whether any were: a table that is far behind takes several.

    The table itself says what it has shown (``behind``). Rows of another version than the served one are replaced all
    at once, and the columns with them, and so are those that show another version of a look-up, or of which nothing
    is known, and windows that their zone's clock had elsewhere. The table is read before the answer is made and the
    commit is conditional on that, so no row is ever replaced by one older in manifest version or epoch (rule 15).
    Raises Conflict if others keep coming first.
    """

    def once() -> bool:
        owner, version = find_served_version(pipeline, layout, view)
        table = ensure_serving_table(layout, version)
        shown, another = (
            decorations.list_lookup_versions(version, layout),
            serves_other_version(table, version),
        )
        lacks = read_serving_lag(layout, owner.grid, version, table)
        anew = (
            lacks.intervals is None
            or another
            or not has_lookup_versions(table, shown)
            or not has_current_clocks(table, version)
        )
        wanted = {*intervals, *(lacks.intervals or ())}
        if not anew and not wanted:
            return False
        found = read_merged_answer(owner, version, layout, touched=None if anew else wanted)
        if found.version != version.fingerprint or found.lookups != shown:
            raise Overtaken(f"{view.qualified} was flipped, or its look-ups have changed.", hint="retry.")
        decorations.save_shown_lookups(version, layout)
        told = found.until if anew else lacks.epoch
        facts = {
            HELD: str(told),
            "seamline.manifest": str(lacks.manifest),
            VIEW_VERSION: version.fingerprint,
            LOOKUPS: json.dumps(found.lookups),
            **zone_clock_metadata(version),
        }
        table.append(
            write_serving_files(table, version, owner.grid, found),
            txns={APP: table.version + 1, SERVED: told, SHOWN: lacks.manifest},
            metadata=facts,
            removes=[] if another else list_replaced_files(table, found.whole),
            instead=serving_schema(version) if another else None,
        )
        return True

    try:
        return retry_overtaken(once, ATTEMPTS)
    except Overtaken as problem:
        raise Conflict(
            f"The serving table of {view.qualified} changed during {ATTEMPTS} refreshes.",
            hint="check whether a second stream is running.",
        ) from problem


def serves_other_version(table: Table, view: CompiledView) -> bool:
    """Return whether a serving table's rows, or its columns, are those of another version."""
    if table.handle.schema() != deltalake.Schema.from_arrow(serving_schema(view)):
        return True
    return table.version > 0 and bool(table.metadata().get(VIEW_VERSION) != view.fingerprint)


def has_lookup_versions(table: Table, versions: Mapping[str, str]) -> bool:
    """Return whether a serving table's rows show these versions of look-ups."""
    return not versions or bool(json.loads(table.metadata().get(LOOKUPS, "{}")) == versions)


def has_current_clocks(table: Table, view: CompiledView) -> bool:
    """Return whether a serving table's windows are ruled by the clocks that their zone has by now."""
    return zone_clock_metadata(view).items() <= table.metadata().items()


def zone_clock_metadata(view: CompiledView) -> Mapping[str, str]:
    """Name the clock of a zone's windows; its rules come with tzdata, and change without the definition."""
    if not isinstance(view.windows, Ruling) or view.windows.clock == UTC_CLOCK:
        return {}
    return {CLOCK: hash_json_facts([view.windows.clock.since, view.windows.clock.ahead])}


def write_serving_files(
    table: Table, view: CompiledView, grid: Grid, found: Answer
) -> Iterator[data_files.DataFile]:
    """Write one file per interval that has rows."""
    schema = serving_schema(view).remove(len(serving_schema(view)) - 1)
    rows = assemble_serving_rows(view, found).select(schema.names).cast(schema)
    stats = [*(key.name for key in view.keys), "window_start", "epoch", "manifest_version"]
    for interval, own in split_by_interval(rows, grid):
        name = f"{interval.replace(':', '').replace('-', '')}-{uuid.uuid4().hex}.parquet"
        yield data_files.write_data_file(own, table.root, name, stats=stats, partition={"interval": interval})


def split_by_interval(rows: pa.Table, grid: Grid) -> Iterator[tuple[str, pa.Table]]:
    """Split rows, which are in the order of their windows, into intervals."""
    length = grid.length // MICROSECOND
    numbers = np.floor_divide(rows["window_start"].cast(pa.int64()).to_numpy(), length)
    found, first = np.unique(numbers, return_index=True)
    for number, start, end in zip(found.tolist(), first, [*first, rows.num_rows][1:], strict=True):
        yield format_interval_id(number * length), rows.slice(start, end - start)


def assemble_serving_rows(view: CompiledView, found: Answer) -> pa.Table:
    """Put the presented rows, the sketches and the manifest's version side by side."""
    rows = found.table
    for each in view.states:
        for part in each.parts if each.measure.approximate else ():
            rows = rows.append_column(part.name, found.states[part.name])
    version = pa.array([found.manifest_version] * rows.num_rows, pa.int64())
    return rows.append_column("manifest_version", version)


def list_replaced_files(table: Table, wanted: Collection[str] | None) -> list[RemoveAction]:
    """List the files that contain the intervals' rows until now, None for all."""
    live = Files.of(table)
    now = int(datetime.now(UTC).timestamp() * 1000)
    rows = zip(
        live.actions["path"].to_pylist(),
        live.actions["size_bytes"].to_pylist(),
        live.partition("interval").to_pylist(),
        strict=True,
    )
    return [
        RemoveAction(path, True, now, size, {"interval": id})
        for path, size, id in rows
        if wanted is None or id in wanted
    ]
