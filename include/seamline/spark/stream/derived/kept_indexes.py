"""Indexes of rows from which others are derived, kept by the driver: each stands at E, or is made again.

A view whose rows cannot be derived is behind, and is caught up from the master (rule 6).
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

import duckdb
import pyarrow as pa

from seamline.kernel.kernel_result import KernelResult
from seamline.lake.engine.stamped_file import StampedFile
from seamline.lake.joins.index_files import Indexed, IndexFiles
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.errors import NotRestatable
from seamline.model.protocol.epoch import Epoch
from seamline.spark.stream.derived.restated_log import RestatedLog
from seamline.spark.stream.epoch_writer import Writer

log = logging.getLogger("seamline.stream")
D = TypeVar("D", bound=Indexed)
X = TypeVar("X", bound=StampedFile)


@dataclass
class Kept(Generic[X]):
    """One index."""

    index: X
    """The rows."""
    epoch: int
    """The last epoch that it has taken in."""
    horizon: int | None
    """The event time, in microseconds, from which on it has all rows; None for all."""
    restated: int
    """How many restatements its rows are made with."""
    pending: tuple[int, Any] | None = None
    """The number of the epoch that is being committed, and its rows."""
    age: int = 0
    """Epochs since it was looked after."""


class KeptIndexes(ABC, Generic[D, X]):
    """The indexes of what a pipeline derives rows by, in one of the ways there are."""

    files: IndexFiles[D, X]
    """Where they are."""
    restates = True
    """Whether restatements change the rows."""
    refusals: tuple[type[Exception], ...] = ()
    """What says of an epoch that nothing can be derived from it here; the index is as it was."""

    def __init__(self, writer: Writer, source: RestatedLog, made: Mapping[str, D]) -> None:
        self.writer, self.source, self.made = writer, source, made
        self.pipeline: CompiledPipeline = writer.pipeline
        self.kept: dict[str, Kept[X]] = {}
        self.failed: set[str] = set()
        """Those whose rows could not be read the last time, by their ids."""

    @abstractmethod
    def gather(self, made: D, result: KernelResult) -> Any:
        """Return the rows of an epoch that tasks report."""

    @abstractmethod
    def open(self, made: D, mark: datetime | None) -> Kept[X]:
        """Return an index, made from the master where there is none that stands at E."""

    @abstractmethod
    def derive_states(
        self, made: D, kept: Kept[X], rows: Any, wanted: Collection[CompiledView], result: KernelResult
    ) -> None:
        """Add the states of views of the rows that an epoch's rows add."""

    @abstractmethod
    def take_in(self, made: D, kept: Kept[X], rows: Any, epoch: Epoch) -> None:
        """Take the rows of an epoch that is committed into an index."""

    def derive(
        self, number: int, result: KernelResult, views: Collection[str], mark: datetime | None
    ) -> None:
        """Add the states of what an epoch adds to derived rows, or why one of ``views`` has none, to its result."""
        doubt = self.source.find_doubt() if self.made and not self.stands() else ""
        for id, made in self.made.items():
            mine = [view for view in self.pipeline.views if view.derived and view.derived.id == id]
            why = doubt
            if not why:
                try:
                    self.derive_one(made, mine, (number, self.gather(made, result)), result, views, mark)
                except self.refusals as error:
                    why = str(error)
                except NotRestatable as error:
                    why = error.message
                    self.drop(id)
                except (duckdb.Error, pa.ArrowException) as error:
                    why = f"{type(error).__name__}: {error}"
                    self.drop(id)
                    self.doubt_file(made)
            if why:
                result.failed |= dict.fromkeys((view.id for view in mine if view.id in views), why)

    def derive_one(
        self,
        made: D,
        mine: Iterable[CompiledView],
        new: tuple[int, Any],
        result: KernelResult,
        views: Collection[str],
        mark: datetime | None,
    ) -> None:
        """Add the states of the views of one index; ``new`` are the rows of an epoch, and its number."""
        wanted = [view for view in mine if view.id in views]
        kept = self.open(made, mark) if wanted else self.kept.get(made.id)
        if kept is None:
            return
        # They are taken in whatever becomes of what is derived.
        kept.pending = new
        if wanted:
            self.derive_states(made, kept, new[1], wanted, result)
            self.failed.discard(made.id)

    def stands(self) -> bool:
        """Return whether all indexes that there are stand at E."""
        return bool(self.kept) and all(each.epoch == self.writer.master.epoch for each in self.kept.values())

    def find_standing(self, id: str) -> Kept[X] | None:
        """Return an index if it stands at E; else drop it."""
        kept = self.kept.get(id)
        if kept and kept.epoch == self.writer.master.epoch and kept.pending is None:
            return kept
        self.drop(id)
        return None

    def commit(self, epoch: Epoch) -> None:
        """Take in the rows of the epoch that is committed now.

        An index that did not stand before it, or has seen the rows of another attempt, is made again, as is one whose
        rows the epoch restates.
        """
        for id, kept in list(self.kept.items()):
            number, rows = kept.pending or (epoch.number, None)
            if self.restates and epoch.restated != kept.restated:
                self.drop(id)
                continue
            if kept.epoch != epoch.before or number != epoch.number or (rows is None and epoch.accepted):
                self.drop(id)
                continue
            kept.epoch, kept.pending = epoch.number, None
            if rows is None:
                continue
            try:
                self.take_in(self.made[id], kept, rows, epoch)
            except duckdb.Error as error:
                log.warning("The rows of %s must be read again: %s", self.made[id].name, error)
                self.drop(id)

    def drop(self, id: str) -> None:
        """Forget one index."""
        if kept := self.kept.pop(id, None):
            kept.index.close()

    def doubt_file(self, made: D) -> None:
        """Delete the file of an index that has failed twice in a row: its stamp fits, whatever its rows are."""
        if made.id in self.failed:
            self.files.delete(made)
        self.failed ^= {made.id}

    def forget(self) -> None:
        """Forget all: an epoch has failed, and nobody knows whether it is committed."""
        for id in list(self.kept):
            self.drop(id)
