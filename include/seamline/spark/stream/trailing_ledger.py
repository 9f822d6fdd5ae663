"""The ledger of a writer, whose newest row may still be on its way: in a bucket the next epoch is made meanwhile.

That an epoch is committed, the master says, and readers take its row from there. So the ledger may be behind by one;
it is whole before anything else is committed, and whenever the writer asks for it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from seamline.lake.log.ledger import Ledger
from seamline.lake.storage.data_files import DataFile
from seamline.model.protocol.epoch import Epoch
from seamline.spark.stream.commit_threads import CommitThreads


class TrailingLedger:
    """A ledger, and what is on its way to it."""

    def __init__(self, ledger: Ledger, threads: CommitThreads) -> None:
        self.ledger, self.threads = ledger, threads
        self.ends: Callable[[], None] | None = None
        """Waits for the row on its way; it is kept where that has failed, so that nothing follows it."""

    def follow(self, epoch: Epoch, written: DataFile) -> None:
        """Add the row of an epoch that the master has: on disk at once, in a bucket beside what follows."""
        if self.threads.early:
            self.ends = self.threads.begin(self.ledger.append_file, [epoch], written)
        else:
            self.ledger.append_file([epoch], written)

    def whole(self) -> Ledger:
        """Return the ledger with every row; raises what the commit of the newest has raised, each time."""
        if self.ends:
            self.ends()
            self.ends = None
        return self.ledger

    def forget(self) -> Ledger:
        """Return the ledger when nothing is on its way any more, whatever became of it: it is to be repaired."""
        with suppress(Exception):
            self.whole()
        self.ends = None
        return self.ledger
