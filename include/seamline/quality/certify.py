"""Certificates of a run: evidence gathered from ledger, builds and generations, evaluated, and kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from seamline.lake.storage.layout import Layout
from seamline.lake.store.locations import path_below
from seamline.lake.tables.builds_table import BuildRow, Builds
from seamline.lake.tables.certificates_table import Certificates
from seamline.lake.tables.decided import list_restatements
from seamline.lake.tables.generations import Generations
from seamline.lake.tables.manifest_table import ManifestTable
from seamline.lake.tables.reprocessed import read_reprocessed_log
from seamline.lake.tables.view_versions import add_live_versions
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.definition.expectations import ExpectRows
from seamline.model.errors import CertificateFailed, NotFound
from seamline.model.protocol.certificate_checks import (
    Certificate,
    Evidence,
    Making,
    only_open,
    validate_evidence,
)
from seamline.model.protocol.counts.verdict import Awaited
from seamline.model.protocol.holes import count_touching_holes
from seamline.model.protocol.manifest import How, Manifest
from seamline.model.protocol.restated_views import list_view_restatements
from seamline.model.time.intervals import Grid, Interval
from seamline.model.time.reached_intervals import find_spanning_views, widen_by_reach, widen_to_intervals
from seamline.quality.counted_producers import CountedProducers
from seamline.quality.data_docs import write_results
from seamline.quality.expectations import compares_with_served, find_broken_expectations
from seamline.quality.log_until_cut import Log
from seamline.quality.presented_intervals import (
    count_rows,
    count_served_rows,
    keep_expected_measures,
    present_intervals,
    read_generation_states,
)
from seamline.quality.quality_pages import write_run_index
from seamline.quality.suites import count_suite_expectations, evaluate_suites, list_suites
from seamline.runtime.failpoints import hit_failpoint


def certify_run(
    pipeline: CompiledPipeline, layout: Layout, run: str, *, actor: str = ""
) -> list[Certificate]:
    """Judge what a run built and keep the certificates, one per view and interval, in one commit.

    The run's pages are written first; ``actor`` is who asked for the run.
    """
    builds = Builds.ensure(layout).of(run)
    if not builds:
        raise NotFound(
            f"Run {run!r} of {pipeline.name} has built nothing.", hint="build first, then certify."
        )
    cuts = {row.cut for row in builds}
    ledger = read_reprocessed_log(pipeline, layout, cuts=cuts)
    logs = {cut: Log.sum_until(cut, ledger) for cut in cuts}
    now = datetime.now(UTC)
    report = layout.report(run)
    making = Making(
        record_version=pipeline.record_version,
        actor=actor,
        report=path_below(report / "index.html", layout.table("")),
    )
    decisions = list_restatements(layout)
    certificates: list[Certificate] = []
    pages: dict[tuple[str, str], str] = {}
    manifest = ManifestTable.ensure(layout).read()
    live = add_live_versions(pipeline, layout).views
    rowless = bool(find_spanning_views(pipeline.grid, live))
    counted = CountedProducers(pipeline, layout, ledger)
    for view in live:
        mine = [row for row in builds if row.view == view.id]
        for generation in sorted({row.generation for row in mine}):
            rows = [row for row in mine if row.generation == generation]
            audit = Audit.of(
                view,
                Generations.ensure(layout, view),
                generation,
                [row.interval for row in rows],
                find_replaced_generations(manifest, rows),
            )
            named = write_results(report, view.id, audit.results)
            pages |= {(view.id, interval): page for interval, page in named.items()}
            for row in rows:
                interval, log = pipeline.grid.named(row.interval), logs[row.cut]
                known = list_view_restatements(view, pipeline.grid, interval, decisions[: row.restated])
                made = replace(
                    making,
                    lookups=log.lookups(interval.id),
                    restated=tuple(map(str, known)),
                    rows=row.rows_read,
                    seconds=row.seconds,
                )
                one = certify_generation(
                    view,
                    row,
                    interval,
                    pipeline.grid,
                    log,
                    audit,
                    made,
                    now,
                    unique=bool(pipeline.event_id),
                    rowless=rowless,
                    counts=counted.list_awaited(view, interval, row.cut),
                )
                open_ = pipeline.definition.batch.provisional and only_open(one.checks)
                certificates.append(replace(one, provisional=open_))
    write_run_index(report, run, certificates, pages)
    Certificates.ensure(layout).append(certificates)
    hit_failpoint("certified")
    return certificates


def find_replaced_generations(manifest: Manifest, rows: Sequence[BuildRow]) -> dict[str, str]:
    """Find the generations in whose place a run built, by interval id: what it expected there, whatever came since.

    One that was published while its interval was open is left out: it had the rows of a part of it.
    """
    found = {}
    for row in rows:
        stated = manifest.history.get((row.view, row.interval), ())
        hows = {each.how for each in stated if each.generation == row.expected}
        if row.expected and How.PROVISIONAL not in hows:
            found[row.interval] = row.expected
    return found


def certificates_of(layout: Layout, run: str) -> list[Certificate]:
    """Return the certificates of a run, the newest of each generation; none if one that it built has none."""
    wanted = {(row.view, row.interval, row.generation) for row in Builds.ensure(layout).of(run)}
    found = {
        (f"{each.view}/{each.fingerprint}", each.interval.id, each.generation): each
        for each in Certificates.ensure(layout).of(run=run)
    }
    return [found[one] for one in sorted(wanted)] if wanted <= found.keys() else []


def require_passed(certificates: Sequence[Certificate]) -> None:
    """Raise CertificateFailed that lists every check that is not green; what is published stays."""
    wrong = [
        f"{each.view} {each.interval.id}: {check.name}: {check.found}"
        for each in certificates
        if not each.good
        for check in each.checks
        if not check.passed
    ]
    if wrong:
        failed = sum(not each.good for each in certificates)
        raise CertificateFailed(
            f"{failed} of {len(certificates)} generations did not pass:\n" + "\n".join(wrong),
            hint="they are kept but not served; fix what the failed checks report, then build again.",
        )


@dataclass(frozen=True)
class Audit:
    """What a generation's table contains."""

    state_rows: Mapping[str, int]
    """Records counted in the table, by interval id."""
    failed: Mapping[str, Sequence[str]]
    """A sentence for each expectation that was not met, by interval id."""
    results: Mapping[str, Mapping[str, Any]]
    """What Great Expectations found, as JSON, by interval id; empty for a view without a suite."""

    @classmethod
    def of(
        cls,
        view: CompiledView,
        generations: Generations,
        generation: str,
        intervals: Sequence[str],
        served: Mapping[str, str],
    ) -> Audit:
        """Read a generation again, as a reader would, with the measures that are expected something of.

        ``served`` are the generations that are served of its intervals, by interval id.
        """
        narrow = keep_expected_measures(view)
        held = read_generation_states(narrow, generations, generation)
        totals = held.group_by("interval").aggregate([("rows", "sum")])
        counted = dict(zip(totals["interval"].to_pylist(), totals["rows_sum"].to_pylist(), strict=True))
        presented = present_intervals(narrow, held)
        rows = dict.fromkeys(intervals, 0) | count_rows(presented)
        before = count_served_rows(view, generations, served) if compares_with_served(view) else {}
        suites = evaluate_suites(view, presented)
        failed = find_broken_expectations(view, presented, rows, before)
        for interval, sentences in suites.failed.items():
            failed.setdefault(interval, []).extend(sentences)
        return cls(counted, failed, suites.results)


