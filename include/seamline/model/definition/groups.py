"""Rows that a function of yours makes of both sides' rows of a key in a window, given to it in one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from seamline.model.definition.origin import Origin, declare_origin_field
from seamline.model.definition.windows import Tumbling
from seamline.model.user_code import name_of


@dataclass(frozen=True)
class CoGroup:
    """Rows that a class emits which is given, for each key and window, the rows of two sources in one call.

    Its method ``group(self, key, lefts, rights, out)`` is called for each key that has a row in the window on either
    side; rows of a side are in the order of their event times. What it emits has the columns of the key, named as on
    the left, and those that it declares in ``emits``; its event time is the last instant of the window. Keys that are
    NULL are one key. A late row has its window's group called again, and withdraws what is no longer emitted: views of
    it take only measures from which rows can be taken again.
    """

    name: str
    """The name of the emitted rows, which ``View(of=)`` takes."""
    left: str
    """The name of the source whose rows are on the left."""
    right: str
    """The name of the source whose rows are on the right; another one."""
    on: Mapping[str, str]
    """The right column that each left column must equal, by the left one's name; one or more."""
    window: Tumbling
    """The windows, ``Tumbling("10 minutes")`` in UTC: part of an interval, or a multiple."""
    by: str | type
    """The class, ``module:Class``; it is created without arguments."""
    left_columns: Sequence[str] = ()
    """The columns of left rows that the class reads; all if empty. Those of ``on`` are always there."""
    right_columns: Sequence[str] = ()
    """The columns of right rows that it reads."""
    copies: bool = False
    """Whether intervals are certified in which a row counts that repeats the event id of an earlier one: a copy that
    came more than ``dedup_within`` after it. Else they are held back."""
    timeout: str = "10 seconds"
    """How long a call may take, as a duration; one that takes longer leaves the views behind."""
    memory: str = "64m"
    """How much memory the state of a key may have, about; more leaves the views behind."""
    version: str = ""
    """Any text; another one says that the class means something else, though its code is the same."""
    origin: Origin = declare_origin_field()

    def __post_init__(self) -> None:
        object.__setattr__(self, "by", name_of(self.by))

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of the sources whose rows it is made of."""
        return self.left, self.right
