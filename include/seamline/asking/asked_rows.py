"""The rows that are in hand: in which order they are taken up, and up to which epoch all have their record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from seamline.asking.questions import AskedRow, Place


class RowsInHand:
    """The rows that were taken up and have no record in the topic yet."""

    def __init__(self, epoch: int) -> None:
        self.taken = epoch
        """The epoch up to which all rows were taken up."""
        self.places: dict[Place, AskedRow] = {}
        self.epochs: Counter[int] = Counter()
        self.decided = 0
        """How many of them are asked about again."""

    def take(self, rows: Iterable[AskedRow], until: int) -> None:
        """Take up the rows of the epochs up to one."""
        for row in rows:
            self.add(row)
        self.taken = until

    def add(self, row: AskedRow) -> None:
        """Take up a row."""
        self.places[row.place] = row
        if row.decided:
            self.decided += 1
        else:
            self.epochs[row.epoch] += 1

    def finish(self, row: AskedRow) -> None:
        """Let go of a row whose record is in the topic."""
        del self.places[row.place]
        if row.decided:
            self.decided -= 1
            return
        self.epochs[row.epoch] -= 1
        if not self.epochs[row.epoch]:
            del self.epochs[row.epoch]

    @property
    def finished(self) -> int:
        """Return the epoch up to which every row has its record."""
        taken = self.taken
        return min(min(self.epochs, default=taken + 1) - 1, taken)
