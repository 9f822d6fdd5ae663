"""Which files of a sink become one: few of each size stay, and one or a few of a folder that is no longer written."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from seamline.model.protocol.sinks.file_manifests import DataFile

FEW = 8
"""So many files of one size become one."""
SMALL = 64 << 10
"""Bytes: what is smaller is of the lowest level."""
QUIET = 3600.0
"""Seconds after its last file after which a folder counts as closed."""
MOST_BYTES = 256 << 20
"""What one merge reads at most."""


@dataclass(frozen=True)
class FileMerge:
    """Files of one folder that become one, or a few where that would be too large."""

    files: Sequence[DataFile]
    """The files."""
    whole: bool
    """Whether the folder has no others: rows that say that a row is gone are not needed any more then."""

    @property
    def bucket(self) -> str:
        """The folder."""
        return self.files[0].bucket


def plan_merge(
    files: Iterable[DataFile], now: float, size: int, *, history: bool = False
) -> FileMerge | None:
    """Return the next merge, None where nothing is to be merged; files are to have up to ``size`` bytes, about.

    With ``history`` rows that say that a row is gone stay.
    """
    folders: defaultdict[str, list[DataFile]] = defaultdict(list)
    for each in files:
        folders[each.bucket].append(each)
    for bucket in sorted(folders):
        own = sorted(folders[bucket], key=lambda each: (each.bytes, each.file))
        closed = now - max(each.at for each in own) >= QUIET
        chosen = choose_closed(own, size, history=history) if closed else choose_alike(own, size)
        if chosen:
            return FileMerge(chosen, whole=len(chosen) == len(own))
    return None


def choose_closed(files: Sequence[DataFile], size: int, *, history: bool) -> Sequence[DataFile]:
    """Choose from the files of a folder that is no longer written, the smallest first: all, as far as they go in."""
    wanted = -(-sum(each.bytes for each in files) // size)
    if sum(each.bytes for each in files) <= MOST_BYTES:
        gone = not history and any(each.deleted for each in files)
        return files if len(files) > max(wanted, 1) or gone else ()
    return choose_small(files, size)


def choose_small(files: Sequence[DataFile], size: int) -> Sequence[DataFile]:
    """Choose files that are smaller than half of what they may be, as many as a merge may read."""
    chosen, room = [], MOST_BYTES
    for each in files:
        room -= each.bytes
        if 2 * each.bytes < size and room >= 0:
            chosen.append(each)
    return chosen if len(chosen) > 1 else ()


def choose_alike(files: Sequence[DataFile], size: int) -> Sequence[DataFile]:
    """Choose several files of about one size: a row is written again only into a file many times as large."""
    alike: defaultdict[int, list[DataFile]] = defaultdict(list)
    for each in files:
        if 2 * each.bytes < size:
            alike[find_level(each.bytes)].append(each)
    return next((own[: 4 * FEW] for _, own in sorted(alike.items()) if len(own) >= FEW), ())


def find_level(size: int) -> int:
    """Return how many times a file is larger than a small one, in eights: several of one level are one of a higher."""
    return 0 if size < SMALL else 1 + ((size // SMALL).bit_length() - 1) // 3
