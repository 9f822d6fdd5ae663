"""The files of indexes of joined rows: a driver goes on with those that its predecessor has left, where they fit."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Collection
from contextlib import ExitStack
from pathlib import Path

import duckdb

from seamline.lake.engine.joined_index import JoinedIndex
from seamline.lake.joins.index_stamp import IndexStamp
from seamline.lake.joins.log_stamps import LogStamps, LogWriter
from seamline.model.compile.compiled_join import CompiledJoin

log = logging.getLogger("seamline.stream")


class IndexFiles:
    """The files below ``folder``, one for each of some joins, by their ids; those of others are deleted."""

    def __init__(self, writer: LogWriter, folder: Path, joins: Collection[str]) -> None:
        self.stamps, self.folder = LogStamps(writer), folder
        names = {name_folder(id) for id in joins}
        for each in folder.glob("*"):
            if each.name not in names:
                shutil.rmtree(each, ignore_errors=True)

    def open(self, join: CompiledJoin) -> tuple[JoinedIndex, IndexStamp | None]:
        """Open the index that is there, with its stamp, if it has rows of this log; else an empty one."""
        place = self.folder / name_folder(join.id)
        try:
            index = JoinedIndex(join, place)
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
        return JoinedIndex(join, place), None

    def delete(self, join: CompiledJoin) -> None:
        """Delete an index; a process that has it open goes on with a file that has no name any more."""
        shutil.rmtree(self.folder / name_folder(join.id), ignore_errors=True)


def name_folder(id: str) -> str:
    """Name the folder of a join's index."""
    return id.replace("/", "-")
