"""The straightforward lambda job: parse with from_json, persist, append to an archive, append partial aggregates."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from benchmarks.peers.on_spark import SCHEMA, Peer, ads, by_campaign

peer = Peer.parse()
spark = peer.spark("peer: lambda")
table = ads(spark)


def on_batch(batch: DataFrame, number: int) -> None:
    """Do the work of one epoch."""
    value = f.col("value").cast("string")
    parsed = batch.select(
        "topic", "partition", "offset", "timestamp", "key", "value", f.from_json(value, SCHEMA).alias("event")
    ).select("topic", "partition", "offset", "timestamp", "key", "value", "event.*")
    parsed.persist()
    append(parsed, "archive", number)
    append(by_campaign(parsed, table).withColumn("epoch", f.lit(number)), "speed", number)
    parsed.unpersist()


def append(rows: DataFrame, name: str, number: int) -> None:
    """Append rows to a Delta table, once per epoch."""
    writer = rows.write.format("delta").mode("append")
    writer.option("txnAppId", name).option("txnVersion", number).save(str(peer.folder / name))


peer.run(peer.records(spark), on_batch)
