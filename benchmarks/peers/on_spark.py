"""What the peers on Spark share: a session as Seamline's streams have it, the topic, and the ads."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from benchmarks.ads import ADS, PER_CAMPAIGN
from seamline.runtime.java import jvm_options
from seamline.spark.session.session import open_spark_session

SCHEMA = (
    "user_id STRING, page_id STRING, ad_id INT, ad_type STRING, event_type STRING, ip_address STRING, "
    "event_time TIMESTAMP"
)
MEMORY = "4g"
COLLECTOR = "-XX:+UseG1GC"
"""Java's own choice, with all of the heap: they keep rows there."""

LARGE_STATES = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}


@dataclass(frozen=True)
class Peer:
    """What a peer was asked to do."""

    brokers: str
    topic: str
    folder: Path
    count: int
    epoch: int
    trigger: str = ""

    @classmethod
    def parse(cls) -> Peer:
        """Read the command line."""
        brokers, topic, folder, count, epoch, *trigger = sys.argv[1:]
        return cls(brokers, topic, Path(folder), int(count), int(epoch), *trigger)

    def spark(self, name: str, **settings: str) -> SparkSession:
        """Start Spark with two cores; ``settings`` have underscores for dots."""
        more = {key.replace("_", "."): value for key, value in settings.items()}
        return open_spark_session(
            name, memory=MEMORY, more=more, java=f"{jvm_options(COLLECTOR)} {COLLECTOR}"
        )

    def spark_of_large_states(self, name: str) -> SparkSession:
        """Start Spark with states in RocksDB, as its documentation advises for many keys, with changelogs."""
        spark = self.spark(name)
        for setting, value in LARGE_STATES.items():
            spark.conf.set(setting, value)
        return spark

    def records(self, spark: SparkSession) -> DataFrame:
        """Open the topic."""
        return (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", self.brokers)
            .option("subscribe", self.topic)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", str(self.epoch))
            .load()
        )

    def run(self, frame: DataFrame, on_batch: Callable[[DataFrame, int], None], mode: str = "append") -> None:
        """Run the query until every record was read, or for ever if there is a trigger."""
        began = [0]

        def told(batch: DataFrame, number: int) -> None:
            on_batch(batch, number)
            began[0] = min(began[0] + self.epoch, self.count)
            print(json.dumps({"at": time.time(), "rows": began[0]}), flush=True)

        query = (
            frame.writeStream.foreachBatch(told)
            .outputMode(mode)
            .option("checkpointLocation", str(self.folder / "checkpoint"))
            .trigger(processingTime=self.trigger or "0 seconds")
            .start()
        )
        while query.isActive and (self.trigger or began[0] < self.count):
            query.awaitTermination(0.2)
        if error := query.exception():
            raise error


def ads(spark: SparkSession) -> DataFrame:
    """Return the table of ads, small enough to be sent to every task."""
    rows = spark.range(ADS).selectExpr(
        "CAST(id AS INT) AS ad_id", f"CAST(id DIV {PER_CAMPAIGN} AS INT) AS campaign"
    )
    return f.broadcast(rows.cache())


def by_campaign(events: DataFrame, table: DataFrame) -> DataFrame:
    """Count views per campaign and ten seconds."""
    views = events.where("event_type = 'view'").join(table, "ad_id")
    return (
        views.groupBy("campaign", f.window("event_time", "10 seconds").alias("window"))
        .agg(f.count(f.lit(1)).alias("views"), f.max("event_time").alias("last_view"))
        .select("campaign", f.col("window.start").alias("window_start"), "views", "last_view")
    )
