"""What a stream's lease, supervisor and driver say, as the facts that decide what it is doing."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from seamline.lake.status.stream_words import DRIVER, SUPERVISOR
from seamline.lake.storage.layout import Layout, home_folder
from seamline.lake.store.shared_objects import Row
from seamline.lake.tables.control_poll import find_shown_lease
from seamline.lake.tables.control_table import Control
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.offsets import Lane
from seamline.plan.stream.observation import Lag, ViewBehind, compute_record_rates
from seamline.plan.stream.stream_state import Driven, Leased, Supervised
from seamline.runtime.places import host_name
from seamline.runtime.processes import is_local_process
from seamline.supervisor.driver_report import DriverReport
from seamline.supervisor.supervisor_heartbeat import Heartbeat


def find_live_lease(layout: Layout, control: Control | None, now: datetime) -> Leased | None:
    """Find the lease that has not run out; a holder is named by host, process and time."""
    lease = find_shown_lease(layout, control, now=now) if control else None
    if lease is None:
        return None
    host, colon, _ = lease.holder.partition(":")
    # A process that nobody knows by more than its host is taken for one of it: this is for people.
    elsewhere = not is_local_process(lease.process) if lease.process else bool(colon) and host != host_name()
    return Leased(host if colon else "", lease.token, elsewhere)


def read_last_heartbeat(layout: Layout, words: Row | None) -> Heartbeat | None:
    """Read what a stream's supervisor last said, here or by the words of another machine; None if none ever did."""
    if words:
        return Heartbeat.parse(words[SUPERVISOR])
    return Heartbeat.read(home_folder(), layout.pipeline)


def read_last_report(layout: Layout, words: Row | None) -> DriverReport | None:
    """Read what a stream's driver last said, here or by the words of another machine; None if none ever did."""
    if words:
        return DriverReport.parse(words[DRIVER]) if words[DRIVER] else None
    return DriverReport.read(home_folder(), layout.pipeline)


def summarize_supervisor(beat: Heartbeat | None, lease: Leased | None) -> Supervised | None:
    """Summarize what a supervisor said, and whether it lives: elsewhere it does while its lease does."""
    if beat is None:
        return None
    running = beat.running or (is_held_elsewhere(lease, beat.token) and not beat.last)
    return Supervised(beat.supervisor.host, running, beat.state, beat.token, beat.at)


def summarize_driver(said: DriverReport | None, lease: Leased | None) -> Driven | None:
    """Summarize what a driver said, and whether it lives: elsewhere it does while its lease does."""
    if said is None:
        return None
    alive = said.alive or is_held_elsewhere(lease, said.token)
    return Driven(said.token, said.state, said.at, alive, not sum(said.lag.values()), said.up)


def is_held_elsewhere(lease: Leased | None, token: int) -> bool:
    """Return whether a lease with a token is held in another place, and not run out."""
    return lease is not None and lease.elsewhere and lease.token == token


def summarize_reported_lag(said: DriverReport | None) -> Lag:
    """Summarize the lag of the driver's last heartbeat, with its instant."""
    if said is None:
        return Lag()
    lanes = {}
    for text, count in said.lag.items():
        lane = Lane.parse(text)
        lanes[said.topics.get(lane.topic_id, lane.topic_id), lane.partition] = count
    records = sum(lanes.values())
    arriving, drained = compute_record_rates(said.earlier, said.reached) if said.reached else (None, None)
    return Lag(records, None if records else 0.0, said.at, False, lanes, arriving, drained)


def list_lagging_views(last: Epoch | None, said: DriverReport | None) -> Mapping[str, ViewBehind]:
    """List the views whose slices are not complete to the last epoch, with the error that the driver reports."""
    if last is None:
        return {}
    errors = said.errors if said else {}
    return {
        view: ViewBehind(at, errors.get(view, "")) for view, at in last.frontiers.items() if at != last.number
    }
