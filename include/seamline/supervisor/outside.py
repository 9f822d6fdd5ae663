"""A stream as others see it: what is known of it, whether it lives, how it is started and stopped from outside."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

import psutil

from seamline.lake.status.stream_words import read_words_elsewhere
from seamline.lake.storage.delta_table import EPOCH, Table
from seamline.lake.storage.layout import (
    Layout,
    home_folder,
    list_pipelines_apart,
    locate_tables,
    shared_warehouse,
)
from seamline.lake.store.locations import list_places
from seamline.lake.tables.control_poll import find_shown_lease
from seamline.lake.tables.control_table import TTL, Control, ControlTable, Desired, Lease
from seamline.model.errors import SetupError
from seamline.runtime.places import is_of_this_place
from seamline.runtime.sightings import Sighting, Standing
from seamline.supervisor.driver_process import end_session, rotate_log
from seamline.supervisor.stream_facts import read_last_heartbeat
from seamline.supervisor.stream_logs import print_with_time
from seamline.supervisor.supervisor_heartbeat import Heartbeat, ensure_stream_folder

AT_ONCE = 64
"""How many streams are stopped at the same time."""


@dataclass(frozen=True)
class Status:
    """What is known of a stream from outside."""

    desired: Desired
    """What the stream should do, as the control log has it."""
    actor: str
    """Who last wanted it so."""
    reason: str
    """Why; empty if nothing was said."""
    lease: Lease | None
    """The lease in the control table; None if nobody has one."""
    live: bool
    """Whether the lease's process may still run."""
    epoch: int
    """The newest committed epoch; -1 for none."""
    heartbeat: Heartbeat | None
    """The supervisor's last; None if there never was one."""

    @property
    def running(self) -> bool:
        """Whether the supervisor that spoke last is at work: here its process lives, elsewhere its lease."""
        beat, lease = self.heartbeat, self.lease
        if beat is None or beat.last:
            return False
        return beat.running or (self.live and lease is not None and lease.token == beat.token)


def start_detached(pipeline: str, env: Mapping[str, str]) -> int:
    """Start a supervisor that outlives us, with ``env`` over our own environment; return its process id."""
    output = ensure_stream_folder(home_folder(), pipeline) / "supervisor.log"
    rotate_log(output)
    with output.open("ab") as log:
        child = subprocess.Popen(
            [sys.executable, "-m", "seamline.supervisor", pipeline],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **env},
            start_new_session=True,
        )
    # Reaps it should it end while we still live.
    threading.Thread(target=child.wait, daemon=True).start()
    return child.pid


def read_stream_status(pipeline: str, *, now: datetime | None = None) -> Status:
    """Read what is known of a stream; nothing is made that is not there."""
    layout = locate_tables(pipeline)
    control = Control()
    if Table.exists(layout.table("control")):
        control = ControlTable.ensure(layout).read()
    epoch = Table.open(layout.table("master")).txn(EPOCH) if Table.exists(layout.table("master")) else None
    return Status(
        control.desired,
        control.actor,
        control.reason,
        control.lease,
        find_shown_lease(layout, control, now=now or datetime.now(UTC)) is not None,
        -1 if epoch is None else epoch,
        read_last_heartbeat(layout, read_words_elsewhere(layout)),
    )


def is_supervisor_ending(beat: Heartbeat) -> bool:
    """Return whether a supervisor that has said its last word is still there; it may be of this process."""
    return beat.supervisor.pid != os.getpid() and beat.supervisor.alive()


def stop_stream(layout: Layout, *, timeout: float = 120.0, actor: str = "cli", reason: str = "stop") -> bool:
    """Stop the stream and wait until it has; kill what has not ended in time and return False."""
    if not Table.exists(layout.table("control")):
        return True
    control = ControlTable.ensure(layout)
    control.want(Desired.STOPPED, actor=actor, reason=reason, now=datetime.now(UTC))
    until, sight = time.monotonic() + timeout, Sighting(TTL.total_seconds())
    while True:
        beat = Heartbeat.read(home_folder(), layout.pipeline)
        running = beat is not None and (beat.running or is_supervisor_ending(beat))
        standing = sight.look(lambda: control.read().lease)
        if not running and standing is Standing.FREE:
            end_leftover(layout.pipeline)
            return True
        if time.monotonic() > until:
            break
        time.sleep(0.2)
    if beat and beat.running:
        end_session(beat.supervisor.pid)
    end_leftover(layout.pipeline)
    return False


def list_shared_layouts() -> list[Layout]:
    """List what anybody may have wanted to run over the shared warehouse: streams, and the resident driver."""
    apart = list_pipelines_apart()
    return [
        locate_tables(control.parent.name)
        for control in list_places(shared_warehouse(), "*/control")
        if control.is_dir() and control.parent.name not in apart
    ]


def list_own_layouts() -> list[Layout]:
    """List the pipelines that have a warehouse of their own."""
    own = []
    for name in list_pipelines_apart():
        # Where nobody knows a place there is nothing to be told to stop: others are not to go on for that.
        with suppress(SetupError):
            own.append(locate_tables(name))
    return own


def stop_all(*, timeout: float = 60.0) -> None:
    """Stop whatever runs over our warehouses, side by side, and end the supervisors of SEAMLINE_HOME that are left.

    One that was started a moment ago has neither lease nor heartbeat yet. If a warehouse is away, all else is stopped
    before that is raised.
    """
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="stop") as side_by_side:
        listed = side_by_side.submit(list_shared_layouts)
        layouts = [*list_own_layouts(), *([] if listed.exception() else listed.result())]
        stopped = [side_by_side.submit(stop_stream, each, timeout=timeout) for each in layouts]
    end_supervisors()
    listed.result()
    for asked in stopped:
        asked.result()


def end_supervisors() -> None:
    """End the supervisors of SEAMLINE_HOME in this place."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            mine = process.environ().get("SEAMLINE_HOME") == str(home_folder())
            if mine and is_of_this_place(process.pid) and "seamline.supervisor" in process.cmdline():
                end_session(process.pid)


def end_leftover(pipeline: str) -> None:
    """End the driver of a supervisor that died: it is fenced off, but takes up memory."""
    last = Heartbeat.read(home_folder(), pipeline)
    if last and last.driver and last.driver.alive():
        print_with_time(f"ending the driver {last.driver.pid} that an earlier supervisor left")
        end_session(last.driver.pid)
