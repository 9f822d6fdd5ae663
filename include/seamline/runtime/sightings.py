"""Who lives is seen by beats: a lease or a claim is lost when its beat stood still for its whole time to live.

An observer goes by its own clock alone, which nobody sets; no clock is ever compared with another's. The holder
believes in what it holds for as long from before it sent the last beat that landed: it ends first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from seamline.runtime.processes import Life, boot_clock_seconds, life_of

LOOKS_EVERY = 0.5
"""Seconds between two looks of one who waits."""


class Standing(StrEnum):
    """What an observer may say: FREE and HELD are sure, UNSURE was not looked at for long enough."""

    FREE = "free"
    HELD = "held"
    UNSURE = "unsure"


class Mark(Protocol):
    """Something that is held: ``mark`` changes with every beat and with every holder."""

    @property
    def process(self) -> str:
        """The holder, as ``processes.own_process_name`` names it."""
        ...

    @property
    def mark(self) -> object:
        """What moves."""
        ...


@dataclass
class Sighting:
    """What one observer has seen of one lease or claim."""

    ttl: float
    """Seconds for which a mark may stand still while its holder lives."""
    clock: Callable[[], float] = boot_clock_seconds
    """The observer's own, in seconds; one that goes on while the machine sleeps."""
    looked: bool = False
    """Whether anything was read yet."""
    mark: object = None
    """The last mark that was read; None if there was none."""
    since: float = 0.0
    """When the mark was first seen, by the clock."""
    moved: bool = False
    """Whether the mark has changed under this observer's eyes."""
    life: Callable[[str], Life] = life_of
    """What is known of a process from where the observer is."""

    def look(self, read: Callable[[], Mark | None]) -> Standing:
        """Read once more and decide."""
        asked = self.clock()
        found = read()
        if found is None or self.life(found.process) is Life.GONE:
            self.looked, self.mark, self.moved = True, None, False
            return Standing.FREE
        if not self.looked or found.mark != self.mark:
            # The beat landed before now and after the look before; it counts from now, the safe end.
            self.moved, self.looked = self.looked, True
            self.mark, self.since = found.mark, self.clock()
        elif asked - self.since >= self.ttl:
            return Standing.FREE
        return Standing.HELD if self.moved else Standing.UNSURE
