"""Stamps of what is kept of a log's rows, as its writer knows the log: by these it knows what fits."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Protocol

from seamline.lake.joins.index_stamp import FORM, IndexStamp
from seamline.lake.log.ledger import Ledger
from seamline.lake.log.master import Master
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.seam import NOTHING


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


@dataclass(frozen=True)
class LogStamps:
    """The stamps of a writer's log."""

    writer: LogWriter
    """Who writes the log."""
    form: str = FORM
    """How what is stamped is kept."""
    restates: bool = True
    """Whether restatements change what is stamped."""

    def is_of_log(self, stamp: IndexStamp) -> bool:
        """Return whether an index has the rows of an epoch of the log, as they are to be made now."""
        row = self.find_row(stamp.epoch)
        return row is not None and stamp == self.stamp_now(row, stamp.horizon)

    def stamp_now(self, row: Epoch, horizon: int | None) -> IndexStamp:
        """Stamp what has the rows up to an epoch of the log, as they are to be made now."""
        return replace(self.stamp(row, horizon), restated=self.count_restated(self.writer.restated))

    def count_restated(self, count: int) -> int:
        """Count the restatements that what is stamped is made with, of so many that there are."""
        return count if self.restates else 0

    def find_row(self, number: int) -> Epoch | None:
        """Return the ledger's row of an epoch, None for none."""
        return next(iter(self.writer.ledger.read_after(number - 1, number)), None)

    def find_rows(self, numbers: Collection[int]) -> dict[int, Epoch]:
        """Return the ledger's rows of some epochs, by their numbers."""
        return self.writer.ledger.read_some(numbers)

    def stamp(self, epoch: Epoch | None, horizon: int | None) -> IndexStamp:
        """Stamp what has taken in an epoch; None is that of an empty log."""
        table, version = self.writer.master.table.id, self.writer.pipeline.record_version
        if epoch is None:
            return IndexStamp(table, NOTHING, "", version, 0, horizon, self.form)
        restated = self.count_restated(epoch.restated)
        made = IndexStamp.of(table, epoch, horizon)
        return replace(made, record_version=version, form=self.form, restated=restated)
