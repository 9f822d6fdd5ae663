"""Tells the lineage of what goes on until it is stopped from a thread of its own: it is in the way of no epoch."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from seamline.lake.store.locations import replace_file
from seamline.lineage.courier import Courier
from seamline.model.protocol.offsets import Vector
from seamline.plan.lineage.lineage_events import LineageEvent, RunState
from seamline.plan.lineage.told_offsets import Step, Told, plan_steps

log = logging.getLogger("seamline.lineage")
PATIENCE, BRIEF = 5.0, 1.0
"""Seconds that the end of a stream waits for its last event at most; the next driver tells what was not taken. It
waits less for a server that took nothing the last time."""


class Standing(Protocol):
    """Where something stands."""

    @property
    def vector(self) -> Vector:
        """The next offset of each lane."""


S = TypeVar("S", bound=Standing)


class StreamReporter(Generic[S]):
    """One run of a stream, or of a sink: its beginning, from time to time what it has read, and its end.

    ``make`` makes the event of a step, and ``take`` is given what that tells once the server has taken it. Nothing
    waits in a queue: what a server that is away has not taken is told with the next event. ``memory`` is the file by
    which the next process knows what was told.
    """

    def __init__(
        self,
        make: Callable[[Step, S], LineageEvent],
        run: str,
        look: Callable[[], S | None],
        memory: Path,
        *,
        every: float,
        began: S,
        take: Callable[[S], object] = lambda told: None,
    ) -> None:
        self.make, self.take, self.run = make, take, run
        self.look, self.memory, self.every, self.began = look, memory, every, began
        self.told = Told()
        self.courier = Courier()
        self.over = threading.Event()
        self.last: tuple[S, RunState, str] | None = None
        self.thread = threading.Thread(target=self.work, name="lineage", daemon=True)
        with suppress(OSError):
            self.told = Told.from_json(memory.read_text(encoding="utf-8"))
        self.thread.start()

    def work(self) -> None:
        """Tell that the run has begun, then what it reads, until it is over."""
        self.tell(self.began)
        while not self.over.wait(self.every):
            try:
                here = self.look()
            except Exception:
                log.exception("Lineage is not looked at, and is again")
                continue
            if here:
                self.tell(here)
        if self.last:
            self.tell(*self.last)
        self.courier.close(PATIENCE)

    def tell(self, here: S, ending: RunState | None = None, error: str = "") -> None:
        """Tell what is due, in order, as far as it is taken; anything unforeseen is logged."""
        try:
            for step in plan_steps(self.told, self.run, self.began.vector, here.vector, ending, error):
                of_before = step.state is RunState.START or step.run != self.run
                shown = self.began if of_before else here
                if not self.courier.deliver(self.make(step, shown)):
                    return
                self.take(shown)
                self.remember(step.after)
        except Exception:
            log.exception("Lineage is not told")

    def end(self, here: S, state: RunState, error: str = "") -> None:
        """Tell how the run has ended, and wait for that a little; what is not taken is left to the next driver."""
        self.last = (here, state, error)
        self.over.set()
        self.thread.join(BRIEF if self.courier.refused else PATIENCE)
        if self.told.run == self.run:
            self.remember(Told(self.run, self.told.vector, state.value, error))

    def remember(self, told: Told) -> None:
        """Keep what was told, for this driver and for the next one."""
        self.told = told
        with suppress(OSError):
            replace_file(self.memory, told.to_json().encode())
