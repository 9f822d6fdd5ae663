"""One pass of a transfer: files copied side by side, each read again where it arrived."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from enum import Enum, auto

from seamline.lake.store.file_copies import PIECE, copy_file, digest_file
from seamline.lake.store.locations import Location, delete_files
from seamline.model.errors import SetupError
from seamline.plan.maintain.transfers import FoundFile, Transfer
from seamline.runtime.failpoints import hit_failpoint

AT_ONCE = 16
LARGE_AT_ONCE = 4
"""How many files of more than a piece are under way at once: each holds up to three pieces of 8 MB in memory."""


class Carried(Enum):
    """What became of a file: COPIED now, SAME as it was there, or GONE from the source since it was listed."""

    COPIED = auto()
    SAME = auto()
    GONE = auto()


@dataclass
class Tally:
    """What the passes of a move have done so far."""

    copied: int = 0
    """Files."""
    compared: int = 0
    """Files that were there, and the same."""
    deleted: int = 0
    """Files that the source has no more."""


def run_transfer(
    source: Location, to: Location, transfer: Transfer, tally: Tally, tell: Callable[[int], object]
) -> dict[str, FoundFile]:
    """Do what a pass has to do, and return the files that are verified.

    ``tell`` is called after each file with its bytes. A file that has gone meanwhile is left out. SetupError if the
    destination returns something else than was written there.
    """
    large = threading.Semaphore(LARGE_AT_ONCE)
    compared = {each.way for each in transfer.compared}

    def one(found: FoundFile) -> tuple[FoundFile, Carried]:
        with large if found.size > PIECE else nullcontext():
            return found, carry_file(source / found.way, to / found.way, found, there=found.way in compared)

    verified: dict[str, FoundFile] = {}
    delete_files(to / way for way in transfer.deleted)
    tally.deleted += len(transfer.deleted)
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="move") as threads:
        try:
            for stage in transfer.stages():
                for found, carried in threads.map(one, stage):
                    tell(found.size)
                    if carried is not Carried.GONE:
                        verified[found.way] = found
                        tally.copied += carried is Carried.COPIED
                        tally.compared += carried is Carried.SAME
        except BaseException:
            threads.shutdown(wait=False, cancel_futures=True)
            raise
    return verified


def carry_file(place: Location, to: Location, found: FoundFile, *, there: bool) -> Carried:
    """Copy a file, if it is not ``there`` as it is here, and verify it."""
    try:
        if there and digest_file(place, found.size) == digest_file(to, found.size):
            return Carried.SAME
        written = copy_file(place, to, found)
    except FileNotFoundError:
        if place.exists():
            raise
        return Carried.GONE
    if digest_file(to, found.size) != written:
        raise SetupError(
            f"{to} is not what was written there: its SHA-256 is another.",
            hint="check the disk or the store, then run this again. Nothing is lost in the old warehouse.",
        )
    hit_failpoint("moved")
    return Carried.COPIED