def count_expectations(view: CompiledView, *, rows: int) -> int:
    """Count what was evaluated, one by one: without rows nothing but how many there are."""
    if not rows:
        return sum(isinstance(each, ExpectRows) for each in view.expect)
    return len(view.expect) - len(list_suites(view)) + count_suite_expectations(view)


def certify_generation(
    view: CompiledView,
    row: BuildRow,
    interval: Interval,
    grid: Grid,
    log: Log,
    audit: Audit,
    made: Making,
    now: datetime,
    *,
    unique: bool,
    rowless: bool,
    counts: Sequence[Awaited] = (),
) -> Certificate:
    """Judge one generation of one interval; where rows are joined its neighbours in reach are judged with it.

    ``unique`` is whether rows have event ids; ``rowless`` whether intervals without accepted rows are built for a
    fold. A view is then not held to what it expects where nothing was read for it. ``counts`` are those of producers.
    """
    read = grid.within(widen_to_intervals(grid, interval, view)) if view.derived else [interval]
    ledger_rows = sum(log.arrivals.rows(each.id, until=row.cut) for each in read)
    expected = bool(ledger_rows) or not rowless
    evidence = Evidence(
        interval=interval,
        cut=row.cut,
        cut_is_edge=log.is_edge,
        watermark=log.watermark,
        contiguous=log.contiguous,
        holes=count_touching_holes(log.holes, widen_by_reach(grid, interval, view)),
        ledger_rows=ledger_rows,
        rows_read=row.rows_read,
        duplicates=row.duplicates,
        not_selected=row.not_selected,
        exploded=row.exploded,
        state_rows=audit.state_rows.get(interval.id, 0),
        expectations=tuple(audit.failed.get(interval.id, ())) if expected else (),
        expectations_checked=count_expectations(view, rows=audit.state_rows.get(interval.id, 0))
        if expected
        else 0,
        ahead=view.after,
        joined=view.derived is not None,
        copies=row.copies if view.derived and unique else None,
        copied=row.copied,
        copies_allowed=view.derived is not None and view.derived.copies,
        unanswered=row.unanswered if view.derived and view.derived.question else None,
        counts=counts,
        now=now,
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
        checks=validate_evidence(evidence),
        made=made,
        counts=tuple(each.found for each in counts),
    )
