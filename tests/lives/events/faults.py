"""What may befall a process at a commit or at a failpoint, and what its disk keeps of it."""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any
from unittest.mock import patch

from seamline.lake.storage import durability
from seamline.lake.store import created_files
from seamline.lake.store.locations import Location
from seamline.lake.store.object_path import ObjectPath
from seamline.runtime import failpoints


class Died(BaseException):
    """The process is gone; nothing in it may take that for an error."""


class Mishap(StrEnum):
    """What happens at a commit."""

    DIES_BEFORE = "dies before it"
    DIES_AFTER = "dies after it"
    FAILS = "is told that it failed, as it did"
    LANDS = "is told that it failed, though it landed"
    TAKEN = "is told that its version was taken, by itself"


@dataclass
class Disk:
    """Every commit in order, and by device and inode the files that were synced, and those whose folder was since."""

    commits: list[Path] = field(default_factory=list)
    synced: set[tuple[int, int]] = field(default_factory=set)
    named: set[tuple[int, int]] = field(default_factory=set)

    def flushed(self, path: Path, flags: int, sync: object) -> None:
        """Remember that a file, a folder with all that is in it by now, or everything was synced."""
        if sync is durability.file_system:
            everything = {key_of(each) for each in self.commits if each.exists()}
            self.synced |= everything
            self.named |= everything
        elif flags & os.O_DIRECTORY:
            self.named |= {key_of(each) for each in path.iterdir() if each.is_file()}
        else:
            self.synced.add(key_of(path))

    def keeps(self, file: Path) -> bool:
        """Return whether a file survives: its content was synced, and then the folder that names it."""
        return (key := key_of(file)) in self.synced and key in self.named


def key_of(path: Location) -> tuple[int, int]:
    """Describe a file whatever its name, and an object by its tag."""
    if isinstance(path, ObjectPath):
        if (entry := path.bucket.head(path.key)) is None:
            raise FileNotFoundError(path)
        return 0, hash(entry.tag)
    found = path.stat()
    return found.st_dev, found.st_ino


@dataclass
class Fates:
    """What happens at the commits and failpoints of one process; ``commits`` count those of a single operation."""

    disk: Disk = field(default_factory=Disk)
    at: int = -1
    mishap: Mishap = Mishap.DIES_BEFORE
    table: str = ""
    point: str = ""
    passed: int = 0
    struck: bool = False
    before: Any = None

    def ask(self, mishap: Mishap, at: int, table: str = "") -> None:
        """Let something happen at the ``at``-th commit from now on, of a table of that name if it has one."""
        self.mishap, self.at, self.table, self.passed, self.struck = mishap, at, table, 0, False

    def strike(self, point: str) -> None:
        """Let the process die at a failpoint."""
        self.point, self.struck = point, False

    def clear(self) -> None:
        """Let nothing more happen."""
        self.at, self.point, self.before = -1, "", None

    def link(self, draft: Path, entry: Path) -> bool:
        """Commit, unless something happens."""
        root, version = entry.parents[1], int(entry.stem)
        if self.before is not None:
            self.before(root)
        meant = self.at >= 0 and (not self.table or root.name == self.table)
        now = meant and self.passed == self.at
        self.passed += meant
        if not now:
            return self.landed(draft, entry)
        self.at, self.struck = -1, True
        match self.mishap:
            case Mishap.DIES_BEFORE:
                raise Died(f"before version {version} of {root.name}")
            case Mishap.FAILS:
                raise OSError(errno.ENOSPC, "no space is left")
        self.landed(draft, entry)
        match self.mishap:
            case Mishap.DIES_AFTER:
                raise Died(f"after version {version} of {root.name}")
            case Mishap.LANDS:
                raise OSError(errno.EIO, "no answer")
        return False

    def landed(self, draft: Path, entry: Path) -> bool:
        """Commit for good."""
        done = LINK(draft, entry)
        if done:
            self.disk.commits.append(entry)
        return done

    def reach(self, point: str, *_: object, **__: object) -> None:
        """Die at a failpoint that was asked for."""
        if point == self.point:
            self.point, self.struck = "", True
            raise Died(f"at {point}")


LINK = created_files.link_draft


class Victim:
    """In the place of the processes that a failpoint strikes."""

    def strike(self, victim: str) -> None:
        """Be gone."""
        raise Died(victim)


@contextmanager
def fateful(fates: Fates) -> Iterator[None]:
    """Let commits and failpoints of this process go by its fates, and note what is synced."""

    class Passed(Counter[str]):
        def __getitem__(self, point: str) -> int:
            return 0

        def __setitem__(self, point: str, _: int) -> None:
            fates.reach(point)

    with ExitStack() as stack:
        stack.enter_context(patch.object(created_files, "link_draft", fates.link))
        stack.enter_context(patch.object(failpoints, "passed", Passed()))
        stack.enter_context(patch.object(durability, "sync_or_exit", fates.disk.flushed))
        stack.enter_context(patch.dict(os.environ, SEAMLINE_FSYNC="on"))
        yield
