"""Rows that say where a pattern matches: SQL's MATCH_RECOGNIZE over the rows of a key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from seamline.model.definition.origin import Origin, declare_origin_field


@dataclass(frozen=True)
class Pattern:
    """Matches of a pattern in the rows of a key, in the order of their event times, however late they come.

    A match is rows that follow each other without a gap and take the steps one after the other: ``"fail{3,} ok"`` is
    three or more rows for which ``fail`` holds, and then one for which ``ok`` does. It begins as early as it can, and
    takes as many rows as it can, or as few behind ``{3,}?``. Each match is one row, counted by ``View(of="stolen")``,
    with the columns of the key and those of ``select``. Its event time is that at which it is decided: at the row that
    ends it, or, where more rows might still belong to it, when ``within`` is over for its first one. A late row
    withdraws a match that is none any more: such a view takes only measures from which rows can be taken again.
    """

    name: str
    """The name of the matches, which ``View(of=)`` takes."""
    of: str
    """The name of the source in whose rows it is looked for."""
    keys: Sequence[str]
    """The columns by which rows are kept apart: a match is of a key."""
    steps: str
    """Names of steps, each with how many rows take it: ``"fail{3,} ok"``. There are ``?``, ``*``, ``+``, ``{n}``,
    ``{n,}``, ``{n,m}``, ``{,m}``, each with ``?`` behind it for as few as possible, ``|`` and brackets."""
    within: str
    """How long after its first row the last one of a match may be, as a duration."""
    define: Mapping[str, str]
    """The condition under which a row takes a step, by the step's name; any row takes a step without one."""
    select: Mapping[str, str]
    """What a match shows, by the column's name: ``count(*)``, ``count(fail)``, ``first(fail.at)``, ``ok.amount``. There
    are first, last, sum, avg, min and max of a column, over the rows of a step or of the match."""
    begin: str = ""
    """How often the search begins anew, as a duration: part of an interval, or a multiple; "" for its length."""
    where: str = ""
    """The rows among which it is looked for; all if empty."""
    skip: str = "past last row"
    """Where the search goes on after a match: "past last row" of it, or "to next row" after its first."""
    copies: bool = False
    """Whether intervals are certified in which a row counts that repeats the event id of an earlier one: a copy that
    came more than ``dedup_within`` after it. Else they are held back."""
    timeout: str = "10 seconds"
    """How long it may take to take a row in, and to tell the matches that it decides, as a duration; what takes longer
    leaves the views behind."""
    memory: str = "64m"
    """How much memory the state of a key may have, about; more leaves the views behind."""
    version: str = ""
    """Any text; another one says that the matches mean something else."""
    origin: Origin = declare_origin_field()

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of the sources whose rows it is made of."""
        return (self.of,)
