"""Published generations beside what their builds wrote down, and the log beside what they were built from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from seamline.lake.builds import BuildRow, Builds
from seamline.lake.layout import Layout
from seamline.lake.pins import Files, look
from seamline.lake.rejudged import judged_epochs
from seamline.lake.scans import connection, scan
from seamline.lake.snapshot import manifest_of
from seamline.lake.tables import Table
from seamline.model.audit import Finding, Wrong
from seamline.model.compiled import CompiledPipeline, CompiledView
from seamline.model.epoch import Epoch
from seamline.model.manifest import Statement

Volumes = Mapping[tuple[str, str], tuple[int, int]]
"""By interval id and generation: rows in the table, and the records that are counted in them."""


def unproven(pipeline: CompiledPipeline, view: CompiledView, layout: Layout) -> tuple[int, list[Finding]]:
    """Check every published generation of a view version; give how many there are, and what is wrong."""
    manifest = manifest_of(layout)
    published = {id: each for (name, id), each in manifest.published.items() if name == view.id}
    held = volumes(look(layout.generations(view), "files", Files.of))
    rows = Builds.ensure(layout).all() if Table.exists(layout.table("builds")) else []
    built = {(row.interval, row.generation): row for row in rows if row.view == view.id}
    epochs = judged_epochs(pipeline, layout)
    findings = [
        finding
        for id, each in sorted(published.items())
        for finding in wrong(
            view, each, held.get((id, each.generation), (0, 0)), built.get((id, each.generation)), epochs
        )
    ]
    return len(published), findings


def volumes(files: Files | None) -> Volumes:
    """Count what the generations' table holds."""
    if files is None or not files.actions.num_rows:
        return {}
    by_interval: dict[str, list[str]] = {}
    for path, interval in zip(files.paths, files.partition("interval").to_pylist(), strict=True):
        by_interval.setdefault(interval, []).append(path)
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for interval, paths in by_interval.items():
        query = f"SELECT generation, count(*), sum(rows)::BIGINT FROM {scan(paths)} GROUP BY 1"
        for generation, rows, records in connection().sql(query).fetchall():
            found[interval, generation] = rows, records
    return found


def wrong(
    view: CompiledView,
    each: Statement,
    held: tuple[int, int],
    built: BuildRow | None,
    epochs: list[Epoch],
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
    accepted = sum(epoch.accepted.get(each.interval, 0) for epoch in epochs if epoch.number <= built.cut)
    if accepted != built.rows_read:
        said = (
            f"generation {each.generation} was built from {built.rows_read} records, the log has {accepted}"
        )
        yield Finding(Wrong.GENERATION, place, abs(accepted - built.rows_read), said)
