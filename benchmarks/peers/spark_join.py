"""Spark's stream-stream join of impressions and clicks: pairs counted by minute of the impression, without an archive.

Its states are in RocksDB, as Spark's documentation advises for large ones, with changelogs for checkpoints. Pairs come
out as they are found and are added up per micro-batch, with no further state. What is later than the watermark is
dropped.
The topic is named without what is behind its last point, ``shown`` or ``clicked``.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from benchmarks.peers.on_spark import Peer

peer = Peer.parse()
spark = peer.spark_of_large_states("peer: join")


def events(name: str, schema: str, share: float) -> DataFrame:
    """Open one of the two topics, of which each micro-batch reads its share; its columns are named by it."""
    own = replace(peer, topic=f"{peer.topic}.{name}", epoch=int(peer.epoch * share))
    parsed = own.records(spark).select(f.from_json(f.col("value").cast("string"), schema).alias("event"))
    named = [
        f.col(f"event.{each}").alias(f"{name}_{each}") for each in ("ad", "at", "cost") if each in schema
    ]
    return parsed.select(*named).withWatermark(f"{name}_at", "1 minute")


pairs = events("shown", "ad STRING, cost INT, at TIMESTAMP", 0.8).join(
    events("clicked", "ad STRING, at TIMESTAMP", 0.2),
    f.expr("shown_ad = clicked_ad AND clicked_at >= shown_at AND clicked_at <= shown_at + INTERVAL 1 HOUR"),
)


def on_batch(batch: DataFrame, number: int) -> None:
    """Append what the micro-batch's pairs add up to."""
    found = batch.groupBy(f.window("shown_at", "1 minute").alias("window")).agg(
        f.count(f.lit(1)).alias("pairs"), f.sum("shown_cost").alias("cost")
    )
    rows = found.select("window.start", "pairs", "cost").write.format("delta").mode("append")
    rows.option("txnAppId", "speed").option("txnVersion", number).save(str(peer.folder / "speed"))


peer.run(pairs, on_batch)
