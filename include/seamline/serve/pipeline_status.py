"""Where a pipeline stands, from its tables alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime

from seamline.lake.joins.restatements import read_restated
from seamline.lake.status.marks import find_stale_reconcile
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.claims_table import claims_shown
from seamline.lake.tables.control_poll import find_shown_lease
from seamline.lake.tables.control_table import ControlTable
from seamline.lake.tables.decided import list_failovers
from seamline.lake.tables.manifest_table import ManifestTable
from seamline.lake.tables.reprocessed import Reprocessed, read_split_log
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView, rounded_record_version
from seamline.model.compile.live_versions import live_views, stood_still
from seamline.model.protocol.condensed import count_of
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.holes import list_open_holes
from seamline.model.protocol.manifest import Manifest
from seamline.model.protocol.restated_views import Restated
from seamline.model.protocol.restatement import Restatement
from seamline.model.protocol.seam import NOTHING, Status
from seamline.model.time.intervals import format_utc_instant
from seamline.plan.batch.batch_plan import last_edge
from seamline.plan.batch.reprocessing_plan import Verdict, list_outdated_epochs, list_rounded_epochs
from seamline.plan.wording.observation_text import RECONCILER
from seamline.plan.wording.source_text import describe_failovers, list_time_bounds
from seamline.serve.known_intervals import KnownIntervals
from seamline.serve.refused_records import count_refused_records

DECISIONS = 10
MEND = "seamline quarantine replay"


def status_of(pipeline: CompiledPipeline, layout: Layout, *, now: datetime | None = None) -> list[str]:
    """Describe epoch, edge, watermark, stream, and per view how many intervals are in which state."""
    manifest = ManifestTable.ensure(layout).read() if Table.exists(layout.table("manifest")) else Manifest()
    live = live_views(pipeline, manifest)
    epochs = read_split_log(pipeline, layout, manifest, live.views)
    lines = [pipeline.name, *(f"  {line}" for line in list_time_bounds(pipeline.definition))]
    if epochs:
        newest, edge = epochs[-1], last_edge(epochs)
        mark = format_utc_instant(newest.watermark) if newest.watermark else "unknown"
        lines.append(
            f"  epoch {newest.number} ({format_utc_instant(newest.committed_at)}), "
            f"edge {edge.number if edge else 'none'}, "
            f"watermark {mark}"
        )
        refused = sum(sum(each.refused.values()) for each in epochs)
        found = list_open_holes(epochs)
        lines += [f"  {len(found)} hole{'s' * (len(found) > 1)}: see `seamline holes list`"] if found else []
        late, very = (
            sum(sum(getattr(each, name).values()) for each in epochs) for name in ("late", "very_late")
        )
        lines.append(
            f"  {sum(each.rows for each in epochs)} rows accepted ({late} late, {very} very late), {refused} refused"
        )
        lines += format_refusal_counts(epochs)
        lines += format_reprocessing(pipeline, epochs, Reprocessed(pipeline, layout).verdicts())
    else:
        lines.append("  no epoch yet")
    lines += [f"  {line}" for line in describe_failovers(list_failovers(layout), epochs)]
    lines.append(f"  stream {format_desired_state(layout, now or datetime.now(UTC))}")
    if since := find_stale_reconcile(layout, now=now or datetime.now(UTC)):
        lines.append(
            f"  stream not reconciled since {format_utc_instant(since)}: is the DAG {RECONCILER} paused?"
        )
    for claim in claims_shown(layout):
        lines.append(f"  building {', '.join(map(str, claim.spans))}: {claim}")
    known = KnownIntervals.read(pipeline, layout, live.views, epochs)
    decided = read_restated(pipeline, layout, epochs)
    lines += format_pending_restatements(manifest, [view.id for view in live.views], known.all, decided)
    for view in live.views:
        tally = dict.fromkeys(Status, 0)
        for interval in known.of(view.id):
            restated = decided.list_new(manifest, [view.id], pipeline.grid.named(interval))
            tally[find_interval_status(manifest, view.id, interval, known, restated=bool(restated))] += 1
        behind = newest.number - newest.frontiers.get(view.id, NOTHING) if epochs else 0
        counts = (
            ", ".join(f"{count} {status.value}" for status, count in tally.items() if count) or "no intervals"
        )
        lines.append(
            f"  {view.qualified} {view.fingerprint}{format_version_role(pipeline, manifest, view)}: {counts}"
            + (f", {behind} epochs behind" if behind else "")
        )
        lines += format_decisions(manifest, view.id)
    for id, why in stood_still(pipeline, manifest).items():
        name, _, version = id.partition("/")
        served = " (served)" if manifest.serving.get(name) == id else ""
        lines.append(f"  {pipeline.name}.{name} {version}{served}: gets no more slices: {why}")
    return lines


def format_refusal_counts(epochs: Iterable[Epoch]) -> Iterator[str]:
    """Describe how many records were refused for each reason, and when the last was, the most frequent first."""
    counts, last = count_refused_records(epochs)
    for reason, count in sorted(counts.items(), key=lambda each: (-each[1], each[0])):
        number, at = last[reason]
        yield f"    {count} {reason}, last in epoch {number} ({format_utc_instant(at)})"


def format_decisions(manifest: Manifest, view: str) -> Iterator[str]:
    """Describe the intervals that are served by a person's decision, with who and why, newest first."""
    found = [
        (interval, each.note)
        for (id, interval), each in manifest.published.items()
        if id == view
        and each.note
        and manifest.standing(each, news=False) in (Status.HELD, Status.UNCERTIFIED)
    ]
    for interval, note in sorted(found, reverse=True)[:DECISIONS]:
        yield f"    {interval} {note}"
    if len(found) > DECISIONS:
        yield f"    ... and {len(found) - DECISIONS} more"


