"""Certificates of a run: evidence gathered from ledger, builds and generations, judged, and kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake import states
from seamline.lake.builds import BuildRow, Builds
from seamline.lake.certificates import Certificates
from seamline.lake.generations import Generations
from seamline.lake.layout import Layout
from seamline.lake.planning import known_epochs
from seamline.lake.types import partial_schema
from seamline.lake.versions import live
from seamline.model.certificate import Certificate, Evidence, judge
from seamline.model.compiled import CompiledPipeline, CompiledView
from seamline.model.epoch import Epoch
from seamline.model.errors import CertificateFailed, NotFound, OffsetGap
from seamline.model.holes import holes, touching
from seamline.model.intervals import Interval
from seamline.model.offsets import Vector, advance
from seamline.plan.batch import Arrivals
from seamline.quality.expectations import failures


def certify_run(pipeline: CompiledPipeline, layout: Layout, run: str) -> list[Certificate]:
    """Judge what a run built and keep the certificates, one per view and interval, in one commit."""
    builds = Builds.ensure(layout).of(run)
    if not builds:
        raise NotFound(
            f"Run {run!r} of {pipeline.name} has built nothing.", hint="build first, then certify."
        )
    ledger = known_epochs(layout)
    logs = {cut: Log.until(cut, ledger) for cut in {row.cut for row in builds}}
    now = datetime.now(UTC)
    certificates = []
    for view in live(pipeline, layout).views:
        mine = [row for row in builds if row.view == view.id]
        for generation in sorted({row.generation for row in mine}):
            rows = [row for row in mine if row.generation == generation]
            audit = Audit.of(view, Generations.ensure(layout, view), generation)
            certificates += [
                certificate(view, row, pipeline.grid.named(row.interval), logs[row.cut], audit, now)
                for row in rows
            ]
    Certificates.ensure(layout).append(certificates)
    return certificates


def require_passed(certificates: Sequence[Certificate]) -> None:
    """Raise CertificateFailed that lists every check that is not green; what is published stays."""
    wrong = [
        f"{each.view} {each.interval.id}: {check.name}: {check.found}"
        for each in certificates
        for check in each.checks
        if not check.passed
    ]
    if wrong:
        failed = sum(not each.passed for each in certificates)
        raise CertificateFailed(
            f"{failed} of {len(certificates)} generations did not pass:\n" + "\n".join(wrong),
            hint="they are kept and not served; mend what the checks name and build again.",
        )


@dataclass(frozen=True)
class Log:
    """What the ledger says up to a cut."""

    is_edge: bool
    watermark: datetime | None
    contiguous: bool
    holes: Sequence[Epoch]
    arrivals: Arrivals

    @classmethod
    def until(cls, cut: int, ledger: Sequence[Epoch]) -> Log:
        """Sum up the epochs at or below the cut."""
        epochs = [epoch for epoch in ledger if epoch.number <= cut]
        last = epochs[-1] if epochs and epochs[-1].number == cut else None
        return cls(
            is_edge=last is not None and last.edge,
            watermark=last.watermark if last else None,
            contiguous=joined(epochs),
            holes=holes(epochs),
            arrivals=Arrivals(epochs, until=cut),
        )


def joined(epochs: Sequence[Epoch]) -> bool:
    """Tell whether each range starts where the one before it in its lane ends."""
    ends: Vector = {}
    try:
        for epoch in epochs:
            ends = advance(ends, epoch.ranges)
    except OffsetGap:
        return False
    return True


@dataclass(frozen=True)
class Audit:
    """What a generation's table holds, by interval id: counted rows, and the expectations that failed."""

    state_rows: Mapping[str, int]
    failed: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, view: CompiledView, generations: Generations, generation: str) -> Audit:
        """Read a generation again, as a reader would, with the measures that are expected something of."""
        narrow = expected_part(view)
        held = generations.read(generation, [*partial_schema(narrow).names, "interval"])
        totals = held.group_by("interval").aggregate([("rows", "sum")])
        counted = dict(zip(totals["interval"].to_pylist(), totals["rows_sum"].to_pylist(), strict=True))
        return cls(counted, failures(view, presented(narrow, held)))


def expected_part(view: CompiledView) -> CompiledView:
    """Leave out the measures that nothing is expected of."""
    named = {each.column for each in view.expect}
    return replace(view, measures=tuple(each for each in view.measures if each.name in named))


def presented(view: CompiledView, held: pa.Table) -> pa.Table:
    """Give a row per interval, keys and window (of a window that spans intervals, the part in each)."""
    names = ["interval", *(key.name for key in view.keys)]
    if view.pane == view.window.length:
        return states.present(view, held, names)
    parts = []
    for interval in pc.unique(held["interval"]).to_pylist():
        part = held.filter(pc.equal(held["interval"], interval))
        starts = pa.array(
            [view.window.of(pane).start for pane in part["pane"].to_pylist()], part["pane"].type
        )
        merged = states.combine(view, [part.set_column(part.schema.get_field_index("pane"), "pane", starts)])
        parts.append(merged.append_column("interval", pa.array([interval] * merged.num_rows, pa.string())))
    return states.present(view, pa.concat_tables(parts), names) if parts else held


def certificate(
    view: CompiledView, row: BuildRow, interval: Interval, log: Log, audit: Audit, now: datetime
) -> Certificate:
    """Judge one generation of one interval."""
    evidence = Evidence(
        interval=interval,
        cut=row.cut,
        cut_is_edge=log.is_edge,
        watermark=log.watermark,
        contiguous=log.contiguous,
        holes=touching(log.holes, interval),
        ledger_rows=log.arrivals.rows(interval.id, until=row.cut),
        rows_read=row.rows_read,
        duplicates=row.duplicates,
        not_selected=row.not_selected,
        exploded=row.exploded,
        state_rows=audit.state_rows.get(interval.id, 0),
        expectations=tuple(audit.failed.get(interval.id, ())),
        expectations_checked=len(view.expect) if audit.state_rows.get(interval.id) else 0,
    )
    return Certificate(
        view=view.name,
        fingerprint=view.fingerprint,
        generation=row.generation,
        interval=interval,
        cut=row.cut,
        run=row.run,
        reason=row.reason,
        at=now,
        checks=judge(evidence),
    )
