"""A changed view beside the version that is served: which published numbers would change, and by how much."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.engine.pane_ranges import parse_interval_ids as starts_of
from seamline.lake.joins.restatements import read_restated
from seamline.lake.publish.derived_changes import find_reach_ahead, read_derived_arrivals
from seamline.lake.publish.generation_history import certificates_of
from seamline.lake.publish.planning import estimate_plan_cost, reaches_of
from seamline.lake.read.merged_read import read_merged_answer
from seamline.lake.read.row_differences import Difference, compare_rows
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.manifest_table import manifest_of
from seamline.lake.tables.reprocessed import read_split_log
from seamline.lake.tables.view_versions import add_live_versions, find_served_version, find_view
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.compile.stored_definition import resolve_view_version
from seamline.model.errors import BadRange, NotFound, PublishRefused
from seamline.model.protocol.manifest import Manifest
from seamline.model.protocol.read_request import ReadRequest
from seamline.model.time.intervals import Interval
from seamline.model.time.reached_intervals import find_spanning_views
from seamline.model.time.zone_clock import MICROSECOND
from seamline.plan.batch.batch_plan import BatchPlan, plan_batch
from seamline.plan.batch.interval_arrivals import Arrivals
from seamline.plan.batch.view_upgrade import Common, keep_unbuilt_intervals
from seamline.plan.batch.view_upgrade import find_common_intervals as common_of
from seamline.serve.generation_differences import format_difference, places_of
from seamline.serve.generation_differences import list_common_measures as measures_of
from seamline.serve.query import shorten_interval_id


@dataclass(frozen=True)
class Upgrade:
    """Two versions of a view over the intervals that can be compared."""

    old: CompiledView
    """The version that is served."""
    new: CompiledView
    """The definition's own version."""
    common: Common
    """The intervals of which both count the same."""
    difference: Difference | None
    """None if rows of the two cannot be compared by key."""
    why: str
    """Why ``difference`` is None; else empty."""
    failed: Mapping[str, Mapping[str, str]]
    """By fingerprint and interval id: unmet expectations, and what was found."""


def find_upgrade_versions(
    pipeline: CompiledPipeline, layout: Layout, view_name: str
) -> tuple[CompiledView, CompiledView]:
    """Find the version that is served and the definition's own; PublishRefused if that is not born yet."""
    own = pipeline.view(view_name)
    if own is None:
        find_view(pipeline, layout, view_name)
        raise NotFound(
            f"{pipeline.name}.{view_name} is not in the definition any more.",
            hint="use seamline flip to serve one of its versions.",
        )
    manifest = manifest_of(layout)
    if own.id not in manifest.live:
        raise PublishRefused(
            f"{own.id} is not born yet: nothing feeds it.", hint="start the stream with its definition."
        )
    return find_served_version(pipeline, layout, own)[1], own


def to_build(pipeline: CompiledPipeline, layout: Layout, new: CompiledView) -> BatchPlan:
    """Plan what the new version was never built of, however much that is; the run builds all live versions."""
    manifest = manifest_of(layout)
    reaches = reaches_of(pipeline, layout)
    live = add_live_versions(pipeline, layout).views
    views = [view.id for view in live]
    epochs = read_split_log(pipeline, layout, manifest, live)
    plan = plan_batch(
        epochs,
        manifest,
        pipeline.grid,
        views,
        asked=None,
        dirty=True,
        restated=read_restated(pipeline, layout, epochs),
        reaches=reaches,
        ahead=find_reach_ahead(pipeline, layout),
        derived=read_derived_arrivals(pipeline, layout, epochs),
        spanning=find_spanning_views(pipeline.grid, live),
    )
    return estimate_plan_cost(keep_unbuilt_intervals(plan, manifest, new.id), layout, pipeline.grid, live)


