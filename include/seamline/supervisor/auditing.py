"""An audit of a pipeline's log: the tables, the ledger and Kafka brought together, and what is wrong with them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from seamline.kafka.connections import KafkaConnection, read_airflow_connection
from seamline.kafka.present_offsets import find_present_offsets
from seamline.kafka.topic_ends import TopicEnds, ends_of
from seamline.kernel.refused_places import place_refused_records
from seamline.kernel.restated_rows import open_reprocessing
from seamline.lake.audit.answer_accuracy import last_intervals, measure_answer_accuracy
from seamline.lake.audit.counted_intervals import count_intervals
from seamline.lake.audit.recounted import recount_states
from seamline.lake.audit.volumes import check_published_generations
from seamline.lake.read.sinks.shown_rows import StartRange
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.committed_log import CommittedLog
from seamline.lake.tables.decided import find_connection
from seamline.lake.tables.view_versions import add_live_versions, find_served_version, find_view
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.counts.counting_sources import list_counting_sources
from seamline.model.protocol.accuracy import Accuracy
from seamline.model.protocol.audit import (
    Audit,
    Finding,
    LaneEvidence,
    ViewAudit,
    audit_lane,
    by_interval,
    list_miscounted_epochs,
    ranges_of,
)
from seamline.model.protocol.holes import list_end_offsets
from seamline.model.protocol.offsets import Lane
from seamline.model.time.intervals import Interval
from seamline.plan.wording.counts_text import format_counted_interval, list_count_findings
from seamline.sinks.audit.made_audits import audit_all_sinks, list_recorded_audits
from seamline.sinks.audit.sink_audit import EVERYTHING
from seamline.supervisor.counts.taking import describe_taking
from seamline.supervisor.sources.source_ends import ask_source_ends

ANSWERS_WITHIN = 8.0


def audit(
    pipeline: CompiledPipeline,
    layout: Layout,
    *,
    span: Interval | None = None,
    actor: str = "",
    sinks: bool = False,
    env: Mapping[str, str] = os.environ,
) -> Audit:
    """Audit all that was ever read, or what brought rows of the intervals of a span; with ``sinks`` their targets too.

    Raises NotFound without a master, KafkaUnavailable, TopicMissing, BadRange for a span off the grid.
    """
    began = datetime.now(UTC)
    log = CommittedLog.pin(pipeline, layout, span)
    definition, ask = pipeline.definition, partial(ends_of, timeout=ANSWERS_WITHIN)
    ends = ask_source_ends(definition, layout, env, ask)
    name = find_connection(definition.connection, layout)
    connection = read_airflow_connection(name, env) if definition.kafka_topics else None
    asked = [probe_missing_offsets(each, connection, ends) for each in evidence_of(log, ends)]
    if any(each.askable for each in asked):
        # What retention has deleted while Kafka was asked is not there, and nobody knows what it was.
        ends = ask_source_ends(definition, layout, env, ask)
        asked = [replace(each, kept=find_retained_offsets(ends, each.lane)) for each in asked]
    judged = [audit_lane(each) for each in asked]
    rows = log.rows()
    reasons: dict[str, int] = {}
    for counted in rows.refused.values():
        for reason, count in counted.items():
            reasons[reason] = reasons.get(reason, 0) + count
    findings = [finding for _, found in judged for finding in found] + list_miscounted_epochs(
        log.epochs, rows
    )
    views = []
    for view in add_live_versions(pipeline, layout).views:
        recount = recount_states(pipeline, view, layout, log, partial(open_reprocessing, pipeline, layout))
        generations, wrong = check_published_generations(pipeline, view, layout, span)
        views.append(ViewAudit(view.id, recount.until, recount.states, generations))
        findings += [*recount.findings, *wrong]
    told, wrong_counts = audit_producers(pipeline, layout, span, env)
    findings += wrong_counts
    windows = StartRange(span.start, span.end) if span else EVERYTHING
    kept, wrong_sinks = (
        audit_all_sinks(pipeline, layout, actor=actor, span=windows, env=env)
        if sinks
        else (list_recorded_audits(pipeline, layout), [])
    )
    findings += wrong_sinks
    return Audit(
        pipeline=pipeline.name,
        at=began,
        seconds=(datetime.now(UTC) - began).total_seconds(),
        actor=actor,
        epoch=log.epoch,
        lanes=tuple(lane for lane, _ in judged),
        intervals=by_interval(log.epochs, rows),
        reasons=reasons,
        views=tuple(views),
        findings=tuple(findings),
        span=str(span) if span else "",
        producers=tuple(told),
        accuracy=measure_served_accuracy(pipeline, layout, span),
        sinks=tuple(kept),
    )


def measure_served_accuracy(
    pipeline: CompiledPipeline, layout: Layout, span: Interval | None
) -> dict[str, tuple[Accuracy, ...]]:
    """Measure how far early answers of each served view were from the final ones, as ``seamline accuracy`` does."""
    found = {}
    for view in pipeline.views:
        owner, served = find_served_version(pipeline, layout, find_view(pipeline, layout, view.name))
        if looked_at := span or last_intervals(owner, layout):
            found[view.name] = tuple(measure_answer_accuracy(owner, served, layout, looked_at))
    return {name: measured for name, measured in found.items() if measured}


def audit_producers(
    pipeline: CompiledPipeline, layout: Layout, span: Interval | None, env: Mapping[str, str]
) -> tuple[list[str], list[Finding]]:
    """Compare what was read with what producers say; name what is not complete, and what certificates say else."""
    told, findings = describe_taking(pipeline, layout, env=env), list[Finding]()
    place = partial(place_refused_records, layout)
    for each in count_intervals(pipeline, layout, span, place) if list_counting_sources(pipeline) else ():
        if each.changed or (each.closed and not each.counts.complete):
            said = each.certified if each.changed else None
            told += format_counted_interval(
                pipeline.name, each.interval, each.counts, said, each.run, closed=each.closed
            )
        if each.alarming:
            findings += list_count_findings(each.counts)
    return told, findings


def evidence_of(log: CommittedLog, ends: TopicEnds) -> list[LaneEvidence]:
    """Bring together what is known of every lane that Kafka has, or was read, or is in the log."""
    read, passed = ranges_of(log.epochs)
    held = {lane: (runs, twice) for lane, runs, twice in log.offsets()}
    reached = list_end_offsets(log.log)
    # Of a span only the lanes of which it has something: the others have nothing to be compared with.
    lanes = {*read, *passed, *held, *(ends.ends if log.span is None else ())}
    return [
        LaneEvidence(
            lane,
            find_retained_offsets(ends, lane),
            read.get(lane, ()),
            passed.get(lane, ()),
            held.get(lane, ((), {}))[0],
            held.get(lane, ((), {}))[1],
            read_to=reached.get(lane),
        )
        for lane in sorted(lanes)
    ]


def find_retained_offsets(ends: TopicEnds, lane: Lane) -> tuple[int, int] | None:
    """Find what Kafka has of a lane; None if it is gone."""
    return (ends.beginnings[lane], ends.ends[lane]) if lane in ends.ends else None


def probe_missing_offsets(
    evidence: LaneEvidence, connection: KafkaConnection | None, ends: TopicEnds
) -> LaneEvidence:
    """Ask Kafka for what was read and is not in the log; of a table each offset that an epoch counts is a row."""
    if evidence.lane.of_table:
        return replace(evidence, there=tuple(evidence.absent))
    if not evidence.askable or connection is None:
        return evidence
    place = ends.names[evidence.lane.topic_id], evidence.lane.partition
    return replace(evidence, there=tuple(find_present_offsets(connection, {place: evidence.askable})[place]))
