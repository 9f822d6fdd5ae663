"""What all sinks have in common: a name and a place, and of those of a view what of its answer is sent."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from seamline.model.definition.origin import Origin, find_caller_origin
from seamline.model.protocol.sinks.rolling import Pace

CHANGE, COMPLETE, CERTIFIED = "change", "complete", "certified"
WHEN = (CHANGE, COMPLETE, CERTIFIED)
"""Which rows a sink sends: all, those of windows whose rows have all been read, those of certified intervals."""


@dataclass(frozen=True)
class AnySink:
    """Something outside that is told what is new, by a process of its own (docs/sinks.md).

    No sink takes part in a version: it may be added, changed and left out at any time.
    """

    name: str = field(default="", kw_only=True)
    """The sink's name, unique in its pipeline; "" for what it sends and what kind of sink it is."""
    origin: Origin = field(default_factory=find_caller_origin, compare=False, repr=False, kw_only=True)
    """Where the author wrote it."""

    kind: ClassVar[str] = ""
    """What kind it is, for names and lists: "kafka"."""

    @property
    def id(self) -> str:
        """The name by which people and its target know it."""
        return self.name or f"{self.sends}_{self.kind}"

    @property
    def sends(self) -> str:
        """What it sends, in a word: a view's name."""
        raise NotImplementedError

    @property
    def place(self) -> str:
        """Where it writes to, beside the connection: two sinks of one place would overwrite each other's rows."""
        raise NotImplementedError

    def name_target(self, pipeline: str) -> str:
        """Name where it writes to as the sink of a pipeline."""
        return self.place

    @property
    def form(self) -> str:
        """What is sent, in a word: a target may hold another form."""
        raise NotImplementedError

    @property
    def waits(self) -> Pace:
        """How long changes wait for others before they are sent."""
        return Pace()


@dataclass(frozen=True)
class Sink(AnySink):
    """A target that is kept as a view's serving table is."""

    view: str
    """The view whose answer is sent."""
    when: str = field(default=CHANGE, kw_only=True)
    """The rows that are sent: "change" for all of them, each time that they change; "complete" for those of windows
    that are complete; "certified" for those of certified intervals."""

    @property
    def sends(self) -> str:
        return self.view

    @property
    def form(self) -> str:
        """What is sent, in a word: a target that holds another form is written anew."""
        return self.when

    @property
    def wants_olds(self) -> bool:
        """True if it sends what a row was before beside what it is now."""
        return False

    @property
    def fixes_types(self) -> bool:
        """True if a column of its target has one type: where a view gives it another, all is written anew."""
        return False