def compare_versions(
    pipeline: CompiledPipeline, layout: Layout, old: CompiledView, new: CompiledView, span: Interval | None
) -> Upgrade:
    """Compare what is published of two versions, over the intervals (in ``span``) of which both count the same."""
    manifest = manifest_of(layout)
    epochs = read_split_log(pipeline, layout, manifest, [old, new])
    arrivals = Arrivals(epochs, until=epochs[-1].number if epochs else -1)
    decided = read_restated(pipeline, layout, epochs)
    mark = max((each.watermark for each in epochs if each.watermark), default=None)
    found = common_of(manifest, old.id, new.id, arrivals, pipeline.grid, decided, (old, new), mark)
    if span is not None:
        inside = {each.id for each in pipeline.grid.within(span)}
        found = Common(tuple(id for id in found.intervals if id in inside), found.others)
    difference, why = None, ""
    try:
        places = places_of(old, new)
    except BadRange as other_keys:
        why = other_keys.message
    else:
        whole = span is None and not found.others
        rows = [read_common_rows(pipeline, layout, each, found, whole=whole) for each in (old, new)]
        difference = compare_rows(rows[0], rows[1], places, measures_of(old, new))
    failed = {
        view.fingerprint: find_unmet_expectations(layout, manifest, view, found.intervals)
        for view in (old, new)
    }
    return Upgrade(old, new, found, difference, why, failed)


def read_common_rows(
    pipeline: CompiledPipeline, layout: Layout, view: CompiledView, common: Common, *, whole: bool
) -> pa.Table:
    """Read the rows that a version answers for windows that touch no other intervals than those in common.

    A window without an end touches all: it is there if ``whole`` is true.
    """
    owner, version = resolve_view_version(pipeline, manifest_of(layout), view.id)
    ids = common.intervals
    if not ids:
        request = ReadRequest(end=pipeline.grid.start, version=view.fingerprint)
        return read_merged_answer(owner, version, layout, request).table.slice(0, 0)
    request = ReadRequest(end=pipeline.grid.named(ids[-1]).end, version=view.fingerprint)
    rows = read_merged_answer(owner, version, layout, request).table
    length = pipeline.grid.length // MICROSECOND
    wanted = np.array(sorted(starts_of(ids)), np.int64)
    first, last = (rows[name].cast(pa.int64()) for name in ("window_start", "window_end"))
    endless = pc.is_null(last).to_numpy()
    starts, ends = first.to_numpy(), pc.fill_null(last, 0).to_numpy() - 1
    inside = np.isin(starts // length * length, wanted) & np.isin(ends // length * length, wanted)
    return rows.filter(pa.array(np.where(endless, whole, inside)))


def find_unmet_expectations(
    layout: Layout, manifest: Manifest, view: CompiledView, intervals: Collection[str]
) -> dict[str, str]:
    """Find the published generations of a version whose expectations are not met, and what was found."""
    found = {}
    for certificate in certificates_of(layout, view.id):
        id = certificate.interval.id
        stated = manifest.published.get((view.id, id))
        if id not in intervals or stated is None or stated.generation != certificate.generation:
            continue
        for check in certificate.checks:
            if check.name == "expectations" and not check.passed:
                found[id] = check.found
    return found


def format_upgrade(found: Upgrade) -> Iterator[str]:
    """Describe a comparison of versions."""
    yield f"{found.new.qualified}: version {found.old.fingerprint} (served) -> {found.new.fingerprint}"
    yield f"  {len(found.common.intervals)} intervals certified of both, up to the same rows"
    for why, ids in found.common.others.items():
        some = ", ".join(map(shorten_interval_id, ids[:3]))
        yield f"  {len(ids)} not compared, {why}: {some}{' ...' if len(ids) > 3 else ''}"
    if found.difference is None:
        yield f"  {found.why}"
    else:
        yield from format_difference(found.difference)
    for name, view, other in (("lost", found.old, found.new), ("new", found.new, found.old)):
        mine = [each.name for each in view.measures if each.name not in {one.name for one in other.measures}]
        if mine:
            yield f"  {name} measures: {', '.join(mine)}"
    for view in (found.old, found.new):
        bad = found.failed[view.fingerprint]
        verdict = (
            f"{len(bad)} intervals do not meet them" if bad else "met" if view.expect else "none declared"
        )
        yield f"  expectations of {view.fingerprint}: {verdict}"
        yield from (f"    {shorten_interval_id(id)} {what}" for id, what in list(bad.items())[:3])
