"""What has happened to a pipeline that people may have to account for: who did it, when and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

import pyarrow.compute as pc

from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.audits_table import audits_of
from seamline.lake.tables.control_table import PASSING, RELEASED
from seamline.lake.tables.manifest_table import manifest_of, parse_statements
from seamline.lake.tables.sinks.recorded_audits import read_verdicts
from seamline.lake.tables.sinks.recorded_positions import list_copied_sinks
from seamline.model.protocol.audit import Audit, Finding, Wrong
from seamline.model.protocol.control import Desired
from seamline.model.protocol.manifest import Act, How, Manifest, Statement
from seamline.model.time.intervals import parse_moment
from seamline.plan.spelling import format_quantity
from seamline.plan.stream.sink_verdicts import SinkVerdict

AUDITS = 20
"""Audits that are looked at."""
DECIDED = frozenset({"hole accepted", "passed over", "fill"})
"""Decisions about records that are lost or were passed over."""
ORDERS: Mapping[str, str] = {Desired.RUNNING: "start", Desired.STOPPED: "stop", Desired.PAUSED: "pause"}
"""What it is called to say that a stream should be so."""


class Happening(StrEnum):
    """What kind of thing it was."""

    DRIVER = "driver"
    DECISION = "decision"
    HOLE = "hole"
    CORRECTION = "correction"
    ROLLBACK = "rollback"
    DESPITE = "published by a person"
    WITHDRAWN = "withdrawn"
    VERSION = "version"
    AUDIT = "audit"
    ALERT = "alert"


@dataclass(frozen=True)
class Happened:
    """One thing that has happened."""

    at: datetime
    """When, UTC."""
    kind: Happening
    """What kind of thing."""
    what: str
    """What happened, in a few words."""
    who: str = ""
    """Who did it: a person, a run, or the process that did; empty where nobody is known."""
    why: str = ""
    """The reason that was given."""
    interval: str = ""
    """The id of the first interval that it is about, if there is one."""
    view: str = ""
    """The view that it is about, if it is about one."""


def list_happenings(layout: Layout, most: int) -> list[Happened]:
    """List the newest, newest first: decisions, starts, corrections, rollbacks, flips and what audits found.

    Starts are known since upkeep last made room in the control table, and decisions for ever.
    """
    found = [*list_decisions(layout), *list_flips(layout), *list_findings(layout)]
    found += list_corrections(manifest_of(layout))
    return sorted(found, key=lambda each: each.at, reverse=True)[:most]


def list_decisions(layout: Layout) -> list[Happened]:
    """List what people and processes have decided about a stream."""
    if not Table.exists(layout.table("control")):
        return []
    rows = Table.open(layout.table("control")).read(["state", "actor", "reason", "at"]).to_pylist()
    return [
        Happened(
            row["at"], kind_of(row["state"]), word_of(row["state"]), row["actor"] or "", row["reason"] or ""
        )
        for row in rows
        if row["at"] is not None
    ]


def kind_of(state: str) -> Happening:
    """Return what kind of thing a row of the control table tells."""
    if state in PASSING:
        return Happening.DRIVER
    return Happening.HOLE if state in DECIDED else Happening.DECISION


def word_of(state: str) -> str:
    """Return what a row of the control table tells, in words."""
    if state in PASSING:
        return "driver stopped" if state == RELEASED else "driver started"
    return ORDERS.get(state, state)


def list_flips(layout: Layout) -> list[Happened]:
    """List when another version of a view was served, and when a generation was taken back without another."""
    if not Table.exists(layout.table("manifest")):
        return []
    acts = {Act.FLIP.value: Happening.VERSION, Act.WITHDRAW.value: Happening.WITHDRAWN}
    dataset = Table.open(layout.table("manifest")).handle.to_pyarrow_dataset()
    rows = dataset.to_table(filter=pc.field("act").isin([*acts]))
    return [
        Happened(
            at=each.at,
            kind=acts[each.act.value],
            what=f"{each.view} is served"
            if each.act is Act.FLIP
            else f"{each.interval} of {each.view} is not served",
            who=each.actor or each.run,
            why=each.reason,
            interval=each.interval,
            view=name_of(each),
        )
        for each in parse_statements(rows)
        if each.at is not None
    ]


def list_corrections(manifest: Manifest) -> list[Happened]:
    """List what was published in the place of something else, a line for each run and view."""
    groups: dict[tuple[str, int, Happening], list[Statement]] = {}
    for history in manifest.history.values():
        for at, each in enumerate(history):
            kind = kind_of_publication(each, first=at == 0)
            if kind and each.at is not None:
                groups.setdefault((each.view, each.seq, kind), []).append(each)
    return [describe_group(kind, some) for (_, _, kind), some in groups.items()]


def kind_of_publication(statement: Statement, *, first: bool) -> Happening | None:
    """Return what a publication tells beside that an interval was built: None for the first of an interval."""
    match statement.how:
        case How.ROLLBACK:
            return Happening.ROLLBACK
        case How.DESPITE:
            return Happening.DESPITE
    return None if first else Happening.CORRECTION


def describe_group(kind: Happening, some: Iterable[Statement]) -> Happened:
    """Describe publications of one view by one run."""
    ordered = sorted(some, key=lambda each: each.interval)
    one = ordered[0]
    assert one.at is not None
    span = (
        one.interval
        if len(ordered) == 1
        else f"{format_quantity(len(ordered), 'interval')} from {one.interval}"
    )
    view = name_of(one)
    return Happened(one.at, kind, f"{view}: {span}", one.actor or one.run, one.reason, one.interval, view)


def list_findings(layout: Layout) -> list[Happened]:
    """List what the newest audits found to be wrong, and the last of each sink: what both have is told once."""
    verdicts = {
        f"sink {sink}": [each for each in read_verdicts(layout, sink) if not each.passed]
        for sink in list_copied_sinks(layout)
    }
    found = [
        Happened(audit.at, Happening.AUDIT, str(finding), audit.actor)
        for audit in audits_of(layout, AUDITS)
        for finding in audit.findings
        if not any(is_found_by(audit, finding, each) for each in verdicts.get(finding.place, ()))
    ]
    return found + [describe_verdict(place, each) for place, some in verdicts.items() for each in some]


def is_found_by(audit: Audit, finding: Finding, verdict: SinkVerdict) -> bool:
    """Return whether an audit of a log found in a sink what is written down of the sink, too."""
    within = audit.at <= parse_moment(verdict.at) <= audit.at + timedelta(seconds=audit.seconds)
    return finding.wrong is Wrong.SINK and finding.count > 0 and within


def describe_verdict(place: str, verdict: SinkVerdict) -> Happened:
    """Describe an audit of a sink that found something wrong."""
    said = str(Finding(Wrong.SINK, place, sum(verdict.found.values()), verdict.said))
    return Happened(parse_moment(verdict.at), Happening.AUDIT, said, verdict.actor, "; ".join(verdict.lines))


def name_of(statement: Statement) -> str:
    """Return the name of a statement's view, without its version."""
    return statement.view.partition("/")[0]
