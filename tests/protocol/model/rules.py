"""The rules of the protocol as switches, and how far a search goes.

Every default is the rule as the shipped code has it. Turning one off gives a draft that is wrong; the search must
find out (``test_rules.py``).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rules:
    """What the processes of the model keep to.

    ``fenced`` names the tables whose commits carry the token: all, the master alone, or none. ``looks_after`` has a
    start look for the highest number after it has fenced. ``order`` is the order of an epoch's commits, ``pins``
    that of a reader. ``position`` is whose word a start believes. ``asserts_join``: the master refuses a range that
    does not begin at its end; ``refuses_old``: and a number at or below its last. ``new_number``: an attempt never
    takes a number that was taken. ``dead_below``: an epoch is dead only below one that is held.
    ``recognises``: by what a catch-up sees what was committed before a crash, a number of its own or the epochs'.
    ``floors``: slices go up to their own interval's floor, which is raised first; else up to the least cut of all.
    ``cas``, ``keeps_floor``, ``keeps_cut``: what publishing is refused for. ``whole``: a reader counts the rows of
    a generation. ``held_only``: a reader skips what dead epochs left. ``settles``: a driver that meets a commit of its
    own, which landed late or without an answer, knows it and looks anew; else it takes it for a newer driver's.
    ``insists``: it goes on without knowing what became of slices only; else of any commit.
    """

    fenced: str = "all"
    looks_after: bool = True
    order: tuple[str, ...] = ("slices", "quarantine", "master", "ledger")
    position: str = "master"
    asserts_join: bool = True
    refuses_old: bool = True
    new_number: bool = True
    dead_below: bool = True
    held_only: bool = True
    in_order: bool = True
    recognises: str = "block"
    repairs_ledger: bool = True
    looks_back: int | None = None
    edge_at_stop: bool = True
    cuts_on_edges: bool = True
    joins_between_edges: bool = True
    joins_to_frontier: bool = True
    upkeep_decides: bool = True
    counts_to_frontier: bool = True
    floors: bool = True
    floor_first: bool = True
    cas: bool = True
    keeps_floor: bool = True
    keeps_cut: bool = True
    unique_ids: bool = True
    whole: bool = True
    pins: tuple[str, ...] = ("log", "slices", "manifest", "generations")
    births: bool = True
    flips_checked: bool = True
    runs_live: bool = True
    states_least: bool = True
    pins_lookups: bool = True
    first_wins: bool = True
    settles: bool = True
    insists: bool = True


@dataclass(frozen=True)
class Bounds:
    """How far a search goes: what there is, and how often something may happen.

    ``topic`` gives per offset the day of a record, or None for one that is refused. ``ids`` are the records' event
    ids. ``takes`` is how many records one epoch may read at most. ``mishaps`` are commits that fail, whose answer
    is lost, or that are reported as failed and land later. Epoch numbers are below ``numbers``, tokens at most
    ``tokens``. Odd epochs are edges.
    """

    topic: tuple[int | None, ...] = (0, 1, 0)
    ids: tuple[int, ...] = ()
    takes: int = 3
    writers: int = 1
    tokens: int = 1
    numbers: int = 3
    mishaps: int = 0
    upkeeps: int = 0
    builds: int = 0
    rollbacks: int = 0
    floors: int = 0
    forgets: int = 0
    flips: int = 0
    lookups: int = 0
    reads: int = 0
    views: int = 1
    crashes: bool = True
    stops: bool = False

    @property
    def days(self) -> tuple[int, ...]:
        """The days that have records."""
        return tuple(sorted({day for day in self.topic if day is not None}))

    def accepted(self, start: int, end: int, lookup: int = 0) -> tuple[int, ...]:
        """Return the rows of ``[start, end)``; those of another version of the look-up are others."""
        return tuple(at + 100 * lookup for at in range(start, end) if self.topic[at] is not None)

    def refused(self, start: int, end: int) -> tuple[int, ...]:
        """Return the offsets of ``[start, end)`` that are refused."""
        return tuple(at for at in range(start, end) if self.topic[at] is None)

    def day(self, row: int) -> int:
        """Return the day of a row."""
        day = self.topic[row % 100]
        assert day is not None
        return day

    def id(self, row: int) -> int:
        """Return the event id of a row."""
        return self.ids[row % 100] if self.ids else row % 100