def format_reprocessing(
    pipeline: CompiledPipeline, epochs: Iterable[Epoch], verdicts: Mapping[int, Verdict]
) -> Iterator[str]:
    """Describe what another record version validated: how much was validated again, and what waits for a build."""
    version = pipeline.record_version
    waiting = list_outdated_epochs(epochs, version, verdicts)
    if verdicts:
        rows = sum(sum(each.accepted.values()) for each in verdicts.values())
        refused = sum(sum(each.refused.values()) for each in verdicts.values())
        yield (
            f"  {len(verdicts)} epochs reprocessed by record version {version}: {rows} rows, {refused} refused"
        )
    if waiting:
        yield (
            f"  {count_of(waiting)} epochs were validated by another record version than {version}: the next build "
            "reprocesses them"
        )
    if lossy := list_rounded_epochs(waiting, version, rounded_record_version(pipeline), verdicts):
        before = "went through a double" if pipeline.format.textual else "were read by an older rule"
        yield (
            f"  {count_of(lossy)} epochs were read when DECIMAL columns {before}: "
            f"`{MEND} {pipeline.name}` reads their digits again, `seamline flip` serves the result"
        )


def format_pending_restatements(
    manifest: Manifest, views: Collection[str], accepted: Iterable[str], decided: Restated
) -> Iterator[str]:
    """Describe the restatements that wait for a build, and in how many intervals, or for the stream."""
    counts = Counter[Restatement]()
    for interval in map(decided.grid.named, accepted):
        counts.update(decided.list_new(manifest, views, interval))
    for at, each in enumerate(decided.decisions):
        if count := counts[each]:
            yield f"  restated and not built yet, {count} interval{'s' * (count > 1)}: {each}"
        elif at >= decided.named and decided.is_joined(each):
            yield f"  restated for derived rows as soon as the stream runs: {each}"


def format_version_role(pipeline: CompiledPipeline, manifest: Manifest, view: CompiledView) -> str:
    """Describe what a version is for where there is more than the one of the definition."""
    said = ["served"] if manifest.serving.get(view.name) == view.id else []
    said += ["of the definition"] if view in pipeline.views else []
    said += ["not born yet: start the stream"] if view.id not in manifest.births else []
    return "" if said == ["served", "of the definition"] else f" ({', '.join(said) or 'live'})"


def find_interval_status(
    manifest: Manifest, view: str, interval: str, known: KnownIntervals, *, restated: bool
) -> Status:
    """Describe one interval's state from the manifest, what the log has brought, and what was decided since."""
    if manifest.is_building(view, interval):
        return Status.BUILDING
    published = manifest.published.get((view, interval))
    late = published and known.has_news(view, interval, published.epoch)
    return manifest.standing(published, news=bool(late or restated))


def format_desired_state(layout: Layout, now: datetime) -> str:
    """Describe what the stream should be doing and who has its lease."""
    if not Table.exists(layout.table("control")):
        return "never asked for"
    found = ControlTable.ensure(layout).read()
    wish = f"wanted {found.desired.value}"
    if found.actor:
        wish += f" by {found.actor}"
    if found.moved:
        return f"{wish}, moved to {found.moved.to} by {found.moved.actor} at {found.moved.at}"
    if found.lease is None:
        return f"{wish}, no lease"
    held = "held" if find_shown_lease(layout, found, now=now) else "run out"
    return f"{wish}, lease of {found.lease.holder} {held} (token {found.lease.token})"
