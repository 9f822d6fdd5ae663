"""The threads of a match that is being looked for: the positions that wait for its next row, in order of preference.

All matches that have the same threads go on alike. So threads are found once for each row's steps, and kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from seamline.model.patterns.automaton import ACCEPT, Automaton

MOST_KEPT = 10_000
"""So many threads are kept, and so many ways on from each; then they are found anew."""


class Threads:
    """Positions that wait for the next row, the preferred one first, with the ways on that were found."""

    __slots__ = ("cares", "positions", "ways")

    def __init__(self, positions: tuple[int, ...], cares: int) -> None:
        self.positions, self.cares = positions, cares
        self.ways: dict[int, Way] = {}


class Way(NamedTuple):
    """What a row makes of threads."""

    threads: Threads | None
    """Those that are left, all of them preferred to the match that the row completes; None without any."""
    came_from: tuple[int, ...]
    """For each of them the place of the one that it comes from."""
    completed_by: int
    """The place of the thread whose match the row completes; -1 for none."""


class ThreadBook:
    """The threads of an automaton."""

    def __init__(self, automaton: Automaton) -> None:
        self.automaton = automaton
        self.known: dict[tuple[int, ...], Threads] = {}
        self.first = self.find(automaton.first)

    def find(self, positions: tuple[int, ...]) -> Threads:
        """Return threads by their positions."""
        found = self.known.get(positions)
        if found is None:
            if len(self.known) >= MOST_KEPT:
                self.known.clear()
            cares = sum({1 << self.automaton.steps[position] for position in positions})
            found = self.known[positions] = Threads(positions, cares)
        return found

    def advance(self, threads: Threads, holds: int) -> Way:
        """Return what a row makes of threads; ``holds`` has a bit for each step whose condition holds."""
        matters = holds & threads.cares
        way = threads.ways.get(matters)
        if way is None:
            if len(threads.ways) >= MOST_KEPT:
                threads.ways.clear()
            way = threads.ways[matters] = self.find_way(threads, matters)
        return way

    def find_way(self, threads: Threads, holds: int) -> Way:
        """Find what a row makes of threads; what is preferred less than a match that is whole is given up."""
        found: dict[int, int] = {}
        completed_by = -1
        for place, position in enumerate(threads.positions):
            if not holds >> self.automaton.steps[position] & 1:
                continue
            for each in self.automaton.follow[position]:
                if each == ACCEPT:
                    completed_by = place
                else:
                    found.setdefault(each, place)
            if completed_by >= 0:
                break
        return Way(self.find(tuple(found)) if found else None, tuple(found.values()), completed_by)

    def name_rows(self, holds: Sequence[int]) -> list[int]:
        """Return for each row of a match the number of its step."""
        threads: Threads | None = self.first
        gone: list[tuple[Threads, Way]] = []
        for each in holds:
            assert threads is not None
            way = self.advance(threads, each)
            gone.append((threads, way))
            threads = way.threads
        place, steps = gone[-1][1].completed_by, self.automaton.steps
        named = [steps[gone[-1][0].positions[place]]]
        for at in range(len(gone) - 2, -1, -1):
            place = gone[at][1].came_from[place]
            named.append(steps[gone[at][0].positions[place]])
        named.reverse()
        return named
