"""Stateful Spark without an archive: a windowed aggregation in update mode, each change appended."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from benchmarks.peers.on_spark import SCHEMA, Peer, ads, by_campaign

peer = Peer.parse()
spark = peer.spark("peer: stateful", spark_sql_shuffle_partitions="2")
spark.conf.set("spark.sql.shuffle.partitions", "2")
events = peer.records(spark).select(f.from_json(f.col("value").cast("string"), SCHEMA).alias("event"))
counts = by_campaign(events.select("event.*").withWatermark("event_time", "10 seconds"), ads(spark))


def on_batch(batch: DataFrame, number: int) -> None:
    """Append what has changed."""
    rows = batch.withColumn("epoch", f.lit(number)).write.format("delta").mode("append")
    rows.option("txnAppId", "speed").option("txnVersion", number).save(str(peer.folder / "speed"))


peer.run(counts, on_batch, mode="update")
