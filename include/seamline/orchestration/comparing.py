"""What Airflow's tasks do where supervisors are started by somebody else: they compare, and fail where none beats."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from seamline.model.errors import SetupError
from seamline.model.time.intervals import format_utc_instant
from seamline.plan.spelling import format_duration

if TYPE_CHECKING:
    from seamline.lake.tables.control_table import ControlTable

SETTING = "SEAMLINE_RECONCILE"
START, COMPARE = "start", "compare"
WAITS = 20.0
"""Seconds for a supervisor that stands by to take up what somebody asked for a moment ago."""
LOOKS_EVERY = 1.0
"""Seconds between two looks for a supervisor: in a bucket each is paid."""
SILENT_FOR = timedelta(minutes=3)
"""How long a stream may have no supervisor: a pod that moves to another node takes a minute or two."""


def only_compares(environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether tasks start no supervisor, by setting; SetupError if the setting is none."""
    said = environ.get(SETTING) or START
    if said not in (START, COMPARE):
        raise SetupError(
            f"{SETTING}={said} is no setting.", hint=f"set it to {START} (the default) or {COMPARE}."
        )
    return said == COMPARE


def require_supervisor(name: str, control: ControlTable, say: Callable[[str], object] = print) -> None:
    """Say since when nobody keeps up what should run; SetupError if that is longer than a restart takes."""
    last, now = find_last_word(name, control), datetime.now(UTC)
    if last and abs(now - last) < SILENT_FOR:
        say(f"no supervisor for {format_duration((now - last).total_seconds())}; it may be on its way back")
        return
    if wait_for_lease(control, WAITS):
        say("up")
        return
    heard = (
        f"last heard of at {format_utc_instant(last.replace(microsecond=0))}" if last else "never heard of"
    )
    raise SetupError(f"No supervisor keeps up {describe(name)}: one was {heard}.", hint=hint_for(name))


def await_supervisor(name: str, control: ControlTable, within: float) -> None:
    """Wait until a supervisor has the lease; SetupError if none takes it."""
    if not wait_for_lease(control, within):
        raise SetupError(
            f"No supervisor has taken up {describe(name)} within {within:g} s.", hint=hint_for(name)
        )


def wait_for_lease(control: ControlTable, within: float) -> bool:
    """Wait for a lease that is seen to live; false if there is none in time."""
    until = time.monotonic() + within
    while not control.live_lease():
        if time.monotonic() > until:
            return False
        time.sleep(LOOKS_EVERY)
    return True


def find_last_word(name: str, control: ControlTable) -> datetime | None:
    """Find when a supervisor was last heard of, by its own clock; None if never."""
    from seamline.lake.status.stream_words import read_words_elsewhere
    from seamline.lake.storage.layout import locate_tables
    from seamline.supervisor.stream_facts import read_last_heartbeat

    layout, lease = locate_tables(name), control.read().lease
    beat = read_last_heartbeat(layout, read_words_elsewhere(layout))
    heard = [lease.renewed if lease else None, beat.at if beat else None]
    return max((at for at in heard if at), default=None)


def describe(name: str) -> str:
    """Name what should run."""
    from seamline.supervisor import resident

    return "the resident driver" if name == resident.NAME else f"the stream of {name}"


def hint_for(name: str) -> str:
    """Say where to look, and what starts it."""
    from seamline.supervisor import resident

    if name == resident.NAME:
        return (
            f"{SETTING}={COMPARE} starts none; run `seamline driver stop`, or start it where it should run."
        )
    return (
        f"see the pod or unit that runs `seamline supervise {name}`, and its log; with {SETTING}={COMPARE} "
        "this task starts none."
    )
