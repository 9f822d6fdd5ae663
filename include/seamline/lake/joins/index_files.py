"""The files of indexes of joined rows: a driver goes on with those that its predecessor has left, where they fit."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Collection
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import duckdb

from seamline.lake.engine.joined_index import JoinedIndex
from seamline.lake.joins.index_stamp import IndexStamp
from seamline.lake.log.ledger import Ledger
from seamline.lake.log.master import Master
from seamline.model.compile.compiled_join import CompiledJoin
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.seam import NOTHING

log = logging.getLogger("seamline.stream")


class LogWriter(Protocol):
    """Where a log stands, as its writer knows it."""

    @property
    def pipeline(self) -> CompiledPipeline:
        """The definition."""

    @property
    def master(self) -> Master:
        """The master."""

    @property
    def ledger(self) -> Ledger:
        """The ledger with the row of every epoch."""

    @property
    def restated(self) -> int:
        """How many restatements joined rows are made with."""


class IndexFiles:
    """The files below ``folder``, one for each of some joins, by their ids; those of others are deleted."""

    def __init__(self, writer: LogWriter, folder: Path, joins: Collection[str]) -> None:
        self.writer, self.folder = writer, folder
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
                if found and self.is_of_log(found):
                    closing.pop_all()
                    return index, found
        self.delete(join)
        return JoinedIndex(join, place), None

    def delete(self, join: CompiledJoin) -> None:
        """Delete an index; a process that has it open goes on with a file that has no name any more."""
        shutil.rmtree(self.folder / name_folder(join.id), ignore_errors=True)

    def is_of_log(self, stamp: IndexStamp) -> bool:
        """Return whether an index has the rows of an epoch of the log, as they are to be made now."""
        row = self.find_row(stamp.epoch)
        return row is not None and stamp == replace(
            self.stamp(row, stamp.horizon), restated=self.writer.restated
        )

    def find_row(self, number: int) -> Epoch | None:
        """Return the ledger's row of an epoch, None for none."""
        return next(iter(self.writer.ledger.read_after(number - 1, number)), None)

    def stamp(self, epoch: Epoch | None, horizon: int | None) -> IndexStamp:
        """Stamp an index that has taken in an epoch; None is that of an empty log."""
        table, version = (
            self.writer.master.table.id,
            self.writer.pipeline.record_version,
        )
        if epoch is None:
            return IndexStamp(table, NOTHING, "", version, 0, horizon)
        return replace(IndexStamp.of(table, epoch, horizon), record_version=version)


def name_folder(id: str) -> str:
    """Name the folder of a join's index."""
    return id.replace("/", "-")
