"""When to send that a stream is not as it should be, and when that it is again: once each.

Nothing here reads or sends anything: findings and what was decided before come in, decisions go out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from seamline.model.protocol.alert import AlertKind, AlertStatement, Key, Standing
from seamline.model.time.intervals import format_utc_instant
from seamline.plan.spelling import format_duration, last_line
from seamline.plan.stream.ask_counts import describe_silence
from seamline.plan.stream.observation import Observation
from seamline.plan.stream.rule_counts import describe_waiting_rules
from seamline.plan.stream.stream_state import Actual


@dataclass(frozen=True)
class Patience:
    """How long an alert waits, both ways: nothing flaps."""

    before: timedelta = timedelta()
    """How long something must be so before it is sent."""
    after: timedelta = timedelta()
    """How long it must be over before that is sent."""


PATIENCE: Mapping[AlertKind, Patience] = {
    AlertKind.STALE: Patience(timedelta(minutes=2), timedelta(seconds=30)),
    AlertKind.LAG: Patience(timedelta(minutes=2), timedelta(minutes=1)),
    AlertKind.HOLE: Patience(),
    AlertKind.VIEW: Patience(timedelta(minutes=1)),
    AlertKind.LEASE: Patience(),
    AlertKind.GAVE_UP: Patience(),
    AlertKind.DISK: Patience(),
    AlertKind.CLOCK: Patience(timedelta(minutes=1)),
    AlertKind.RULES: Patience(timedelta(minutes=1)),
    AlertKind.ASKS: Patience(timedelta(seconds=30), timedelta(seconds=30)),
    AlertKind.EXPIRY: Patience(),
    AlertKind.SINK: Patience(),
}
DOWN = (Actual.GONE, Actual.STUCK, Actual.WAITING, Actual.STARTING)
REFUSED_FOR = timedelta(minutes=10)
FULL, FREE = 0.05, 0.07
"""Shares of the disk that are free: below the one it is sent, above the other it is over."""

ASTRAY = 100
"""Records of one partition: a few wrong clocks are everybody's."""

Findings = Mapping[AlertKind, Mapping[str, str] | None]
"""By kind the subjects that it concerns, with a message; None where that is unknown."""


def find_stream_problems(found: Observation) -> Findings:
    """Say what is wrong with a stream."""
    return {
        AlertKind.STALE: find_stream_down(found),
        AlertKind.LAG: find_growing_lag(found),
        AlertKind.HOLE: None if found.holes is None else single_finding("; ".join(found.holes)),
        AlertKind.VIEW: find_views_behind(found),
        AlertKind.LEASE: single_finding(find_refused_supervisor(found)),
        AlertKind.GAVE_UP: single_finding(describe_giving_up(found)),
        AlertKind.DISK: find_full_disk(found.disk_free),
        AlertKind.CLOCK: find_wrong_clocks(found),
        AlertKind.RULES: find_waiting_rules(found),
        AlertKind.ASKS: find_silent_systems(found),
        AlertKind.EXPIRY: None if found.ageing is None else single_finding("; ".join(found.ageing)),
        AlertKind.SINK: find_wrong_sinks(found),
    }


def find_growing_lag(found: Observation) -> Mapping[str, str] | None:
    """Say that a stream that is wanted reads no more than arrives."""
    lag = found.lag
    if lag.catch_up is None:
        return None
    if found.desired != "running" or not lag.growing:
        return {}
    return single_finding(
        f"{lag.records:,} records, {lag.arriving:,.0f} a second arrive and {lag.drained:,.0f} are read"
    )


def find_views_behind(found: Observation) -> Mapping[str, str] | None:
    """Name the views that are behind, with their error."""
    if found.epoch is None:
        return None
    return {
        view: f"complete to epoch {each.frontier} of {found.epoch}{f': {each.error}' if each.error else ''}"
        for view, each in found.behind.items()
    }


def describe_giving_up(found: Observation) -> str:
    """Say that the supervisor has ended after too many failures."""
    if found.desired != "running" or not found.given_up:
        return ""
    return f"{count_failures(found.strikes or 0)}: {last_line(found.last_error)}"


def count_failures(row: int) -> str:
    """Say how many failures there were in a row: by its restart policy a supervisor may give up after the first."""
    return f"{row} failures in a row" if row > 1 else "1 failure"


