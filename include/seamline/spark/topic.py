"""The topic a stream reads: the same one as before, from where the master ends, to where the broker ends."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession

from seamline.kafka import connections
from seamline.kafka.admin import TopicAdmin
from seamline.lake.master import Master
from seamline.model.definition import KafkaSource
from seamline.model.epoch import Epoch
from seamline.model.errors import SeamlineError, TopicRecreated
from seamline.model.holes import AcceptedGap, Gap, gaps, refusal, undecided
from seamline.model.offsets import Lane, Vector

log = logging.getLogger("seamline.stream")


# Spark measures an Arrow batch after each row, and a nested column as a whole: text costs a tenth.
RAW = ("key", "value", "topic", "partition", "offset", "timestamp", "to_json(headers) AS headers")


class Topic:
    """One incarnation of a topic, known by its id from the first look on."""

    def __init__(self, pipeline: str, source: KafkaSource) -> None:
        self.pipeline, self.source, self.name = pipeline, source, source.topic
        self.connection = connections.resolve(source.connection)
        self.admin = TopicAdmin(self.connection)
        self.id = self.admin.topic_id(self.name)

    def lanes(self, offsets: Mapping[int, int]) -> dict[Lane, int]:
        """Turn offsets per partition into a vector."""
        return {Lane(self.id, partition): offset for partition, offset in sorted(offsets.items())}

    def times(self, latest: Mapping[int, datetime]) -> dict[Lane, datetime]:
        """Turn instants per partition into instants per lane."""
        return {Lane(self.id, partition): at for partition, at in sorted(latest.items())}

    def beginnings(self) -> dict[Lane, int]:
        """Ask for the first offset of every lane."""
        return self.lanes(self.admin.beginning_offsets(self.name))

    def ends(self) -> dict[Lane, int]:
        """Ask for the end offset of every lane."""
        return self.lanes(self.admin.end_offsets(self.name))

    def assert_same(self) -> None:
        """Assert that the topic is still the one that was first seen (rule 13)."""
        if (found := self.admin.topic_id(self.name)) != self.id:
            raise TopicRecreated(
                f"Topic {self.name!r} was {self.id} and is {found} now.",
                hint="it was deleted and made again while being read; the epoch was not committed. "
                f"`seamline holes list {self.pipeline}` shows what is gone.",
            )

    def require_whole(self, ledger: Iterable[Epoch], accepted: Iterable[AcceptedGap]) -> list[Gap]:
        """Give the gaps between the log and the topic that somebody has accepted; raise for one that nobody has.

        TopicRecreated or OffsetGap.
        """
        found = gaps(ledger, self.id, self.beginnings())
        if open_ := undecided(found, accepted):
            raise refusal(self.pipeline, self.name, self.id, open_)
        return list(found)

    def starts(self, master: Master) -> dict[Lane, int]:
        """Give the offset from which each lane is read: the master's end, or the beginning of a new lane.

        Raises OffsetGap where Kafka has dropped what was not read, TopicRecreated where it lost what was.
        """
        first, ends = self.beginnings(), self.ends()
        held = master.position(first)
        lost = [Gap(lane, end, first[lane]) for lane, end in sorted(held.items()) if end < first[lane]]
        if lost:
            raise refusal(self.pipeline, self.name, self.id, lost)
        for lane, end in held.items():
            if end > ends[lane]:
                raise TopicRecreated(
                    f"The log was read to {end} of {self.name}/{lane.partition}, Kafka ends at {ends[lane]}.",
                    hint="the broker has lost records that were read, and gives their offsets to others: copy "
                    "what is left into a new topic of that name, then accept the hole.",
                )
        return {lane: held.get(lane, offset) for lane, offset in first.items()}

    def read(self, spark: SparkSession, start: Vector, *, limit: int) -> DataFrame:
        """Open the topic as a stream of raw records from ``start``, at most ``limit`` of them at a time."""
        offsets = {str(lane.partition): offset for lane, offset in start.items()}
        reader = spark.readStream.format("kafka").options(**self.connection.for_spark())
        return (
            reader.option("subscribe", self.name)
            .option("startingOffsets", json.dumps({self.name: offsets}))
            .option("includeHeaders", "true")
            .option("failOnDataLoss", "true")
            .option("maxOffsetsPerTrigger", str(limit))
            .load()
            .selectExpr(*RAW)
        )

    def tell_group(self, group: str, vector: Vector) -> None:
        """Commit a consumer group's offsets for other people's lag tools; nobody here reads them."""
        offsets = {lane.partition: end for lane, end in vector.items()}
        try:
            self.admin.commit_group_offsets(group, self.name, offsets)
        except SeamlineError as error:
            log.warning("Consumer group offsets not committed: %s", error.message)
