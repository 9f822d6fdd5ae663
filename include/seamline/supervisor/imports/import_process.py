"""Imports where no stream runs: a driver for them alone, under the stream's lease, seen through to its end."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from pathlib import Path

from seamline.lake.log.epoch_log import read_condensed_log
from seamline.lake.storage.layout import Layout, home_folder
from seamline.lake.tables.control_table import ControlTable, Desired
from seamline.lake.tables.decided import list_imports
from seamline.lake.tables.renewing import keep_renewing
from seamline.lineage.configuration import is_configured
from seamline.model.errors import LeaseHeld, SeamlineError, SparkFailed
from seamline.model.protocol.imported.imports import list_open_imports
from seamline.runtime.places import host_name
from seamline.runtime.processes import own_process_name
from seamline.supervisor.driver_process import Driver, read_log_tail
from seamline.supervisor.imports.import_listing import list_import_states
from seamline.supervisor.job_files import make_import_command
from seamline.supervisor.supervisor_heartbeat import ensure_stream_folder

RENEWED_EVERY, LOOKED_EVERY = 5.0, 1.0
IMPORTING = ":import"
"""How the holder of the lease is named that imports."""
GRACE = 60.0
"""Seconds in which a driver that is stopped may finish its epoch."""


def see_imports_through(
    pipeline: str,
    layout: Layout,
    tell: Callable[[str], None],
    *,
    ids: Collection[str] | None = None,
    halt: threading.Event | None = None,
    env: Mapping[str, str] = os.environ,
) -> None:
    """Wait until imports are done or closed, those of some ``ids`` or all; run them here where no stream runs.

    While a stream is paused, or nobody runs one that should be running, it waits without end. ``tell`` is told how far
    they are, in words, whenever that changes; ``halt`` ends the wait. Errors are those of ``take_part``.
    """
    halt = halt or threading.Event()
    while not take_part(pipeline, layout, tell, ids=ids, halt=halt, env=env):
        if halt.wait(LOOKED_EVERY):
            return


def take_part(
    pipeline: str,
    layout: Layout,
    tell: Callable[[str], None],
    *,
    ids: Collection[str] | None = None,
    halt: threading.Event | None = None,
    env: Mapping[str, str] = os.environ,
) -> bool:
    """Return whether imports, those of some ``ids`` or all, are done or closed; where no stream runs, do them before.

    LeaseHeld if somebody who neither runs a stream nor imports holds the lease; SparkFailed if the driver fails.
    """
    control = ControlTable.ensure(layout)
    if is_import_open(layout, ids) and control.read().desired not in (Desired.RUNNING, Desired.PAUSED):
        try:
            run_import_driver(
                pipeline, layout, control, lambda: tell(describe_progress(layout, ids)), halt, env
            )
        except LeaseHeld:
            found = control.read()
            if found.desired is not Desired.RUNNING and not (
                found.lease and found.lease.holder.endswith(IMPORTING)
            ):
                raise
    tell(describe_progress(layout, ids))
    if is_import_open(layout, ids):
        return False
    if ids and is_configured():
        from seamline.lineage.import_lineage import tell_ended_imports

        tell_ended_imports(layout, ids)
    return True


def say_who_imports(pipeline: str, layout: Layout) -> str:
    """Say who is waited for, if that is not this process; empty if nothing is to be done, or it is done here."""
    found = ControlTable.ensure(layout).read()
    if not is_import_open(layout) or found.desired not in (Desired.RUNNING, Desired.PAUSED):
        return ""
    if found.desired is Desired.PAUSED:
        return f"The stream of {pipeline} is paused: it imports once `seamline stream start {pipeline}` resumes it."
    if found.lease is None:
        return f"The stream of {pipeline} should be running but is not: it imports once it is up."
    return f"The stream of {pipeline} imports between its epochs, whether this command waits or not."


def is_import_open(layout: Layout, ids: Collection[str] | None = None) -> bool:
    """Return whether something of some imports, or of any, is to be registered, read or closed."""
    open_ = list_open_imports(read_condensed_log(layout), list_imports(layout))
    return any(ids is None or each.id in ids for each in open_)


def describe_progress(layout: Layout, ids: Collection[str] | None) -> str:
    """Describe how many rows of some imports, or of all, are read by now, and what blocks one."""
    states = [each for each in list_import_states(layout) if ids is None or each.decision.id in ids]
    done, whole = (sum(counts) for counts in ((s.done for s in states), (s.decision.end for s in states)))
    blocked = [f"import {each.decision.id} waits: {each.wrong}" for each in states if each.wrong]
    return "; ".join([f"{done:,} of {whole:,} rows", *blocked])


def run_import_driver(
    pipeline: str,
    layout: Layout,
    control: ControlTable,
    look: Callable[[], None],
    halt: threading.Event | None,
    env: Mapping[str, str],
) -> None:
    """Run the driver of imports once, under the lease."""
    holder = f"{host_name()}:{os.getpid()}{IMPORTING}"
    lease = control.take(holder, process=own_process_name(), now=datetime.now(UTC))
    log, asked = ensure_stream_folder(home_folder(), pipeline) / "import.log", halt or threading.Event()
    try:
        with keep_renewing(lambda: control.try_renew(lease), RENEWED_EVERY):
            driver = Driver(make_import_command(pipeline, lease.token), log, env)
            try:
                while driver.exit_code is None and not asked.wait(LOOKED_EVERY):
                    look()
            finally:
                code = driver.stop(GRACE)
    finally:
        control.release(lease)
    if code and not asked.is_set():
        raise explain_end(code, log)


def explain_end(code: int, log: Path) -> SeamlineError:
    """Return the error that a driver has ended with: its own words stand at the end of its log."""
    return SparkFailed(
        f"The import's driver ended with exit code {code}. The end of its log: {read_log_tail(log, 6)}",
        hint=f"See {log}. What was imported stays; run the same command again to continue.",
    )
