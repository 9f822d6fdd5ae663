"""All sinks of a pipeline in one process, as long as the lease is its own, or its supervisor's."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from seamline.lake.storage.layout import Layout
from seamline.lake.tables.control_table import ControlTable, Lease
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.errors import LeaseHeld, SeamlineError
from seamline.runtime.places import host_name
from seamline.runtime.processes import own_process_name
from seamline.sinks.sink_runner import SinkRunner

log = logging.getLogger("seamline.sinks")
RENEWS_EVERY, TICK = 5.0, 0.2
ENDS_WITHIN = 20.0
"""Seconds that a transaction which was begun may take to its end."""
Holding = Callable[[], bool]
"""Tells whether this process may go on."""


def run_sinks(
    pipeline: CompiledPipeline, layout: Layout, stop: threading.Event, holds: Holding, *, once: bool = False
) -> int:
    """Run each sink in a thread until stopped (0), or until the lease is another's (21); return the exit code.

    With ``once`` until each shows the newest version; the error of one that has failed is raised.
    """
    runners = [SinkRunner(pipeline, layout, each, stop, once=once) for each in pipeline.definition.sinks]
    threads = [threading.Thread(target=each.run, name=each.sink.id, daemon=True) for each in runners]
    for thread in threads:
        thread.start()
    code = 0
    while not stop.is_set() and any(each.is_alive() for each in threads):
        if not still_holds(holds):
            code = LeaseHeld.exit_code
            break
        stop.wait(TICK)
    if code:
        stop.set()
    deadline = time.monotonic() + ENDS_WITHIN
    for thread in threads:
        thread.join(max(deadline - time.monotonic(), 0.0))
    failed: list[SeamlineError] = [each.error for each in runners if each.error]
    if once and failed:
        raise failed[0]
    return code


def still_holds(holds: Holding) -> bool:
    """Return whether this process may go on; it may where nobody can tell, as targets fence off who must not."""
    try:
        return holds()
    except (SeamlineError, OSError) as error:
        log.warning("The lease cannot be looked at: %s", error)
        return True


@contextmanager
def own_lease(layout: Layout) -> Iterator[Holding]:
    """Hold the lease of a pipeline's stream, which its sinks are a part of; LeaseHeld while it is another's."""
    control = ControlTable.ensure(layout)
    holder, process = f"{host_name()}:{os.getpid()}:sinks", own_process_name()
    lease = control.take(holder, process=process, now=datetime.now(UTC))
    renewed = time.monotonic()

    def holds() -> bool:
        nonlocal renewed
        if time.monotonic() - renewed < RENEWS_EVERY:
            return True
        renewed = time.monotonic()
        return control.try_renew(lease)

    try:
        yield holds
    finally:
        control.release(lease)


def supervised(layout: Layout, supervisor: str) -> Holding:
    """Return whether a supervisor, named as a process, lives and has the lease; it is looked at now and then."""
    control, parent = ControlTable.ensure(layout), os.getppid()
    looked = float("-inf")

    def holds() -> bool:
        nonlocal looked
        if os.getppid() != parent:
            return False
        if time.monotonic() - looked < RENEWS_EVERY:
            return True
        looked = time.monotonic()
        lease: Lease | None = control.see().lease
        return lease is None or lease.process == supervisor

    return holds
