"""A supervisor in a container, which would be started again if it ended: it waits while its stream shall not run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout, home_folder
from seamline.lake.tables.control_table import Control, ControlTable, Desired
from seamline.model.errors import FenceLost, GaveUp, LeaseHeld, StoreUnavailable
from seamline.runtime.processes import boot_clock_seconds
from seamline.runtime.stop_signals import set_when_asked
from seamline.runtime.storage_failures import explain_storage_failure
from seamline.supervisor.stream_logs import print_with_time
from seamline.supervisor.supervisor_heartbeat import GAVE_UP, Heartbeat

LOOKS_EVERY = 5.0
"""Seconds between two looks at what a stream should do: in a bucket each is paid."""
AGAIN_AFTER = 30.0
"""Seconds until what passes by itself is tried again."""


class Pulse(threading.Event):
    """An event whose waiter shows that it lives: a file is touched by whoever waits, every few seconds at most.

    A heartbeat is written once the lease is renewed, and not while the store is away; this is.
    """

    def __init__(
        self, file: Path, *, every: float = 5.0, wait: Callable[[float], bool] | None = None
    ) -> None:
        super().__init__()
        self.file, self.every, self.pass_time, self.touched = file, every, wait, float("-inf")

    def wait(self, timeout: float | None = None) -> bool:
        """Touch the file, then wait as any event does."""
        now = boot_clock_seconds()
        if now - self.touched >= self.every:
            self.touched = now
            # Who looks at the file sees that it is old; the stream goes on.
            with suppress(OSError):
                self.file.parent.mkdir(parents=True, exist_ok=True)
                self.file.touch()
        if self.pass_time and timeout is not None:
            return self.pass_time(timeout)
        return super().wait(timeout)


def find_pulse_file(pipeline: str) -> Path:
    """Return the file that a supervisor which stands by touches."""
    return home_folder() / "streams" / pipeline / "pulse"


def stand_by(
    layout: Layout,
    run: Callable[[threading.Event], int],
    *,
    halt: threading.Event,
    say: Callable[[str], object] = print_with_time,
) -> int:
    """Let ``run`` supervise whenever the stream should run, until this process is asked to end; return 0.

    It waits while nobody has started the stream or somebody has stopped it, after a supervisor has given up until
    somebody starts the stream again, while another supervisor lives, and while the store is away.
    """
    if threading.current_thread() is threading.main_thread():
        set_when_asked(halt)
    told, gave_up_at = "", None
    while not halt.is_set():
        try:
            control, pause = read_control(layout), LOOKS_EVERY
            if why := find_reason_to_wait(layout.pipeline, control, gave_up_at):
                why = f"waits, as {why}"
            else:
                gave_up_at = None
                code = run(halt)
                if code == GaveUp.exit_code:
                    gave_up_at = count_restarts_seen(layout.pipeline, control)
                elif code in (FenceLost.exit_code, LeaseHeld.exit_code):
                    why, pause = "waits, as another supervisor has taken over", AGAIN_AFTER
                if not why:
                    told = ""
                    continue
        except Exception as error:  # noqa: BLE001 - what does not pass is raised again
            why, pause = f"waits: {describe_what_passes(error)}", AGAIN_AFTER
        if why != told:
            say(f"{layout.pipeline}: {why}")
            told = why
        halt.wait(pause)
    return 0


def read_control(layout: Layout) -> Control:
    """Read what people want of a stream; nothing is made by looking."""
    if not Table.exists(layout.table("control")):
        return Control()
    return ControlTable.ensure(layout).read()


def count_restarts_seen(name: str, control: Control) -> int:
    """Return how many restarts the supervisor knew of when it gave up: what is asked for after that is news."""
    beat = Heartbeat.read(home_folder(), name)
    return beat.restarts if beat and beat.state == GAVE_UP else control.restarts


def find_reason_to_wait(name: str, control: Control, gave_up_at: int | None) -> str:
    """Say why a stream shall not run now; empty if it shall. ``gave_up_at``: restarts asked for when one gave up."""
    if control.desired is Desired.UNSET:
        return "nobody has started the stream"
    if control.desired is Desired.STOPPED:
        return f"the stream is stopped by {control.actor or 'nobody'} ({control.reason})"
    if gave_up_at == control.restarts:
        return f"the supervisor has given up; `seamline stream start {name}` starts the stream again"
    return ""


def describe_what_passes(error: Exception) -> str:
    """Say what ends by itself, in a line; any other error is raised."""
    found = error if isinstance(error, LeaseHeld | StoreUnavailable) else explain_storage_failure(error)
    if not isinstance(found, LeaseHeld | StoreUnavailable):
        raise error
    return found.message
