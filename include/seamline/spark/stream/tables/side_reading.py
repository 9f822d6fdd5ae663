"""What a driver reads between the micro-batches of topics: holes, files that are imported, and tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from seamline.model.errors import SeamlineError
from seamline.model.protocol.control import Control
from seamline.model.protocol.epoch import Epoch
from seamline.spark.session.attempt_notes import Attempted
from seamline.spark.stream.epoch_maker import Epochs
from seamline.spark.stream.hole_filling import Filler
from seamline.spark.stream.imports.importing import Importer
from seamline.spark.stream.tables.table_reading import TableReading


class SideReading:
    """Reads a step of each; the caller sees to it that no other epoch is made meanwhile."""

    def __init__(self, epochs: Epochs, ledger: Sequence[Epoch], folder: Path, *, alone: bool) -> None:
        self.filler = Filler(epochs, ledger, Attempted(folder / "fill.json"))
        self.importer = Importer(epochs, ledger, folder, alone=alone)
        self.tables = TableReading(epochs)

    def work(self, spark: SparkSession, asked: Control, *, stopping: bool) -> BaseException | None:
        """Do the next step of what people have asked for, and of what is new in tables.

        Return what an epoch over a table has failed with, which a smaller one may not; raise SeamlineError.
        """
        self.filler.work(spark, asked.fills)
        self.importer.work(spark, asked.imports)
        try:
            self.tables.work(spark, stopping=stopping)
        except SeamlineError:
            raise
        except Exception as error:  # noqa: BLE001 - it is tried again, as a micro-batch is
            return error
        return None
