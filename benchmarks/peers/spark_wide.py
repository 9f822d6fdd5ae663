"""Stateful Spark with as many keys as there are events: counts and sums by key and hour, each change appended.

Its states are in RocksDB, as Spark's documentation advises for many keys, with changelogs for checkpoints.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from benchmarks.peers.on_spark import Peer

SCHEMA = "k STRING, n INT, at TIMESTAMP"

peer = Peer.parse()
spark = peer.spark_of_large_states("peer: wide")
events = peer.records(spark).select(f.from_json(f.col("value").cast("string"), SCHEMA).alias("event"))
counts = (
    events.select("event.*")
    .withWatermark("at", "10 seconds")
    .groupBy("k", f.window("at", "1 hour").alias("window"))
    .agg(f.count(f.lit(1)).alias("events"), f.sum("n").alias("total"))
    .select("k", f.col("window.start").alias("window_start"), "events", "total")
)


def on_batch(batch: DataFrame, number: int) -> None:
    """Append what has changed."""
    rows = batch.withColumn("epoch", f.lit(number)).write.format("delta").mode("append")
    rows.option("txnAppId", "speed").option("txnVersion", number).save(str(peer.folder / "speed"))


peer.run(counts, on_batch, mode="update")
