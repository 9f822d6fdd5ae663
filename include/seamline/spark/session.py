"""One Spark session as every job of ours wants it: local, quiet, UTC, Delta and Kafka on the class path."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

PACKAGES = Path(__file__).resolve().parents[2]
SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.databricks.delta.commit.idempotencyCheck.enabled": "true",
    "spark.databricks.delta.stats.skipping": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # A failing Python foreachBatch is matched by a regex that recurses: the default stack overflows.
    "spark.driver.extraJavaOptions": "-Xss8m -Duser.timezone=UTC",
}


def jars() -> list[Path]:
    """List Spark's extra jars: those of the folder SEAMLINE_JARS, or those that the bootstrap fetched."""
    if folder := os.environ.get("SEAMLINE_JARS"):
        place = Path(folder) / "spark" if (Path(folder) / "spark").is_dir() else Path(folder)
        return sorted(place.glob("*.jar"))
    from seamline.local.java import spark_jars

    return list(spark_jars())


def session(app: str, *, cores: str = "local[2]", memory: str = "2g") -> SparkSession:
    """Start Spark, or give the session that runs already; ``memory`` is the heap of the one JVM.

    Under spark-submit the name, the master and the memory are those of the submission. SEAMLINE_SPARK_UI=true gives
    it Spark's pages.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        builder = builder.appName(app).master(cores).config("spark.driver.memory", memory)
    listed = ",".join(map(str, jars()))
    builder = builder.config("spark.jars", listed).config("spark.executorEnv.PYTHONPATH", str(PACKAGES))
    shown = {"spark.ui.enabled": os.environ.get("SEAMLINE_SPARK_UI", SETTINGS["spark.ui.enabled"])}
    for name, value in {**SETTINGS, **shown}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark
