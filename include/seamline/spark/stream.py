"""The stream driver: one Structured Streaming query whose every micro-batch becomes one epoch."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from seamline.kafka import connections
from seamline.kafka.admin import TopicAdmin
from seamline.lake import layout as places
from seamline.lake.control import ControlTable, Desired
from seamline.lake.layout import Layout
from seamline.model import catalog
from seamline.model.compiled import CompiledPipeline
from seamline.model.epoch import Epoch
from seamline.model.errors import FenceLost, OffsetGap, SeamlineError, TopicRecreated
from seamline.model.intervals import parse_duration, stamp
from seamline.model.jobs import StreamJob
from seamline.model.offsets import Lane, advance, ranges_between
from seamline.model.watermark import advance_watermark
from seamline.plan.epochs import EdgePolicy, Resume, idle_lanes, position
from seamline.spark.checkpoint import Checkpoints, planned_ends
from seamline.spark.heartbeat import Heartbeat, beat
from seamline.spark.kernel import KernelConfig, KernelResult
from seamline.spark.serving import Refresher
from seamline.spark.session import session
from seamline.spark.task import REPORT, gathered, kernel_task
from seamline.spark.writer import Writer

log = logging.getLogger("seamline.stream")
TICK = 0.25
IDLE = timedelta(seconds=2)
ATTEMPTS = 3


class Driver:
    """One run of a pipeline's stream under one token, from start to stop."""

    def __init__(self, pipeline: CompiledPipeline, layout: Layout, token: int, home: Path) -> None:
        self.pipeline, self.layout, self.token = pipeline, layout, token
        self.source = pipeline.definition.source
        self.folder = home / "streams" / pipeline.name
        self.checkpoints = Checkpoints(self.folder)
        self.control = ControlTable.ensure(layout)
        self.parent = os.getppid()
        self.lock = threading.RLock()
        self.stopping = threading.Event()
        self.closed = False
        self.failure: BaseException | None = None
        self.failures = 0
        self.limit = pipeline.definition.stream.max_offsets_per_epoch
        self.condemned = ""
        self.seconds: dict[str, float] = {}
        self.last_mark = time.monotonic()

    def start(self, spark: SparkSession) -> None:
        """Take the tables over, repair what is short, and find where to read from."""
        self.spark = spark
        connection = connections.resolve(self.source.connection)
        self.options = connection.for_spark()
        self.admin = TopicAdmin(connection)
        self.topic_id = self.admin.topic_id(self.source.topic)
        self.writer = Writer(self.layout, self.pipeline, self.token, jvm=jvm_pid(spark))
        self.writer.phases = self.mark
        self.refresher = Refresher(self.pipeline, self.layout)
        epochs = self.writer.repaired()
        now = datetime.now(UTC)
        self.epoch = epochs[-1] if epochs else None
        self.largest: dict[Lane, datetime] = {}
        for each in epochs:
            for lane, at in each.max_event_time.items():
                self.largest[lane] = max(at, self.largest.get(lane, at))
        self.assert_topic([lane for each in epochs for lane in (part.lane for part in each.ranges)])
        self.vector = self.starts()
        self.last_seen = dict.fromkeys(self.vector, now)
        stream = self.pipeline.definition.stream
        self.policy = EdgePolicy(stream.edge_epochs, parse_duration(stream.edge_every))
        edges = [each for each in epochs if each.edge]
        self.last_edge = edges[-1].number if edges else -1
        self.last_edge_at = now
        self.last_epoch_at = now

    def assert_topic(self, read: Collection[Lane]) -> None:
        """Refuse a topic that is not the one the log was read from (rule 13)."""
        last = next(reversed(list(read)), None)
        if last is not None and last.topic_id != self.topic_id:
            raise TopicRecreated(
                f"Topic {self.source.topic!r} has id {self.topic_id}; the log was read from {last.topic_id}.",
                hint="the topic was deleted and made again: its old offsets mean nothing now. Use a new pipeline.",
            )

    def starts(self) -> dict[Lane, int]:
        """Give the offset from which each lane is read: the master's end, or the beginning for a new lane."""
        first = self.admin.beginning_offsets(self.source.topic)
        ends = self.admin.end_offsets(self.source.topic)
        lanes = [Lane(self.topic_id, partition) for partition in first]
        held = self.writer.master.position(lanes)
        for lane, end in held.items():
            if end < first[lane.partition]:
                raise OffsetGap(
                    f"Offsets {end}..{first[lane.partition] - 1} of {self.source.topic}/{lane.partition} are gone: "
                    f"the master ends at {end}, Kafka begins at {first[lane.partition]}.",
                    hint="Kafka deleted them before they were read; they must be registered as a hole.",
                )
            if end > ends[lane.partition]:
                raise TopicRecreated(
                    f"The master ends at {end} of {self.source.topic}/{lane.partition}, "
                    f"Kafka ends at {ends[lane.partition]}.",
                    hint="the broker has lost records that were read; this needs an operator.",
                )
        return {lane: held.get(lane, first[lane.partition]) for lane in lanes}

    def query(self) -> StreamingQuery:
        """Start the query where the master ends: on Spark's checkpoint if it agrees, else on a new one."""
        held = self.writer.master.position(self.vector)
        decision = position(held, self.topic_id, self.checkpoints.read(self.source.topic))
        newest = self.checkpoints.newest
        resumed = isinstance(decision, Resume) and newest is not None and self.limit_is_normal
        self.checkpoint = newest if resumed and newest is not None else self.checkpoints.begin()
        offsets = {str(lane.partition): offset for lane, offset in self.vector.items()}
        reader = self.spark.readStream.format("kafka").options(**self.options)
        frame = (
            reader.option("subscribe", self.source.topic)
            .option("startingOffsets", json.dumps({self.source.topic: offsets}))
            .option("includeHeaders", "true")
            .option("failOnDataLoss", "true")
            .option("maxOffsetsPerTrigger", str(self.limit))
            .load()
        )
        log.info("Reading from %s (%s)", offsets, "resumed" if resumed else "new checkpoint")
        return (
            frame.writeStream.foreachBatch(self.on_batch)
            .option("checkpointLocation", str(self.checkpoint))
            .trigger(processingTime=self.pipeline.definition.stream.trigger)
            .start()
        )

    @property
    def limit_is_normal(self) -> bool:
        """Tell whether epochs have their declared size: a halved one begins a new query."""
        return self.limit == self.pipeline.definition.stream.max_offsets_per_epoch

    def on_batch(self, frame: DataFrame, batch: int) -> None:
        """Turn one micro-batch into an epoch; whatever goes wrong is kept for the main thread."""
        with self.lock:
            if self.closed:
                return
            try:
                self.read(frame, batch)
            except FenceLost as error:
                leave(error)
            except BaseException as error:
                self.failure = error
                raise

    def read(self, frame: DataFrame, batch: int) -> None:
        """Read, judge and commit one epoch from the planned offsets."""
        self.seconds, self.last_mark = {}, time.monotonic()
        began = time.monotonic()
        ends = {
            Lane(self.topic_id, partition): end
            for partition, end in planned_ends(self.checkpoint, batch, self.source.topic).items()
        }
        self.meet(ends)
        ranges = ranges_between(self.vector, ends)
        if not ranges:
            return
        self.assert_id()
        number, views = self.writer.take(), self.writer.current
        self.writer.done("planned")
        result = self.compute(frame, number, views, size=sum(map(len, ranges)))
        self.writer.done("files")
        self.assert_id()
        now = datetime.now(UTC)
        seen = {part.lane for part in ranges}
        self.last_seen |= dict.fromkeys(seen, now)
        latest = {Lane(self.topic_id, part): at for part, at in result.max_event_time.items()}
        largest = {**self.largest, **{k: max(at, self.largest.get(k, at)) for k, at in latest.items()}}
        vector = advance(self.vector, ranges)
        epoch = Epoch(
            number=number,
            token=self.token,
            committed_at=now,
            record_version=self.pipeline.record_version,
            edge=self.stopping.is_set() or self.policy.due(number, self.last_edge, now, self.last_edge_at),
            ranges=ranges,
            accepted=dict(result.accepted),
            refused=dict(result.refused),
            max_event_time=latest,
            watermark=self.watermark(largest, vector, now),
        )
        whole = self.writer.commit(epoch, result, views)
        self.vector, self.largest = vector, largest
        self.failures, self.condemned = 0, ""
        self.settle(whole)
        self.seconds["epoch"] = round(time.monotonic() - began, 4)
        self.tell_group()
        self.refresher.touch(whole.accepted)
        self.heartbeat(whole)

    def meet(self, ends: Mapping[Lane, int]) -> None:
        """Take in partitions that are new: they are read from their beginning."""
        if new := [lane for lane in ends if lane not in self.vector]:
            first = self.admin.beginning_offsets(self.source.topic)
            self.vector |= {lane: first[lane.partition] for lane in new}

    def assert_id(self) -> None:
        """Assert that the topic is still the one being read."""
        if (found := self.admin.topic_id(self.source.topic)) != self.topic_id:
            raise TopicRecreated(
                f"Topic {self.source.topic!r} was {self.topic_id} and is {found} now.",
                hint="it was deleted and made again while being read; the epoch was not committed.",
            )

    def compute(self, frame: DataFrame, number: int, views: frozenset[str], *, size: int) -> KernelResult:
        """Run the kernel once over the micro-batch."""
        config = KernelConfig(
            pipeline=self.pipeline,
            topic_id=self.topic_id,
            token=self.token,
            epoch=number,
            held={lane.partition: end for lane, end in self.vector.items()},
            views=views,
            master=self.writer.master.table.root,
            quarantine=self.writer.quarantine.root,
            condemned=self.condemned,
        )
        try:
            rows = frame.mapInArrow(kernel_task(config), REPORT).collect()
        except Exception as error:
            self.failed(error, size)
            raise
        return gathered((row.kind, row.payload) for row in rows)

    def failed(self, error: Exception, size: int) -> None:
        """Count failures at one start vector: halve the epoch, and condemn a record that fails alone (rule 17)."""
        self.failures += 1
        if self.failures >= ATTEMPTS:
            self.limit = max(size // 2, 1)
            self.condemned = f"{type(error).__name__}: {error}"[:500] if size == 1 else ""

    def watermark(
        self, largest: Mapping[Lane, datetime], vector: Mapping[Lane, int], now: datetime
    ) -> datetime | None:
        """Give the watermark after an epoch; the broker is asked for its ends only if a lane has been silent."""
        policy = self.source.watermark
        silent = [lane for lane in vector if now - self.last_seen.get(lane, now) >= policy.idle]
        idle: frozenset[Lane] = frozenset()
        if silent:
            ends = {Lane(self.topic_id, k): v for k, v in self.admin.end_offsets(self.source.topic).items()}
            idle = idle_lanes(vector, ends, self.last_seen, now=now, after=policy.idle)
        previous = self.epoch.watermark if self.epoch else None
        return advance_watermark(previous, list(vector), largest, idle, policy.bound)

    def settle(self, epoch: Epoch) -> None:
        """Remember the epoch just held."""
        self.epoch = epoch
        self.last_epoch_at = epoch.committed_at
        if epoch.edge:
            self.last_edge, self.last_edge_at = epoch.number, epoch.committed_at

    def empty(self, watermark: datetime | None, now: datetime) -> None:
        """Hold an empty epoch that is an edge."""
        number = self.writer.take()
        epoch = Epoch(
            number=number,
            token=self.token,
            committed_at=now,
            record_version=self.pipeline.record_version,
            edge=True,
            watermark=watermark,
        )
        whole = self.writer.commit(epoch, KernelResult(), self.writer.current)
        self.settle(whole)
        self.heartbeat(whole)

    def rest(self) -> None:
        """Between epochs: declare an edge when the stream is idle or the watermark can go on."""
        now = datetime.now(UTC)
        if self.epoch is None or now - self.last_epoch_at < IDLE:
            return
        mark = self.watermark(self.largest, self.vector, now)
        if not self.epoch.edge or mark != self.epoch.watermark:
            self.empty(mark, now)

    def tell_group(self) -> None:
        """Commit the consumer group's offsets for other people's lag tools; nobody here reads them."""
        offsets = {lane.partition: end for lane, end in self.vector.items()}
        try:
            self.admin.commit_group_offsets(f"seamline.{self.pipeline.name}", self.source.topic, offsets)
        except SeamlineError as error:
            log.warning("Consumer group offsets not committed: %s", error.message)

    def heartbeat(self, epoch: Epoch, state: str = "running") -> None:
        """Write the heartbeat file."""
        ends = self.admin.end_offsets(self.source.topic)
        lag = {str(lane.partition): ends.get(lane.partition, end) - end for lane, end in self.vector.items()}
        mark = stamp(epoch.watermark) if epoch.watermark else ""
        refused = sum(epoch.refused.values())
        behind = {view: str(at) for view, at in epoch.frontiers.items() if at != epoch.number}
        found = Heartbeat(os.getpid(), self.token, epoch.number, mark, epoch.rows, refused, lag, self.seconds, behind)
        beat(self.folder / "driver.json", Heartbeat(**{**vars(found), "at": stamp(datetime.now(UTC)), "state": state}))

    def mark(self, phase: str) -> None:
        """Note how long a phase took, in seconds."""
        now = time.monotonic()
        self.seconds[phase] = round(now - self.last_mark, 4)
        self.last_mark = now

    def run(self) -> None:
        """Keep the query going until it is told to stop; a failed epoch is tried again under a new number."""
        query = self.query()
        asked = 0.0
        while not self.stopping.wait(TICK):
            if not query.isActive:
                query = self.again(query)
                continue
            if time.monotonic() - asked > 1:
                asked = time.monotonic()
                self.obey()
            if self.lock.acquire(blocking=False):
                try:
                    self.rest()
                finally:
                    self.lock.release()
        self.finish(query)

    def again(self, query: StreamingQuery) -> StreamingQuery:
        """Start a new query after a failure, unless the failure says that nothing can be done."""
        failure = self.failure or query.exception()
        if isinstance(failure, SeamlineError):
            raise failure
        if self.failures == 0 or self.failures > ATTEMPTS + 40:
            raise SeamlineError(f"The stream's query ended: {failure}", hint="see the driver's log.")
        log.error("Epoch %s failed (%s. time here): %s", self.writer.number, self.failures, failure)
        self.failure = None
        time.sleep(min(0.5 * self.failures, 5))
        return self.query()

    def obey(self) -> None:
        """Look at what the stream should be doing, who holds the lease, and whether our parent lives."""
        found = self.control.read()
        if found.lease is not None and found.lease.token > self.token:
            leave(FenceLost(f"The lease has token {found.lease.token}, ours is {self.token}.", hint="a newer one runs."))
        if found.desired is Desired.STOPPED or os.getppid() != self.parent:
            self.stopping.set()

    def finish(self, query: StreamingQuery) -> None:
        """Let the epoch finish, declare an edge, and stop the query between epochs."""
        with self.lock:
            self.closed = True
            if self.failure is None and self.epoch is not None:
                now = datetime.now(UTC)
                if not self.epoch.edge:
                    self.empty(self.watermark(self.largest, self.vector, now), now)
                self.heartbeat(self.epoch, "stopped")
        self.refresher.close()
        query.stop()


def leave(error: SeamlineError) -> None:
    """Exit at once with the error's code: nothing more may be written."""
    print(error, file=sys.stderr, flush=True)
    os._exit(error.exit_code)


def jvm_pid(spark: SparkSession) -> int | None:
    """Give the process id of Spark's JVM."""
    process: Any = getattr(spark.sparkContext._gateway, "proc", None)  # noqa: SLF001
    return process.pid if process is not None else None


def main(argv: list[str]) -> int:
    """Run the stream job of a command line; give the exit code."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    log.setLevel(logging.INFO)
    job = StreamJob.parse(argv)
    stopping = threading.Event()
    try:
        pipeline = catalog.load(places.definitions()).pipeline(job.pipeline)
        driver = Driver(pipeline, Layout(places.warehouse(), job.pipeline), job.token, places.home())
        spark = session(f"seamline stream {job.pipeline}")
        for sign in (signal.SIGTERM, signal.SIGINT):
            signal.signal(sign, lambda *_: driver.stopping.set())
        driver.start(spark)
        driver.run()
        spark.stop()
    except SeamlineError as error:
        print(error, file=sys.stderr, flush=True)
        return error.exit_code
    finally:
        stopping.set()
    return 0
