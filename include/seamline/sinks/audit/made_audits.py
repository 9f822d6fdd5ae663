"""Audits of sinks that are written down: of one, and of all of a pipeline as a part of its audit."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import islice

from seamline.lake.read.sinks.shown_rows import StartRange
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.sinks.recorded_audits import read_verdicts, record_verdict
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.definition.sinks.sink_base import Sink
from seamline.model.errors import SeamlineError
from seamline.model.protocol.audit import Finding, Wrong
from seamline.model.time.intervals import format_utc_instant
from seamline.plan.stream.sink_verdicts import SinkVerdict, find_open_verdict
from seamline.sinks.audit.audit_words import format_example
from seamline.sinks.audit.opened_target import Opening
from seamline.sinks.audit.sink_audit import EVERYTHING, SinkAudit, audit_sink
from seamline.sinks.targets import open_target

TOLD = 10
"""Rows that are named of an audit that is written down."""


def make_sink_audit(
    pipeline: CompiledPipeline,
    layout: Layout,
    sink: Sink,
    *,
    actor: str,
    span: StartRange = EVERYTHING,
    opening: Opening = open_target,
) -> SinkAudit:
    """Audit a sink, and write down who did and what was found; of one that has sent nothing there is nothing."""
    now = partial(datetime.now, UTC)
    found = audit_sink(pipeline, layout, sink, clock=now, span=span, opening=opening)
    if found.position is not None:
        record_verdict(layout, sink.id, make_verdict(found, actor))
    return found


def make_verdict(found: SinkAudit, actor: str) -> SinkVerdict:
    """Return what is written down of an audit."""
    assert found.position is not None
    start, end = (format_utc_instant(each) if each else "" for each in (found.span.start, found.span.end))
    return SinkVerdict(
        at=format_utc_instant(found.at),
        actor=actor,
        start=start,
        end=end,
        version=found.position.version if found.position.version >= 0 else None,
        held=found.held,
        wanted=found.wanted,
        found=dict(found.found),
        lines=tuple(map(format_example, islice(found.examples, TOLD))),
        ended=format_utc_instant(datetime.now(UTC)),
    )


def audit_all_sinks(
    pipeline: CompiledPipeline,
    layout: Layout,
    *,
    actor: str,
    span: StartRange = EVERYTHING,
    env: Mapping[str, str] = os.environ,
) -> tuple[list[str], list[Finding]]:
    """Audit each sink of a view: a line of each, and what is wrong. One that cannot be read is a finding."""
    lines, findings = [], []
    opening = partial(open_target, env=env)
    for sink in list_audited_sinks(pipeline):
        place = f"sink {sink.id}"
        try:
            found = make_sink_audit(pipeline, layout, sink, actor=actor, span=span, opening=opening)
        except Exception as error:  # noqa: BLE001 - drivers of other systems fail as they like
            findings.append(Finding(Wrong.SINK, place, 0, describe_audit_failure(error)))
            continue
        if found.position is None:
            lines.append(f"{place}: nothing has been sent yet")
            continue
        verdict = make_verdict(found, actor)
        lines.append(f"{place}: version {found.position.version}: {verdict.said}")
        if not found.passed:
            said = "; ".join([verdict.said, *verdict.lines])
            findings.append(Finding(Wrong.SINK, place, sum(found.found.values()), said))
    return lines, findings


def describe_audit_failure(error: Exception) -> str:
    """Say in a line why a sink could not be audited."""
    said = error.message if isinstance(error, SeamlineError) else f"{type(error).__name__}: {error}"
    return f"it cannot be audited: {said.partition(chr(10))[0]}"


def list_recorded_audits(pipeline: CompiledPipeline, layout: Layout) -> list[str]:
    """Say of each sink of a view when it was audited last, and what of it is still to be mended."""
    return [
        f"sink {each.id}: {format_last(read_verdicts(layout, each.id))}"
        for each in list_audited_sinks(pipeline)
    ]


def format_last(verdicts: Sequence[SinkVerdict]) -> str:
    """Say what audits of a sink have found, the newest first."""
    if not verdicts:
        return "never audited"
    last, still = verdicts[0], find_open_verdict(verdicts)
    told = f"audited at {last.at}: {last.said}"
    return told if still in (None, last) else f"{told}; at {still.at}: {still.said}, not audited again since"


def list_audited_sinks(pipeline: CompiledPipeline) -> list[Sink]:
    """List the sinks of a pipeline that keep what a view serves."""
    return [each for each in pipeline.definition.sinks if isinstance(each, Sink)]
