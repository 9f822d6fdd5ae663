"""Rows that a function of yours emits, which is given the rows of a key in order, and keeps a state and timers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from seamline.model.definition.origin import Origin, declare_origin_field
from seamline.model.user_code import name_of


@dataclass(frozen=True)
class Process:
    """Rows that a process function emits: a class with a state, a method ``row``, and perhaps ``timer`` and ``end``.

    The function receives the rows of a key in the order of their event times, however late they come; a timer is called
    before the first row at or after it. What it emits is counted by ``View(of="carts")``, and what it sets aside by
    ``View(of="carts.refunds")``; calls that raised are rows of ``carts.errors``. Emitted rows have the columns of the
    key and those that the function declares. A late row withdraws what is no longer emitted: such a view takes only
    measures from which rows can be taken again.
    """

    name: str
    """The name of the emitted rows, which ``View(of=)`` takes."""
    of: str
    """The name of the source whose rows it is given."""
    by: str | type
    """The class, ``module:Class``; it is created without arguments."""
    keys: Sequence[str]
    """The columns by which rows are kept apart: a state is of a key."""
    columns: Sequence[str] = ()
    """The columns of rows that the function reads; all if empty. Those of the key are always there."""
    where: str = ""
    """The rows that it is given; all if empty."""
    begin: str = ""
    """How often the state begins anew, as a duration: part of an interval, or a multiple; "" for its length."""
    forget: str = ""
    """After how long without a row a key is forgotten, as a duration of event time; "" for not before ``begin``."""
    copies: bool = False
    """Whether intervals are certified in which a row counts that repeats the event id of an earlier one: a copy that
    came more than ``dedup_within`` after it. Else they are held back."""
    timeout: str = "10 seconds"
    """How long a call may take, as a duration; one that takes longer leaves the views behind."""
    memory: str = "64m"
    """How much memory the state of a key may have, about; more leaves the views behind."""
    version: str = ""
    """Any text; another one says that the function means something else, though its code is the same."""
    origin: Origin = declare_origin_field()

    def __post_init__(self) -> None:
        object.__setattr__(self, "by", name_of(self.by))

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of the sources whose rows it is made of."""
        return (self.of,)
