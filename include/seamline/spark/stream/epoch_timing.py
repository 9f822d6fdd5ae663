"""How long the phases of an epoch take, for its ledger row and the heartbeat."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from seamline.model.protocol.epoch import Epoch


class EpochTiming:
    """The clock of one driver's epochs; the writer marks phases, Spark's listener leaves its trigger's durations."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        """Seconds that each phase of the present epoch took, by its name; the next epoch begins with none."""
        self.trigger: Mapping[str, float] = {}
        """Seconds of the last trigger that had a batch, by Spark's names; empty before the first."""
        self.marked: float | None = None
        """When the last phase ended, in seconds of the monotonic clock; None before the first epoch began."""

        self.told: Callable[[Epoch, Mapping[str, float]], None] | None = None
        """What is called with each epoch that has ended, and its phases; None for nothing."""

    def begin(self) -> float:
        """Begin an epoch; return when, in seconds of the monotonic clock."""
        self.seconds, self.marked = {}, (now := time.monotonic())
        return now

    def mark(self, phase: str) -> None:
        """Note the end of a phase that began where the one before it ended; nothing before the first epoch."""
        if self.marked is None:
            return
        now = time.monotonic()
        self.seconds[phase] = round(now - self.marked, 4)
        self.marked = now

    def end(self, epoch: Epoch) -> None:
        """Tell whoever wants to know that an epoch has ended."""
        if self.told:
            self.told(epoch, self.seconds)

    def facts(self) -> dict[str, Mapping[str, float]]:
        """Return the fields of an epoch's ledger row: its phases so far, and the trigger before it."""
        return {"took": dict(self.seconds), "trigger": self.trigger}
