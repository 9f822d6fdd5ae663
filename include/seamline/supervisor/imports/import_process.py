"""Imports where no stream runs: a driver for them alone, under the stream's lease, seen through to its end."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from seamline.lake.log.epoch_log import read_condensed_log
from seamline.lake.storage.layout import Layout, home_folder
from seamline.lake.tables.control_table import ControlTable, Desired
from seamline.lake.tables.decided import list_imports
from seamline.lake.tables.renewing import keep_renewing
from seamline.model.errors import LeaseHeld, SeamlineError, SparkFailed
from seamline.model.protocol.imported.imports import count_imported_places, list_open_imports
from seamline.runtime.places import host_name
from seamline.runtime.processes import own_process_name
from seamline.supervisor.driver_process import Driver, read_log_tail
from seamline.supervisor.job_files import make_import_command
from seamline.supervisor.supervisor_heartbeat import ensure_stream_folder

RENEWED_EVERY, LOOKED_EVERY = 5.0, 1.0
GRACE = 60.0
"""Seconds in which a driver that is stopped may finish its epoch."""


def see_imports_through(
    pipeline: str,
    layout: Layout,
    tell: Callable[[int, int], None],
    *,
    env: Mapping[str, str] = os.environ,
) -> None:
    """Wait until all that was asked for is imported or closed; run it here where no stream runs. As ``take_part``."""
    while not take_part(pipeline, layout, tell, env=env):
        time.sleep(LOOKED_EVERY)


def take_part(
    pipeline: str,
    layout: Layout,
    tell: Callable[[int, int], None],
    *,
    env: Mapping[str, str] = os.environ,
) -> bool:
    """Return whether all that was asked for is imported or closed; where no stream runs, do it before.

    ``tell`` is told how many rows are read by now, and of how many; ``env`` has the connections. LeaseHeld where
    somebody who is no stream holds the lease; SparkFailed where the driver fails.
    """
    control = ControlTable.ensure(layout)
    if is_import_open(layout) and control.read().desired not in (Desired.RUNNING, Desired.PAUSED):
        try:
            run_import_driver(pipeline, layout, control, tell, env)
        except LeaseHeld:
            if control.read().desired is not Desired.RUNNING:
                raise
    tell(*count_places(layout))
    return not is_import_open(layout)


def say_who_imports(pipeline: str, layout: Layout) -> str:
    """Say who is waited for, if that is not this process; empty if nothing is to be done, or it is done here."""
    found = ControlTable.ensure(layout).read()
    if not is_import_open(layout) or found.desired not in (Desired.RUNNING, Desired.PAUSED):
        return ""
    if found.desired is Desired.PAUSED:
        return f"The stream of {pipeline} is paused: it imports once `seamline stream start {pipeline}` resumes it."
    if found.lease is None:
        return (
            f"The stream of {pipeline} should be running, and nobody runs it yet: it imports once it is up."
        )
    return f"The stream of {pipeline} imports between its epochs, whether this command waits or not."


def is_import_open(layout: Layout) -> bool:
    """Return whether something is to be registered, read or closed."""
    return bool(list_open_imports(read_condensed_log(layout), list_imports(layout)))


def count_places(layout: Layout) -> tuple[int, int]:
    """Count the rows of all imports that are listed: those that are read or closed, and all."""
    asked = list_imports(layout)
    done = count_imported_places(read_condensed_log(layout), asked)
    return sum(done.values()), sum(each.end for each in asked)


def run_import_driver(
    pipeline: str,
    layout: Layout,
    control: ControlTable,
    tell: Callable[[int, int], None],
    env: Mapping[str, str],
) -> None:
    """Run the driver of imports once, under the lease."""
    holder = f"{host_name()}:{os.getpid()}:import"
    lease = control.take(holder, process=own_process_name(), now=datetime.now(UTC))
    log = ensure_stream_folder(home_folder(), pipeline) / "import.log"
    try:
        with keep_renewing(lambda: control.try_renew(lease), RENEWED_EVERY):
            driver = Driver(make_import_command(pipeline, lease.token), log, env)
            try:
                while driver.exit_code is None:
                    tell(*count_places(layout))
                    time.sleep(LOOKED_EVERY)
            finally:
                code = driver.stop(GRACE)
    finally:
        control.release(lease)
    if code:
        raise explain_end(code, read_log_tail(log, 6))


def explain_end(code: int, said: str) -> SeamlineError:
    """Return the error that a driver has ended with: its own words stand at the end of its log."""
    return SparkFailed(
        f"The import ended with exit code {code}: {said}",
        hint="what was imported stays, and the same command goes on with the rest.",
    )
