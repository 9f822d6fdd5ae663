"""A key's rows that are not settled, with what the fold has come to at some of them and what it has emitted since."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence

from seamline.model.functions.folding import Fold, Item, KeyFold, KeyRow, Snapshot

MOST_OF_PART = 32
"""Rows of a part: the fold goes on from its beginning where a row comes between them."""
NOTHING: Sequence[Item] = ()


class TailPart:
    """Rows of a key that follow each other, and what has come of them."""

    __slots__ = ("begun", "items", "rows")

    def __init__(self, begun: Snapshot, rows: Sequence[KeyRow]) -> None:
        self.begun = begun
        """The fold before the first of them."""
        self.rows = rows
        """The rows, in order."""
        self.items: Sequence[Item] = NOTHING
        """What was emitted from there to the next part."""


class KeyTail:
    """A key's rows in a span that are not settled, and what has come of them."""

    __slots__ = ("due", "hidden", "parts", "run", "settled")

    def __init__(self, run: KeyFold, settled: float) -> None:
        self.run = run
        """The fold with all rows, and with the timers up to the watermark."""
        self.settled = settled
        """The instant before which all is settled, in microseconds from 1970."""
        self.parts: list[TailPart] = []
        """The rows at or after that, in order: a row between them has the fold go on from the part it is in."""
        self.hidden: Sequence[Item] = NOTHING
        """What was emitted, and is not yet shown."""
        self.due = math.inf
        """When it is looked at again without a row."""

    @property
    def last(self) -> KeyRow | None:
        """The last row that is not settled."""
        return self.parts[-1].rows[-1] if self.parts else None

    @property
    def blank(self) -> bool:
        """Return whether it is as if the key had had no row."""
        return self.run.state is None and not self.parts and not self.hidden

    def stop_at(self, mark: float, fold: Fold) -> Snapshot:
        """Return what the fold has come to with the rows before the watermark, by which a few are folded again."""
        part = next((each for each in self.parts if each.rows[-1].at >= mark), None)
        if part is None:
            return self.run.stop()
        settled = part.rows[: bisect_left(part.rows, mark, key=lambda row: row.at)]
        if not settled:
            return part.begun
        run = KeyFold(fold, part.begun)
        run.take_some(settled)
        return run.stop()

    def append(self, rows: Sequence[KeyRow]) -> None:
        """Note a few rows behind all others, which are about to be taken: in the last part, if there is room."""
        if self.parts and len(self.parts[-1].rows) + len(rows) <= MOST_OF_PART:
            self.parts[-1].rows = [*self.parts[-1].rows, *rows]
        else:
            self.parts.append(TailPart(self.run.stop(), rows))

    def extend(self, rows: Sequence[KeyRow]) -> list[Item]:
        """Take rows behind all others; return what is emitted."""
        items: list[Item] = []
        for at in range(0, len(rows), MOST_OF_PART):
            some = rows[at : at + MOST_OF_PART]
            self.parts.append(TailPart(self.run.stop(), some))
            self.run.take_some(some)
            items += self.take_items()
        self.run.require_small()
        return items

    def take_items(self) -> list[Item]:
        """Take what was emitted since the last time, and note it as what has come of the last part."""
        items, self.run.items = self.run.items, []
        if items and self.parts:
            self.parts[-1].items = [*self.parts[-1].items, *items]
        return items

    def refold(self, number: int, new: Sequence[KeyRow]) -> None:
        """Fold again from a part on, with rows of which the first is in it."""
        again = self.parts[number:]
        del self.parts[number:]
        self.run = KeyFold(self.run.fold, again[0].begun)
        self.extend(sorted([*(row for part in again for row in part.rows), *new]))

    def find_part(self, row: KeyRow) -> int:
        """Find the last part that begins before a row, or the first.

        Timers that had fired before it are before the row, too: a part begins behind one whose rows are not settled, so
        that the watermark of then is before these.
        """
        number = len(self.parts) - 1
        while number and self.parts[number - 1].rows[-1] > row:
            number -= 1
        return number


def list_shown(parts: Iterable[TailPart], mark: float) -> list[Item]:
    """List what was emitted in parts and a watermark shows."""
    return [item for part in parts for item in part.items if item.needs <= mark]


def list_hidden(parts: Iterable[TailPart], mark: float, until: float = math.inf) -> list[Item]:
    """List what was emitted in parts and a watermark does not show, but another one does."""
    return [item for part in parts for item in part.items if mark < item.needs <= until]
