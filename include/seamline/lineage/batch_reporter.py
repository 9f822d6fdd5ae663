"""Tells the lineage of a task of a batch run from a thread of its own: the task waits a little for it, at its end."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue

from seamline.lineage.courier import Courier
from seamline.plan.lineage.lineage_events import LineageEvent, RunState, spell_error

log = logging.getLogger("seamline.lineage")
PATIENCE = 5.0
"""Seconds that the end of a task waits for what is to be told at most."""

Look = Callable[[RunState, str], LineageEvent]
"""Makes the event of a state and what went wrong, from what is in the tables."""


@contextmanager
def report_task(look: Look) -> Iterator[None]:
    """Tell that a task begins, and how it has ended; the tables are looked at in the other thread, too."""
    due: SimpleQueue[tuple[RunState, str] | None] = SimpleQueue()
    thread = threading.Thread(target=tell_all, args=(due, look), name="lineage", daemon=True)
    thread.start()
    due.put((RunState.START, ""))
    try:
        yield
    except BaseException as error:
        state = RunState.FAIL if isinstance(error, Exception) else RunState.ABORT
        due.put((state, spell_error(error)))
        raise
    else:
        due.put((RunState.COMPLETE, ""))
    finally:
        due.put(None)
        await_telling(thread)


def report_state(look: Look, state: RunState, error: str = "") -> None:
    """Tell one state of what another process has begun, or will end."""
    due: SimpleQueue[tuple[RunState, str] | None] = SimpleQueue()
    due.put((state, error))
    due.put(None)
    thread = threading.Thread(target=tell_all, args=(due, look), name="lineage", daemon=True)
    thread.start()
    await_telling(thread)


def await_telling(thread: threading.Thread) -> None:
    """Wait a little for what is to be told."""
    thread.join(PATIENCE)
    if thread.is_alive():
        log.warning("Lineage is not told within %s s.", PATIENCE)


def tell_all(due: SimpleQueue[tuple[RunState, str] | None], look: Look) -> None:
    """Tell what is due until nothing more comes."""
    courier = Courier()
    while (each := due.get()) is not None:
        try:
            courier.deliver(look(*each))
        except Exception as error:  # noqa: BLE001 - lineage is in the way of no build
            courier.note_failure(spell_error(error))
    courier.close(PATIENCE)
