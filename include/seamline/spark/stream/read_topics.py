"""The topics a stream reads: the same ones as before, from where the master ends, to where the broker ends."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import cached_property, reduce

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from seamline.kafka import connections
from seamline.kafka.admin import TopicAdmin, TopicMark
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.first_records import Place, read_first_records
from seamline.kafka.record_ranges import RangeReader
from seamline.lake.imports.table_sources import TableSources
from seamline.lake.log.master import Master
from seamline.model.definition.pipeline import Pipeline
from seamline.model.errors import KafkaUnavailable, RecordsReplaced, SeamlineError, TopicRecreated
from seamline.model.protocol.clusters.gap_errors import build_gap_error
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.holes import (
    AcceptedGap,
    Gap,
    find_gaps,
    list_end_offsets,
    list_undecided_gaps,
)
from seamline.model.protocol.log_tail import Tail, list_new_leaders, list_replaced_lanes
from seamline.model.protocol.offsets import Lane, OffsetRange, Vector

log = logging.getLogger("seamline.stream")


# Where Spark measures an Arrow batch it does so after each row, a nested column as a whole: text costs a tenth.
RAW = ("key", "value", "topic", "partition", "offset", "timestamp", "to_json(headers) AS headers")

FETCHES = {
    "kafka.max.partition.fetch.bytes": str(4 << 20),
    "kafka.fetch.max.wait.ms": "10",
    "kafka.receive.buffer.bytes": str(1 << 20),
}
"""For tasks that read what is known to be there: Kafka's defaults are for consumers that wait for what may come.

Half a second for each partition is what the last records before a silence would wait, behind a fetch of no records.
"""

LOST = (
    "the broker has lost records that were read, and assigns their offsets to others: copy what is left into a new "
    "topic of that name, then accept the hole."
)

POLLED = 5_000
"""Records that a task asks its Kafka client for at once, at most."""

FEW = 1_000
"""Records that this process reads itself where it needs them: an epoch's rules, of which people send a few."""

LEAST_SHARE = 50_000
"""Records: a lane's share of an epoch is not cut into smaller parts than this."""

Offsets = Mapping[str, Mapping[int, int]]
"""Offsets by topic and partition, as Spark writes them."""


def fetch_options(records: int) -> dict[str, str]:
    """Return the options by which a task fetches no more than so many records.

    What one poll returns is in the heap all at once, and a batch of a megabyte may be gigabytes once decompressed: an
    epoch that was halved for it must not be given the records beside its own.
    """
    return {**FETCHES, "kafka.max.poll.records": str(max(min(records, POLLED), 1))}


