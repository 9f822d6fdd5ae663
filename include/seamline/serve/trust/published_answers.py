"""How far a pipeline's published answers are to be trusted, in numbers: from its tables alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from seamline.lake.log.epoch_log import newest_epochs
from seamline.lake.publish.derived_changes import find_reach_ahead
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.audits_table import audits_of
from seamline.lake.tables.builds_table import read_newest_build
from seamline.lake.tables.comparisons_table import list_unexplained
from seamline.lake.tables.view_versions import find_served_version, find_view
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.protocol.accuracy import Accuracy
from seamline.model.protocol.audit import Audit
from seamline.model.time.intervals import parse_moment
from seamline.serve.completeness import Cell, list_completeness
from seamline.serve.trust.interval_shades import Shade, Square, find_certified_end, shade_cells

AUDITS = 20
"""Audits that are looked at for the newest intervals, where the last one looked at a span."""


@dataclass(frozen=True)
class ViewTrust:
    """The served version of a view."""

    view: str
    """The view's name, without the pipeline."""
    shades: Mapping[Shade, int]
    """How many intervals are so; each shade is named."""
    failed: int
    """Intervals whose newest certificate is red, also those that are shaded for their holes."""
    late_rows: int
    """Rows that dirty intervals have got since their generations were built."""
    owed_since: datetime | None
    """The end of the first interval that is dirty, or was never built; None if there is none."""
    certified_through: datetime | None
    """The instant up to which all intervals are certified; None if the first is not."""
    unexplained: int
    """Intervals whose newest generation changed what was answered in a way that nothing explains."""


@dataclass(frozen=True)
class PipelineTrust:
    """A pipeline's published answers."""

    pipeline: str
    """Its name."""
    views: Sequence[ViewTrust]
    """Its views, in the order of the definition."""
    findings: int | None
    """What the newest audit found to be wrong; None if there was none."""
    audited_at: datetime | None
    """When that was, UTC."""
    build_seconds: float | None
    """How long the newest attempt to build intervals took; None if there was none."""
    built_at: datetime | None
    """When it ended, UTC."""
    accuracy: Mapping[str, Sequence[Accuracy]] = field(default_factory=dict)
    """How far early answers were from the final ones by the audit that looked at the newest intervals, by view."""


def read_trust(
    pipeline: CompiledPipeline, layout: Layout, cells: Sequence[Cell] | None = None
) -> PipelineTrust:
    """Read it; costs as much as the page of completeness, unless its ``cells`` are there already."""
    newest = newest_epochs(layout, 1)
    squares = shade_cells(
        list_completeness(pipeline, layout) if cells is None else cells,
        pipeline.grid,
        pipeline.timed.watermark_at(newest[-1]) if newest else None,
        find_reach_ahead(pipeline, layout),
    )
    views = []
    for view in pipeline.views:
        _, served = find_served_version(pipeline, layout, find_view(pipeline, layout, view.name))
        own = [each for each in squares if each.cell.is_of(served)]
        views.append(summarize_squares(pipeline, view.name, own, len(list_unexplained(layout, served.id))))
    audits, build = audits_of(layout, 1), read_newest_build(layout)
    return PipelineTrust(
        pipeline=pipeline.name,
        views=views,
        findings=len(audits[0].findings) if audits else None,
        audited_at=audits[0].at if audits else None,
        build_seconds=build.seconds if build else None,
        built_at=build.at if build else None,
        accuracy=find_newest_accuracy(audits_of(layout, AUDITS) if audits and audits[0].span else audits),
    )


def find_newest_accuracy(audits: Iterable[Audit]) -> Mapping[str, Sequence[Accuracy]]:
    """Return how accurate answers were by the audit that looked at the newest intervals; a later one before others."""
    measured = [each for each in audits if each.accuracy]
    return max(measured, key=lambda each: (looked_until(each), each.at)).accuracy if measured else {}


def looked_until(audit: Audit) -> datetime:
    """Return up to where an audit looked at."""
    return min(parse_moment(audit.span.partition("/")[2]), audit.at) if audit.span else audit.at


def summarize_squares(
    pipeline: CompiledPipeline, view: str, own: Sequence[Square], unexplained: int
) -> ViewTrust:
    """Summarize the intervals of one view's served version."""
    counts = Counter(each.shade for each in own)
    owed = [each for each in own if each.shade in (Shade.DIRTY, Shade.NEVER)]
    ends = [pipeline.grid.named(each.cell.interval).end for each in owed]
    return ViewTrust(
        view=view,
        shades={shade: counts[shade] for shade in Shade},
        failed=sum(each.cell.failed for each in own),
        late_rows=sum(each.cell.since for each in own if each.shade is Shade.DIRTY),
        owed_since=min(ends, default=None),
        certified_through=find_certified_end(own, pipeline.grid),
        unexplained=unexplained,
    )
