"""A run of the driver for imports alone, under the stream's lease, while no stream runs."""

from __future__ import annotations

import logging

from seamline.lake.tables.control_table import Desired
from seamline.model.errors import SeamlineError
from seamline.runtime.storage_failures import translate_store_errors
from seamline.spark.stream.driver_end import TRIED_AGAIN
from seamline.spark.stream.driver_loop import Driver

log = logging.getLogger("seamline.stream")


class ImportRun(Driver):
    """Imports what was asked for, and ends; or as soon as somebody wants the stream, whose driver goes on with it."""

    alone = True

    def run(self) -> None:
        """Register, read and close until nothing is left; raise what is wrong with the files."""
        self.epochs.write_heartbeat("importing")
        halted: SeamlineError | None = None
        while not self.stopping.is_set():
            self.poll_control()
            if self.asked.desired is Desired.RUNNING:
                log.info("The stream is wanted: its driver goes on with the import")
                break
            try:
                with translate_store_errors():
                    self.side.importer.work(self.spark, self.asked.imports)
            except TRIED_AGAIN as error:
                self.count_failure(error)
            else:
                self.epochs.retries = 0
                halted = self.side.importer.halted
                if halted or not self.side.importer.pending:
                    break
        self.finish(None)
        if halted:
            raise halted
