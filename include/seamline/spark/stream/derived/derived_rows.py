"""What the driver keeps of rows from which others are derived: indexes of joins and of tables, tails of processes."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from pathlib import Path

from seamline.kernel.kernel_result import KernelResult
from seamline.model.protocol.epoch import Epoch
from seamline.spark.stream.derived.changed_rows import ChangedRows
from seamline.spark.stream.derived.folded_rows import FoldedRows
from seamline.spark.stream.derived.joined_rows import JoinedRows
from seamline.spark.stream.derived.restated_log import RestatedLog
from seamline.spark.stream.epoch_writer import Writer


class DerivedRows:
    """The indexes and the tails of one pipeline; files are below ``folder``. All are caches of the master's rows."""

    def __init__(self, writer: Writer, folder: Path) -> None:
        self.source = RestatedLog(writer)
        self.joined, self.folded = JoinedRows(writer, folder, self.source), FoldedRows(writer, self.source)
        self.changed = ChangedRows(writer, folder.with_name("changed"), self.source)

    @property
    def any(self) -> bool:
        """Return whether views of the pipeline count derived rows."""
        return bool(self.joined.joins or self.folded.processes or self.changed.changelogs)

    def join(self, number: int, result: KernelResult, views: Collection[str], mark: datetime | None) -> None:
        """Add the states of what an epoch that was read adds to joined rows, and changes in tables."""
        self.joined.derive(number, result, views, mark)
        self.changed.derive(number, result, views, mark)

    def fold(self, epoch: Epoch, result: KernelResult, views: Collection[str], mark: datetime | None) -> None:
        """Add the states of what an epoch, whose watermark is known, changes in emitted rows; ``mark`` is that of E."""
        if epoch.restated > self.source.writer.restated:
            result.failed |= self.source.list_restated_views(epoch.restated)
        self.folded.derive(epoch, result, views, mark)

    def commit(self, epoch: Epoch) -> None:
        """Take note that an epoch is committed."""
        self.joined.commit(epoch)
        self.changed.commit(epoch)
        self.folded.commit(epoch)

    def forget(self) -> None:
        """Forget all: an epoch has failed, and nobody knows whether it is committed."""
        self.joined.forget()
        self.changed.forget()
        self.folded.forget()
