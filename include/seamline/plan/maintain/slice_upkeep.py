"""What upkeep does: which slices are merged or removed, and which files nobody can ever commit."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from seamline.model.protocol.seam import NOTHING

WRITTEN = re.compile(r"(?P<token>\d{6,})-(?P<first>\d{12,})-(?P<more>\d+)(-[0-9a-f]{32})?\.parquet")
UPKEPT = re.compile(r"upkeep-(?P<version>\d{12,})-\d{12,}-\d{12,}-[0-9a-f]{32}\.parquet")
EPOCH_DIGITS = 12


class KnownNumbers(Protocol):
    """Numbers of which it is known whether they are among them."""

    def __contains__(self, number: int, /) -> bool: ...


@dataclass(frozen=True)
class CommittedEpochs:
    """The epochs that the master has."""

    numbers: KnownNumbers
    """Their numbers."""
    edges: tuple[int, ...] = ()
    """The edges among them, ascending."""
    last: int = NOTHING
    """E."""

    def dead(self, number: int) -> bool:
        """Return whether an epoch can never be committed any more: it is not, but a higher one is (rule 2)."""
        return number not in self.numbers and number < self.last


@dataclass(frozen=True)
class Block:
    """The epochs between two neighbouring edges."""

    first: int
    """The first, in."""
    last: int
    """The last, in."""


@dataclass(frozen=True)
class Piece:
    """A live file of slices."""

    path: str
    """Its path."""
    size: int
    """Its bytes."""
    first: int
    """The first epoch of its rows."""
    last: int
    """The last epoch of its rows."""
    unpacked: int = 0
    """Its bytes in memory, where asked."""


@dataclass(frozen=True)
class Merge:
    """Replace some files; no row may cross from one block to the next."""

    blocks: tuple[Block, ...]
    """One file is written for each."""
    pieces: tuple[Piece, ...]
    """The files that are replaced."""


@dataclass(frozen=True)
class Compaction:
    """What to do with one view's slices."""

    merges: tuple[Merge, ...]
    """What is merged."""
    dead: tuple[Piece, ...]
    """Files of dead epochs alone."""
    open: int
    """How many files wait for their block's edge, or for the view."""


def blocks_between(bounds: Iterable[int], *, until: int) -> list[Block]:
    """List the blocks (bound, next bound] that end at or below ``until``, from the first epoch on."""
    known = sorted({NOTHING, *(bound for bound in bounds if bound <= until)})
    return [Block(low + 1, high) for low, high in pairwise(known)]


def plan_compaction(pieces: Iterable[Piece], held: CommittedEpochs, blocks: Sequence[Block]) -> Compaction:
    """Merge what several pieces share a block of, and remove what dead epochs left (rules 2 and 9).

    A piece over several blocks (a catch-up) ties them together; a block of one piece is left alone.
    """
    dead: list[Piece] = []
    live: list[Piece] = []
    for piece in pieces:
        (dead if piece.first == piece.last and held.dead(piece.last) else live).append(piece)
    ends = [block.last for block in blocks]
    merges: list[Merge] = []
    waiting = 0
    for group in group_by_block(live, ends):
        low, high = bisect_left(ends, group[0].first), max(bisect_left(ends, piece.last) for piece in group)
        if high >= len(blocks):
            waiting += len(group)
        elif has_shared_block(group, ends):
            merges.append(Merge(tuple(blocks[low : high + 1]), tuple(group)))
    return Compaction(tuple(merges), tuple(dead), waiting)


def list_compacted_pieces(
    pieces: Iterable[Piece], held: CommittedEpochs, blocks: Sequence[Block]
) -> list[Piece]:
    """List the pieces that compaction leaves alone: they share no block, their own are closed, their rows committed."""
    ends = [block.last for block in blocks]
    groups = group_by_block(
        (each for each in pieces if each.first != each.last or each.first in held.numbers), ends
    )
    return [
        piece
        for group in groups
        for piece in group
        if not has_shared_block(group, ends) and bisect_left(ends, piece.last) < len(blocks)
    ]


def group_by_block(pieces: Iterable[Piece], ends: Sequence[int]) -> list[list[Piece]]:
    """Group pieces, in the order of their epochs, so that no block is shared between groups."""
    groups: list[list[Piece]] = []
    reached = NOTHING
    for piece in sorted(pieces, key=lambda each: (each.first, each.last, each.path)):
        low, high = bisect_left(ends, piece.first), bisect_left(ends, piece.last)
        if groups and low <= reached:
            groups[-1].append(piece)
        else:
            groups.append([piece])
        reached = max(reached, high)
    return groups


def has_shared_block(group: Iterable[Piece], ends: Sequence[int]) -> bool:
    """Return whether two pieces, in the order of their epochs, meet in one block."""
    reached = NOTHING
    for piece in group:
        if bisect_left(ends, piece.first) <= reached:
            return True
        reached = bisect_left(ends, piece.last)
    return False


def find_orphan_reason(name: str, held: CommittedEpochs, *, token: int | None, upkept: int | None) -> str:
    """Say why nobody can ever commit the file of this name; empty while someone still might (rule 16).

    ``token`` is the newest in the table, ``upkept`` what its last upkeep left there: the version that it was
    decided on, and one. A file's age says nothing: a writer may sleep for a week and then commit.
    """
    if (found := UPKEPT.fullmatch(name)) and upkept is not None and int(found["version"]) < upkept:
        return "of an upkeep that another overtook"
    if (found := WRITTEN.fullmatch(name)) is None:
        return ""
    if token is not None and int(found["token"]) < token:
        return "of an older token"
    first = int(found["first"])
    last = int(found["more"]) if len(found["more"]) >= EPOCH_DIGITS else first
    return "of a dead epoch" if first == last and held.dead(first) else ""