def find_stream_down(found: Observation) -> Mapping[str, str] | None:
    """Say that a stream is wanted and down, or up and stuck."""
    if found.actual is Actual.UNKNOWN:
        return None
    if found.desired != "running" or found.actual not in DOWN:
        return {}
    last = (
        f", last epoch {format_utc_instant(found.committed_at.replace(microsecond=0))}"
        if found.committed_at
        else ""
    )
    lag = f", {found.lag.records:,} records to read" if found.lag.records else ""
    return single_finding(f"{found.actual}{f' ({found.detail})' if found.detail else ''}{last}{lag}")


def find_refused_supervisor(found: Observation) -> str:
    """Say that a second supervisor was refused, or one has lost its lease, a while ago."""
    if found.refused is None or found.at - found.refused > REFUSED_FOR:
        return ""
    return f"a supervisor was refused at {format_utc_instant(found.refused.replace(microsecond=0))}: {found.refusal}"


def find_full_disk(free: float | None) -> Mapping[str, str] | None:
    """Say that the disk is nearly full; between the two bounds it stays as it was."""
    if free is None or FULL <= free <= FREE:
        return None
    return single_finding(f"{free:.1%} of the warehouse's disk is free" if free < FULL else "")


def find_wrong_clocks(found: Observation) -> Mapping[str, str] | None:
    """Name the partitions into which someone writes with a clock that is wrong, or makes up event times."""
    if found.astray is None:
        return None
    return {
        f"{topic}/{partition}": f"{records:,} records of the newest epochs were refused for their event times"
        for (topic, partition), records in found.astray.items()
        if records >= ASTRAY
    }


def find_waiting_rules(found: Observation) -> Mapping[str, str] | None:
    """Name the look-ups for which a topic has more rules than there is room for."""
    if found.rules is None:
        return None
    waiting = {name: each.waiting for name, each in found.rules.items() if each.waiting}
    return {name: describe_waiting_rules(name, count) for name, count in waiting.items()}


def find_silent_systems(found: Observation) -> Mapping[str, str] | None:
    """Name the questions that another system does not answer."""
    if found.asks is None:
        return None
    if found.actual is not Actual.RUNNING:
        return {}
    return {name: said for name, each in found.asks.items() if (said := describe_silence(each, found.at))}


def find_wrong_sinks(found: Observation) -> Mapping[str, str] | None:
    """Name the sinks of which an audit found something wrong that no later one has found to be right."""
    if found.sinks is None:
        return None
    return {each.name: each.found_wrong for each in found.sinks if each.wrong}


def single_finding(message: str) -> Mapping[str, str]:
    """Return a finding without a subject; none for no message."""
    return {"": message} if message else {}


def decide_alerts(
    found: Findings, before: Mapping[Key, Standing], *, now: datetime, last: bool = False
) -> tuple[dict[Key, Standing], list[AlertStatement]]:
    """Decide what is sent now, and return what is known of every alert from now on.

    What is unknown stays as it was. An alert that is over and sent is forgotten. At the last look of someone
    after whom perhaps nobody looks, what is over is over at once.
    """
    keys = {*before, *((kind, subject) for kind, subjects in found.items() for subject in subjects or ())}
    after: dict[Key, Standing] = {}
    told: list[AlertStatement] = []
    for key in sorted(keys):
        kind, subject = key
        standing = before.get(key, Standing(kind, subject, ""))
        subjects = found.get(kind)
        if subjects is not None:
            standing, said = update_alert(standing, subjects.get(subject), now, last)
            told += said
        if standing.raised or standing.since:
            after[key] = standing
    return after, told


def update_alert(
    standing: Standing, message: str | None, now: datetime, last: bool
) -> tuple[Standing, list[AlertStatement]]:
    """Evaluate one alert; a message says that it is raised."""
    kind, holds = standing.kind, message is not None
    if holds:
        standing = replace(standing, message=message or "")
    if holds == standing.raised:
        return replace(standing, since=None), []
    since = standing.since or now
    patience = PATIENCE[kind].before if holds else PATIENCE[kind].after
    if now - since < patience and (holds or not last):
        return replace(standing, since=since), []
    lasted = (
        f"over after {format_duration((now - standing.at).total_seconds())}: "
        if standing.at and not holds
        else ""
    )
    statement = AlertStatement(kind, standing.subject, holds, f"{lasted}{standing.message}", now)
    return replace(standing, raised=holds, at=now if holds else None, since=None), [statement]
