"""What a stream is doing, decided from what its supervisor, its driver and its lease say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from seamline.model.time.intervals import format_utc_instant

SILENT = timedelta(seconds=30)
"""A supervisor that has not beaten for so long, six times its pace, does nothing."""


class Actual(StrEnum):
    """What a stream is doing, as far as this host can tell.

    WAITING is before the next start after a failure, STUCK runs without getting on, GONE is wanted and has no
    supervisor, UNKNOWN cannot be seen from here: it runs elsewhere unheard, or what it said cannot be read.
    """

    STOPPED = "stopped"
    STARTING = "starting"
    RUNNING = "running"
    PAUSED = "paused"
    STOPPING = "stopping"
    WAITING = "waiting"
    STUCK = "stuck"
    GONE = "gone"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Leased:
    """A lease that has not run out."""

    host: str
    """Its holder's host, empty where that is not known."""
    token: int
    """Its fencing token."""
    elsewhere: bool = False
    """Whether its holder is of another place than ours, which may have the same host name."""


@dataclass(frozen=True)
class Supervised:
    """What a supervisor last said."""

    host: str
    """Its host."""
    running: bool
    """Whether it lives: here its process, elsewhere its lease."""
    state: str
    """Its state in words."""
    token: int
    """Its fencing token."""
    at: datetime
    """When, UTC."""


@dataclass(frozen=True)
class Driven:
    """What a driver last said."""

    token: int
    """Its fencing token."""
    state: str
    """Its state in words."""
    at: datetime
    """When, UTC."""
    alive: bool
    """Whether it lives: here its process, elsewhere its lease."""
    caught_up: bool = False
    """Whether it had read everything then."""
    up: datetime | None = None
    """Since when it reads, None before the query runs."""


@dataclass(frozen=True)
class Facts:
    """All that decides what a stream is doing."""

    host: str
    """This host."""
    wanted: bool
    """Whether it is wanted to run."""
    lease: Leased | None = None
    """The lease, None where there is none."""
    supervisor: Supervised | None = None
    """What its supervisor last said, None where there is none."""
    driver: Driven | None = None
    """What its driver last said, None where there is none."""
    unread: str = ""
    """Why something that was there could not be read; empty where all was."""
    committed_at: datetime | None = None
    """When the last epoch was committed, None for none."""
    lag: int | None = None
    """Records that are not read, None where that is not known."""
    waiting: datetime | None = None
    """When the oldest of them was appended, None where that is not known."""
    stuck_after: timedelta = timedelta(minutes=2)
    """How long a driver with records to read may commit no epoch."""


def actual_of(facts: Facts, *, now: datetime) -> tuple[Actual, str]:
    """Decide what a stream is doing, and say why where the word does not."""
    lease, found = facts.lease, facts.supervisor
    if lease and lease.elsewhere and not (found and found.running and found.token == lease.token):
        return Actual.UNKNOWN, facts.unread or describe_elsewhere(facts.host, lease.host)
    if facts.unread:
        return Actual.UNKNOWN, facts.unread
    if found and lease and lease.elsewhere:
        word, why = decide_supervised_state(facts, found, now)
        return word, why or describe_elsewhere(facts.host, lease.host)
    if found and found.running:
        return decide_supervised_state(facts, found, now)
    if lease and not (found and found.token == lease.token) and not is_driver_alive(facts):
        return Actual.STARTING, "its supervisor has the lease and has not said anything yet"
    if is_driver_alive(facts):
        return Actual.RUNNING, "its driver has no supervisor"
    if not facts.wanted:
        return Actual.STOPPED, ""
    if found is None:
        return Actual.GONE, "no supervisor was ever started here"
    why = found.state if found.state not in ("running", "starting") else "died"
    return Actual.GONE, f"its supervisor {why} at {format_utc_instant(found.at)}"


def describe_elsewhere(here: str, host: str) -> str:
    """Say where a stream runs that cannot be seen from here."""
    if not host:
        return "its lease is held on another machine"
    return (
        f"runs on host {host}" if host != here else f"runs in another container or machine of the name {host}"
    )


def is_driver_alive(facts: Facts) -> bool:
    """Return whether the driver lives; it may have outlived its supervisor, for a moment."""
    return facts.driver is not None and facts.driver.alive and facts.driver.state != "stopped"


def decide_supervised_state(facts: Facts, found: Supervised, now: datetime) -> tuple[Actual, str]:
    """Decide for a stream whose supervisor lives."""
    # Of one that cannot be seen the lease says whether it lives: its words may be late, by another clock.
    if now - found.at > SILENT and not (facts.lease and facts.lease.elsewhere):
        return Actual.STUCK, f"its supervisor has not beaten since {format_utc_instant(found.at)}"
    word = found.state.partition(" ")[0]
    if word in ("starting", "restarting"):
        return Actual.STARTING, ""
    if word == "stopping":
        return Actual.STOPPING, ""
    if word == "waiting":
        return Actual.WAITING, found.state
    if word != "running":
        return Actual.UNKNOWN, found.state
    driver = facts.driver
    if driver is None or driver.token != found.token:
        return Actual.STARTING, ""
    if driver.state == "paused":
        return Actual.PAUSED, ""
    since = max(list_progress_times(facts, driver))
    if facts.lag and now - since > facts.stuck_after:
        return Actual.STUCK, f"no epoch since {format_utc_instant(since)}, with {facts.lag} records to read"
    return Actual.RUNNING, ""


def list_progress_times(facts: Facts, driver: Driven) -> Iterator[datetime]:
    """List the instants from which on there was something to do that was not done."""
    yield driver.up or driver.at
    if driver.caught_up:
        yield driver.at
    if facts.committed_at:
        yield facts.committed_at
    if facts.waiting:
        yield facts.waiting
