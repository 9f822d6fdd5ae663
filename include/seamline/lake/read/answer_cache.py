"""Answers that were given: the same question to tables in which nothing has happened has the same answer."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from seamline.lake.read.answers import Answer
from seamline.lake.read.snapshot import Snapshot
from seamline.model.recent import Recent

ANSWERS, LARGEST = 64, 1_000_000
"""How many are remembered, and of how many bytes at most."""


class Remembered:
    """The last answers, each with the snapshot that it was read from."""

    def __init__(self) -> None:
        self.answers: Recent[Hashable, tuple[Snapshot, Answer]] = Recent(ANSWERS)

    def answer(self, question: Hashable, snapshot: Snapshot, read: Callable[[], Answer]) -> Answer:
        """Return what was answered from an equal snapshot, or read."""
        held = self.answers.get(question)
        if held and is_same_snapshot(held[0], snapshot):
            return held[1]
        found = read()
        if found.table.nbytes + found.states.nbytes <= LARGEST:
            self.answers[question] = (snapshot, found)
        return found


def is_same_snapshot(one: Snapshot, other: Snapshot) -> bool:
    """Return whether two snapshots are of the same versions; what is shared between reads is the same object."""
    shared = all(getattr(one, name) is getattr(other, name) for name in ("slices", "manifest", "generations"))
    names = ("epoch", "until", "as_of", "served_at", "watermark", "restated", "gone")
    return shared and all(getattr(one, name) == getattr(other, name) for name in names)


REMEMBERED = Remembered()
"""This process's."""
