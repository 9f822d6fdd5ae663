"""The files of indexes: a driver goes on with those that its predecessor has left, where they fit."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Collection
from contextlib import ExitStack
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import duckdb

from seamline.lake.engine.stamped_file import StampedFile
from seamline.lake.joins.index_stamp import IndexStamp
from seamline.lake.joins.log_stamps import LogStamps, LogWriter

log = logging.getLogger("seamline.stream")


class Indexed(Protocol):
    """What has an index: a join, or a changelog."""

    @property
    def id(self) -> str:
        """Its id."""

    @property
    def name(self) -> str:
        """What people call it."""


D = TypeVar("D", bound=Indexed)
X = TypeVar("X", bound=StampedFile)


class IndexFiles(Generic[D, X]):
    """The files below ``folder``, one for each of some ids, as ``make`` opens them; those of others are deleted."""

    def __init__(
        self,
        writer: LogWriter,
        folder: Path,
        ids: Collection[str],
        make: Callable[[D, Path], X],
        *,
        restates: bool = True,
    ) -> None:
        self.stamps, self.folder, self.make = LogStamps(writer, restates=restates), folder, make
        names = {name_folder(id) for id in ids}
        for each in folder.glob("*"):
            if each.name not in names:
                shutil.rmtree(each, ignore_errors=True)

    def open(self, join: D) -> tuple[X, IndexStamp | None]:
        """Open the index that is there, with its stamp, if it has rows of this log; else an empty one."""
        place = self.folder / name_folder(join.id)
        try:
            index = self.make(join, place)
        except duckdb.Error as error:
            log.warning("The index of %s is made again: %s", join.name, error)
        else:
            with ExitStack() as closing:
                closing.callback(index.close)
                found = IndexStamp.from_json(index.stamp)
                if found and self.stamps.is_of_log(found):
                    closing.pop_all()
                    return index, found
        self.delete(join)
        return self.make(join, place), None

    def delete(self, join: D) -> None:
        """Delete an index; a process that has it open goes on with a file that has no name any more."""
        shutil.rmtree(self.folder / name_folder(join.id), ignore_errors=True)


def name_folder(id: str) -> str:
    """Name the folder of an index."""
    return id.replace("/", "-")
