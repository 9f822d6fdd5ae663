"""Published generations beside what their builds wrote down, and the log beside what they were built from."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from seamline.lake.engine.duckdb_connections import connection
from seamline.lake.engine.duckdb_scans import read_parquet_sql
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import Files, read_cached_table
from seamline.lake.tables.builds_table import BuildRow, Builds
from seamline.lake.tables.manifest_table import manifest_of
from seamline.lake.tables.reprocessed import read_split_log
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.protocol.audit import Finding, Wrong
from seamline.model.protocol.manifest import Statement
from seamline.model.protocol.seam import NOTHING
from seamline.model.time.intervals import Grid, Interval
from seamline.model.time.reached_intervals import widen_to_intervals
from seamline.plan.batch.interval_arrivals import Arrivals

Volumes = Mapping[tuple[str, str], tuple[int, int]]
"""By interval id and generation: rows in the table, and the records that are counted in them."""


def check_published_generations(
    pipeline: CompiledPipeline, view: CompiledView, layout: Layout, span: Interval | None = None
) -> tuple[int, list[Finding]]:
    """Check every published generation of a view version, or those of the intervals of a span.

    Returns how many there are, and what is wrong.
    """
    manifest = manifest_of(layout)
    ids = None if span is None else {interval.id for interval in pipeline.grid.within(span)}
    published = {
        id: each
        for (name, id), each in manifest.published.items()
        if name == view.id and (ids is None or id in ids)
    }
    held = count_generation_volumes(
        read_cached_table(layout.generations(view), "files", Files.of), published.keys()
    )
    rows = Builds.ensure(layout).all() if Table.exists(layout.table("builds")) else []
    built = {(row.interval, row.generation): row for row in rows if row.view == view.id}
    log = read_split_log(pipeline, layout, manifest, [view])
    arrivals = Arrivals(log, until=log[-1].number if log else NOTHING)
    findings = [
        finding
        for id, each in sorted(published.items())
        for finding in find_volume_mismatches(
            pipeline.grid,
            view,
            each,
            held.get((id, each.generation), (0, 0)),
            built.get((id, each.generation)),
            arrivals,
        )
    ]
    return len(published), findings


def count_generation_volumes(files: Files | None, intervals: Collection[str]) -> Volumes:
    """Count what the generations' table has of some intervals."""
    if files is None or not files.actions.num_rows:
        return {}
    by_interval: dict[str, list[str]] = {}
    for path, interval in zip(files.paths, files.partition("interval").to_pylist(), strict=True):
        if interval in intervals:
            by_interval.setdefault(interval, []).append(path)
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for interval, paths in by_interval.items():
        query = f"SELECT generation, count(*), sum(rows)::BIGINT FROM {read_parquet_sql(paths)} GROUP BY 1"
        for generation, rows, records in connection().sql(query).fetchall():
            found[interval, generation] = rows, records
    return found


def find_volume_mismatches(
    grid: Grid,
    view: CompiledView,
    each: Statement,
    held: tuple[int, int],
    built: BuildRow | None,
    arrivals: Arrivals,
) -> Iterator[Finding]:
    """List what is wrong with one published generation."""
    place, (rows, records) = f"view {view.id} {each.interval}", held
    if rows != each.rows:
        said = f"generation {each.generation} has {rows} rows, the manifest says {each.rows}"
        yield Finding(Wrong.GENERATION, place, abs(rows - each.rows), said)
    if built is None:
        return
    if records != built.state_rows:
        said = f"generation {each.generation} counts {records} records, its build wrote {built.state_rows}"
        yield Finding(Wrong.GENERATION, place, abs(records - built.state_rows), said)
    read = [grid.named(each.interval)]
    if view.derived:
        read = list(grid.within(widen_to_intervals(grid, read[0], view)))
    accepted = sum(arrivals.rows(one.id, until=built.cut) for one in read)
    if accepted != built.rows_read:
        said = (
            f"generation {each.generation} was built from {built.rows_read} records, the log has {accepted}"
        )
        yield Finding(Wrong.GENERATION, place, abs(accepted - built.rows_read), said)
