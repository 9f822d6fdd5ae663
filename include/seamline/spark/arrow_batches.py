"""How the records of an epoch are cut into the Arrow batches that a Python task is handed.

Spark can end a batch by its bytes, but measures all of it anew after each record, which costs more than reading them
from Kafka. Where the records of the epoch before were small, so is a batch of a number of them, and Spark only counts.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

MOST_BYTES = 64 << 20
"""What a batch should hold at most: the JVM and Python have one in memory for each task."""
UNMEASURED = 2**31 - 1
"""What Spark takes for no limit, and does not measure."""


@dataclass(frozen=True)
class Cut:
    """The most records, and bytes, of a batch."""

    records: int
    bytes: int

    def apply(self, spark: SparkSession) -> None:
        """Let the session's next query cut its batches so."""
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(self.records))
        spark.conf.set("spark.sql.execution.arrow.maxBytesPerBatch", str(self.bytes))


MEASURED = Cut(50_000, MOST_BYTES)
COUNTED = Cut(2_000, UNMEASURED)


def cut(record_bytes: int) -> Cut:
    """Choose by the bytes of a record, by and large, in the epoch before; 0 where nothing is known of it.

    Should records grow thirty times from one epoch to the next, a batch still fits a driver's heap; where it does
    not, the attempt fails, and nothing is known for the next one.
    """
    small = 0 < record_bytes * COUNTED.records <= MOST_BYTES
    return COUNTED if small else MEASURED