class Topics:
    """One incarnation of each topic of a pipeline, known by its id; ``in_force`` says which connection is read by."""

    def __init__(
        self, definition: Pipeline, tables: TableSources, in_force: Callable[[str], str] = str
    ) -> None:
        self.pipeline, self.names = definition.name, definition.kafka_topics
        self.name, self.open = in_force(definition.connection), ExitStack()
        self.tables = tables
        self.marks = {name: self.admin.identify(name) for name in self.names}
        self.led_anew = False
        self.kafka_ids = {name: mark.id for name, mark in self.marks.items()}
        self.ids: Mapping[str, str] = {**self.kafka_ids, **tables.ids}

    @cached_property
    def connection(self) -> KafkaConnection:
        """The connection; a pipeline without topics needs none."""
        return connections.read_airflow_connection(self.name)

    @cached_property
    def admin(self) -> TopicAdmin:
        """What asks the cluster."""
        return self.open.enter_context(TopicAdmin(self.connection))

    @cached_property
    def ranges(self) -> RangeReader:
        """What reads a few records."""
        return self.open.enter_context(closing(RangeReader(self.connection)))

    def close(self) -> None:
        """Close the connection; nothing can be asked any more."""
        self.open.close()

    def to_vector(self, offsets: Offsets) -> dict[Lane, int]:
        """Turn offsets per topic and partition into a vector."""
        found = {
            Lane(self.ids[name], partition): offset
            for name, partitions in offsets.items()
            for partition, offset in partitions.items()
        }
        return dict(sorted(found.items()))

    def to_offsets(self, vector: Vector) -> dict[str, dict[int, int]]:
        """Turn a vector into offsets per topic and partition; lanes of other incarnations are left out."""
        return {
            name: {lane.partition: at for lane, at in vector.items() if lane.topic_id == id}
            for name, id in self.kafka_ids.items()
        }

    def fetch_beginnings(self) -> dict[Lane, int]:
        """Fetch the first offset of every lane that Kafka has."""
        return self.to_vector({name: self.admin.beginning_offsets(name) for name in self.names})

    def fetch_all_beginnings(self, held: Vector) -> dict[Lane, int]:
        """Fetch the first offset of every lane; of a table the first that can be read after what is ``held``."""
        return {**self.fetch_beginnings(), **self.tables.fetch_beginnings(held)}

    def fetch_ends(self, held: Vector) -> dict[Lane, int]:
        """Fetch the end offset of every lane; of a table that of what is read next after what is ``held``."""
        found = self.to_vector({name: self.admin.end_offsets(name) for name in self.names})
        return {**found, **self.tables.fetch_ends(held)}

    def assert_same(self) -> None:
        """Assert that the topics are still those that were first seen (rule 13), with the leaders of before.

        KafkaUnavailable where a partition has another one, until ``require_kept`` has compared the log with it.
        """
        changed = [
            f"{name}/{part}"
            for name, now in self.assert_ids().items()
            for part in list_new_leaders(self.marks[name].leaders, now.leaders)
        ]
        self.led_anew = bool(changed)
        if changed:
            raise KafkaUnavailable(
                f"{', '.join(changed)} have new leaders.", hint="the log is compared first."
            )

    def assert_ids(self) -> dict[str, TopicMark]:
        """Assert that the topics are still those that were first seen; return by what they are known now."""
        now = {name: self.admin.identify(name) for name in self.kafka_ids}
        for name, id in self.kafka_ids.items():
            if (found := now[name].id) != id:
                raise TopicRecreated(
                    f"Topic {name!r} had id {id} and now has id {found}.",
                    hint="it was deleted and recreated while being read; the epoch was not committed. "
                    f"`seamline holes list {self.pipeline}` shows what is missing.",
                )
        return now

    def require_whole(self, ledger: Sequence[Epoch], accepted: Iterable[AcceptedGap]) -> None:
        """Raise TopicRecreated or OffsetGap for a gap between the log and the topics that nobody has accepted."""
        first = self.fetch_all_beginnings(list_end_offsets(ledger))
        if open_ := list_undecided_gaps(find_gaps(ledger, first), accepted):
            raise build_gap_error(self.pipeline, self.ids, open_)

    def find_starts(self, master: Master, known: Vector) -> dict[Lane, int]:
        """Find the offset from which each lane is read: the master's end, or the beginning of a new lane.

        Raise OffsetGap if Kafka has dropped what was not read, RecordsReplaced if it lost what was, and
        KafkaUnavailable if it does not report every lane that is ``known`` to exist.
        """
        self.tables.require_readable(known)
        first, ends = self.fetch_all_beginnings(known), self.fetch_ends(known)
        self.require_lanes(known, first)
        self.require_lanes(first, ends)
        held = master.position(first)
        lost = [Gap(lane, end, first[lane]) for lane, end in sorted(held.items()) if end < first[lane]]
        if lost:
            raise build_gap_error(self.pipeline, self.ids, lost)
        for lane, end in held.items():
            if end > ends[lane]:
                raise RecordsReplaced(f"{lane} was read to {end}, but Kafka ends at {ends[lane]}.", hint=LOST)
        return {lane: held.get(lane, offset) for lane, offset in first.items()}

    def require_kept(self, kept: Mapping[Lane, Tail]) -> None:
        """Raise RecordsReplaced if Kafka returns another record than the newest that was ``kept`` of a lane.

        A broker that has lost records assigns their offsets to others (an unclean election of a leader); once it ends
        where it did, nothing else shows it. An offset without a record says nothing.
        """
        marks = self.assert_ids()
        first, names = self.fetch_beginnings(), {id: name for name, id in self.kafka_ids.items()}
        places = {
            lane: (names[lane.topic_id], lane.partition)
            for lane, tail in kept.items()
            if lane in first and first[lane] <= tail.offset
        }
        given = self.fetch_first_records({place: kept[lane].offset for lane, place in places.items()})
        there = {lane: given[place] for lane, place in places.items() if place in given}
        if lost := list_replaced_lanes(kept, there):
            listed = ", ".join(f"{kept[lane].offset} of {lane}" for lane in lost)
            raise RecordsReplaced(
                f"Kafka returns another record than the one that was read at {listed}.", hint=LOST
            )
        self.marks, self.led_anew = marks, False

    def fetch_first_records(self, places: Mapping[Place, int]) -> Mapping[Place, Tail]:
        """Ask for the first record at or after an offset of each place."""
        return read_first_records(self.connection, places) if places else {}

    def require_lanes(self, known: Iterable[Lane], told: Vector) -> None:
        """Raise KafkaUnavailable for a lane of an existing topic that the broker does not report.

        Partitions never go away, but a broker may not have heard of them yet. Who went on without one would let the
        watermark pass what waits in it.
        """
        ids = set(self.ids.values())
        if lacking := sorted(lane for lane in known if lane.topic_id in ids and lane not in told):
            raise KafkaUnavailable(
                f"Kafka does not report {', '.join(map(str, lacking))}, which existed before.",
                hint="retry shortly: a broker that has just joined may not know of it yet.",
            )

    def open_stream(
        self, spark: SparkSession, start: Vector, *, limit: int, only: Lane | None = None
    ) -> DataFrame:
        """Open the topics as one stream of raw records from ``start``, at most ``limit`` of them at a time.

        ``only`` leaves out every lane but one. A lane with by far the most records is read by several tasks.
        """
        reader = spark.readStream.format("kafka").options(
            **fetch_options(limit), **self.connection.for_spark()
        )
        if only is None or only.of_table:
            reader = reader.option("subscribe", ",".join(self.names))
        else:
            start = {only: start[only]}
            reader = reader.option("assign", self.format_assignment(only))
        share = max(limit // (2 * spark.sparkContext.defaultParallelism), LEAST_SHARE)
        return (
            reader.option("startingOffsets", json.dumps(self.format_offsets(start)))
            .option("includeHeaders", "true")
            .option("failOnDataLoss", "true")
            .option("maxOffsetsPerTrigger", str(limit))
            .option("maxRecordsPerPartition", str(share))
            .load()
            .selectExpr(*RAW)
        )

    def read_range(self, spark: SparkSession, part: OffsetRange) -> DataFrame:
        """Read the raw records of one range, at once."""
        reader = spark.read.format("kafka").options(**fetch_options(len(part)), **self.connection.for_spark())
        share = max(len(part) // spark.sparkContext.defaultParallelism, LEAST_SHARE)
        return (
            reader.option("assign", self.format_assignment(part.lane))
            .option("startingOffsets", json.dumps(self.format_offsets({part.lane: part.start})))
            .option("endingOffsets", json.dumps(self.format_offsets({part.lane: part.end})))
            .option("includeHeaders", "true")
            .option("failOnDataLoss", "true")
            .option("maxRecordsPerPartition", str(share))
            .load()
            .selectExpr(*RAW)
        )

    def read_ranges(self, spark: SparkSession, parts: Sequence[OffsetRange]) -> pa.Table:
        """Read the raw records of some ranges, at least one, into this process; a few of them without Spark."""
        if sum(map(len, parts)) <= FEW:
            names = {id: name for name, id in self.kafka_ids.items()}
            places = {
                (names[part.lane.topic_id], part.lane.partition): (part.start, part.end) for part in parts
            }
            found = self.ranges.read(places) if len(places) == len(parts) else None
            if found is not None:
                return found
        frames = [self.read_range(spark, part) for part in parts]
        return reduce(DataFrame.unionByName, frames).toArrow()

    def format_assignment(self, lane: Lane) -> str:
        """Format one lane as Spark's Kafka source wants it."""
        return json.dumps({name: list(found) for name, found in self.format_offsets({lane: 0}).items()})

    def format_offsets(self, vector: Vector) -> dict[str, dict[int, int]]:
        """Turn a vector into offsets per topic and partition, topics without a lane left out."""
        return {name: found for name, found in self.to_offsets(vector).items() if found}

    def commit_group_offsets(self, group: str, vector: Vector) -> None:
        """Commit a consumer group's offsets for other people's lag tools; nobody here reads them."""
        try:
            for name, offsets in self.to_offsets(vector).items():
                self.admin.commit_group_offsets(group, name, offsets)
        except SeamlineError as error:
            log.warning("Consumer group offsets not committed: %s", error.message)
