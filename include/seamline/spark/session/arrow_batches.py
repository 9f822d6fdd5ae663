"""How large the Arrow batches are in which a Python task is handed the records of an epoch.

Spark can end a batch by its bytes, but measures all of it again after each record, which costs more than reading them
from Kafka. Where the records of the epoch before were small, so is a batch of a number of them, and Spark only counts.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

MOST_BYTES = 64 << 20
"""What a batch should contain at most: the JVM and Python have one in memory for each task."""
FEW_BYTES = 8 << 20
"""What one that is only counted should contain: its records may turn out to be a hundred times as large."""
UNMEASURED = 2**31 - 1
"""What Spark takes for no limit, and does not measure."""


@dataclass(frozen=True)
class BatchSize:
    """The upper bounds of a batch."""

    records: int
    """The most records."""
    bytes: int
    """The most bytes; ``UNMEASURED`` for no bound."""

    def apply(self, spark: SparkSession) -> None:
        """Let the session's next queries hand over batches of this size."""
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(self.records))
        spark.conf.set("spark.sql.execution.arrow.maxBytesPerBatch", str(self.bytes))


MEASURED = BatchSize(50_000, MOST_BYTES)
COUNTED = BatchSize(2_000, UNMEASURED)


def batch_size(record_bytes: int) -> BatchSize:
    """Choose by the bytes of a record, by and large, in the epoch before; 0 if nothing is known of it.

    Should records be several hundred times as large from one epoch to the next, the JVM runs out of memory and the
    driver ends. The next one knows nothing of them, measures, and reads them.
    """
    small = 0 < record_bytes * COUNTED.records <= FEW_BYTES
    return COUNTED if small else MEASURED
