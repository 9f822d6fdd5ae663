"""Packing: which small files become one, so that a table has files by its bytes and not by its epochs."""

from __future__ import annotations

from collections.abc import Iterable

from seamline.plan.maintain.slice_upkeep import CommittedEpochs, Piece

TARGET = 256 << 20
"""Bytes, unpacked, of files that become one: what upkeep keeps in memory. On disk JSON takes a quarter of it."""

JUMP = 1_000
"""Numbers: a file of the ledger spans no greater leap between two epochs."""


def filter_packable(pieces: Iterable[Piece], held: CommittedEpochs) -> list[Piece]:
    """Keep the files of epochs that the master contains; of several are those that were packed before.

    A foreign OPTIMIZE may have packed rows of dead epochs too: whoever reads them goes by the number in each row.
    """
    return [
        each
        for each in pieces
        if each.last <= held.last and (each.first != each.last or each.first in held.numbers)
    ]


def without_jumps(pieces: Iterable[Piece]) -> list[list[Piece]]:
    """Part files, in the order of their epochs, where numbers leap: a start that is sure of nothing takes far ones."""
    runs: list[list[Piece]] = []
    reached = 0
    for piece in sorted(pieces, key=lambda each: (each.first, each.last, each.path)):
        if not runs or piece.first - reached > JUMP:
            runs.append([])
        runs[-1].append(piece)
        reached = max(reached, piece.last)
    return runs


def plan_packing(pieces: Iterable[Piece], *, target: int = TARGET) -> list[tuple[Piece, ...]]:
    """Group neighbours, in the order of their epochs, into files of ``target`` bytes at most.

    A file of half the target is left alone. Of a group the largest is less than two thirds: so a byte is written again
    only into a file half as large again as the one it was in, and few of each size stay.
    """
    small = [piece for piece in pieces if 2 * piece.unpacked < target]
    small.sort(key=lambda each: (each.first, each.last, each.path))
    return [group for some in group_to_target(small, target) for group in split_unbalanced_run(some)]


def group_to_target(pieces: Iterable[Piece], target: int) -> list[tuple[Piece, ...]]:
    """Part pieces into runs of ``target`` bytes at most."""
    runs: list[tuple[Piece, ...]] = []
    room = 0
    for piece in pieces:
        room -= piece.unpacked
        if runs and room >= 0:
            runs[-1] += (piece,)
        else:
            runs.append((piece,))
            room = target - piece.unpacked
    return runs


def split_unbalanced_run(run: tuple[Piece, ...]) -> list[tuple[Piece, ...]]:
    """Keep a run whole where its largest file is less than two thirds of it, else what is before and after that."""
    if len(run) < 2:
        return []
    sizes = [piece.unpacked for piece in run]
    at = sizes.index(max(sizes))
    if sizes[at] < 2 * (sum(sizes) - sizes[at]):
        return [run]
    return [*split_unbalanced_run(run[:at]), *split_unbalanced_run(run[at + 1 :])]
