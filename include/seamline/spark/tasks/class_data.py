"""An archive of the classes that a driver's JVM loads, so that the next JVM starts in half the time.

Java calls it class-data sharing (JEP 350). Java looks at the archive itself: one of another Java or of other jars is
left alone without a word, and classes are loaded as if there were none.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from seamline.runtime.java import QUIET

LEAVE_WITHIN = 120.0
CONNECT_TO_NOBODY = {
    "bootstrap.servers": "127.0.0.1:1",
    "key.deserializer": "org.apache.kafka.common.serialization.ByteArrayDeserializer",
    "value.deserializer": "org.apache.kafka.common.serialization.ByteArrayDeserializer",
}


def write_class_archive(file: Path) -> None:
    """Start a Spark, do once what drivers do, and write the classes it has loaded when its JVM ends."""
    from seamline.spark.session.session import open_spark_session

    file.unlink(missing_ok=True)
    spark = open_spark_session("classes", cores="local[2]", java=f'"-XX:ArchiveClassesAtExit={file}" {QUIET}')
    gateway: Any = spark.sparkContext._gateway  # noqa: SLF001
    with tempfile.TemporaryDirectory() as folder:
        exercise_stream(spark, Path(folder))
        exercise_build(spark, Path(folder))
        exercise_kafka_clients(gateway.jvm)
    process: subprocess.Popen[bytes] = gateway.proc
    spark.stop()
    gateway.shutdown()
    assert process.stdin
    process.stdin.close()
    process.wait(LEAVE_WITHIN)


def exercise_stream(spark: SparkSession, folder: Path) -> None:
    """Run micro-batches through Python tasks, as the stream's driver does."""
    from seamline.spark.tasks.task import warm_worker_task, warm_workers

    warm_workers(spark)

    def on_batch(frame: DataFrame, _: int) -> None:
        frame.mapInArrow(warm_worker_task, "ready BOOLEAN").toArrow()

    rates = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    writer = rates.writeStream.foreachBatch(on_batch).option("checkpointLocation", str(folder / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()


def exercise_build(spark: SparkSession, folder: Path) -> None:
    """Spread work as a build does; write a Delta table, aggregate it, and write files, as its general way does."""
    from seamline.spark.tasks.spread import run_in_tasks

    run_in_tasks(spark, lambda number: [("kind", b"%d" % number)], 2)
    rows = spark.range(0, 100, 1, 2).selectExpr(
        "id", "id % 7 AS key", "CAST(id AS STRING) AS name", "timestamp_seconds(id) AS at", "id / 3.0D AS x"
    )
    rows.write.format("delta").save(str(folder / "table"))
    kept = spark.read.format("delta").load(str(folder / "table")).where("at >= timestamp_seconds(10)")
    kept = kept.selectExpr("*", "row_number() OVER (PARTITION BY key ORDER BY id) AS place").persist()
    kept.groupBy("key").agg({"x": "sum", "name": "max", "*": "count"}).collect()
    states = kept.groupBy("key").agg({"x": "max", "id": "sum"}).repartition("key")
    states.toDF("key", "most", "whole").write.partitionBy("key").option("compression", "zstd").parquet(
        str(folder / "states")
    )
    kept.unpersist()


def exercise_kafka_clients(jvm: Any) -> None:
    """Make the clients of Kafka's that a driver has; there is nobody to talk to."""
    settings = jvm.java.util.Properties()
    for name, value in CONNECT_TO_NOBODY.items():
        settings.setProperty(name, value)
    jvm.org.apache.kafka.clients.consumer.KafkaConsumer(settings).close()
    jvm.org.apache.kafka.clients.admin.AdminClient.create(settings).close()


if __name__ == "__main__":
    write_class_archive(Path(sys.argv[1]))
