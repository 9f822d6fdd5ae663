"""The stream driver: one Structured Streaming query whose every micro-batch becomes one epoch."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from seamline.lake.storage.layout import Layout
from seamline.lake.tables.control_poll import ControlPoll
from seamline.lake.tables.control_table import ControlTable, Desired
from seamline.lake.tables.lookups.lookup_tables import Lookups
from seamline.lake.tables.torn_logs import repair_torn_logs
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.lookups.named_versions import in_force
from seamline.model.errors import FenceLost, KafkaUnavailable, SeamlineError, StoreUnavailable
from seamline.model.protocol.control import Control
from seamline.plan.stream.epoch_numbers import Resume, Turns, decide_start_position
from seamline.runtime.storage_failures import store_failed, translate_store_errors
from seamline.spark.stream.checkpoints import Checkpoints, read_planned_ends
from seamline.spark.stream.decisions import open_topics, register_decisions
from seamline.spark.stream.driver_end import (
    AWAY,
    TRIED_AGAIN,
    exit_with_error,
    format_driver_failure,
    jvm_pid,
)
from seamline.spark.stream.epoch_maker import Epochs
from seamline.spark.stream.epoch_writer import Writer
from seamline.spark.stream.serving_refresher import Refresher
from seamline.spark.stream.tables.side_reading import SideReading
from seamline.spark.stream.triggers import Triggers
from seamline.spark.tasks.rule_topics import RuleTopics
from seamline.spark.tasks.task import warm_workers

log = logging.getLogger("seamline.stream")
TICK, TELL_EVERY, GIVE_UP = 0.25, 5.0, 45


class Driver:
    """One run of a pipeline's stream under one token, from start to stop.

    Making one compares Kafka's topics with the log and reads the look-ups: what is wrong is said before Spark is up.
    """

    alone = False
    """Whether it runs for imports alone, while nobody wants the stream."""

    def __init__(self, pipeline: CompiledPipeline, layout: Layout, token: int, home: Path) -> None:
        self.pipeline, self.layout, self.token = pipeline, layout, token
        self.folder = home / "streams" / pipeline.name
        self.checkpoints = Checkpoints(self.folder)
        repair_torn_logs(layout, now=datetime.now(UTC))
        self.poll = ControlPoll(ControlTable.ensure(layout))
        self.topics, epochs = open_topics(pipeline.definition, layout, self.poll.control.read())
        self.lookups = Lookups(pipeline.lookups, layout, in_force(epochs, pipeline.record_version))
        self.parent, self.lock = os.getppid(), threading.RLock()
        self.stopping = threading.Event()
        self.closed = self.raised = False
        self.failure: BaseException | None = None
        self.asked, self.paused, self.told, self.turns = Control(), False, 0.0, Turns()
        self.beside = ThreadPoolExecutor(1, thread_name_prefix="warm")

    def start(self, spark: SparkSession) -> None:
        """Take the tables over, repair them, and catch up a step, while Python's workers warm up."""
        self.spark = spark
        warming = self.beside.submit(warm_workers, spark)
        self.writer = Writer(self.layout, self.pipeline, self.token, jvm=jvm_pid(spark))
        self.refresher = Refresher(self.writer.pipeline, self.layout, at_end=self.alone)
        ledger = register_decisions(
            self.writer, self.topics, self.poll.control.read(), self.writer.repair_ledger()
        )
        lookups = RuleTopics(self.writer.pipeline, self.lookups, spark)
        self.epochs = Epochs(self.writer, self.topics, lookups, ledger, self.folder / "driver.json")
        self.epochs.askers.start(self.writer.master.epoch)
        self.side = SideReading(self.epochs, ledger, self.folder, alone=self.alone)
        spark.streams.addListener(Triggers(self.writer.timing))
        self.epochs.catch_up(spark)
        warming.result()
        self.beside.shutdown()

    def open_query(self) -> StreamingQuery | None:
        """Start the query where the master ends: on Spark's checkpoint if it agrees, else on a new one.

        A checkpoint that agrees may be broken all the same: nothing depends on it.
        """
        try:
            return self.start_query()
        except (PySparkException, Py4JJavaError) as error:
            log.warning("Spark cannot continue from its checkpoint: %s", format_driver_failure(error))
            return self.start_query(anew=True)

    def start_query(self, *, anew: bool = False) -> StreamingQuery | None:
        """Start the query, if there are topics; ``anew`` on a new checkpoint in any case."""
        if not self.topics.names:
            return None
        start = self.epochs.progress.vector
        held = self.topics.to_offsets(self.writer.master.position(start))
        ends = {name: offsets for name, offsets in held.items() if offsets}
        decision = decide_start_position(ends, self.checkpoints.read())
        newest = self.checkpoints.newest
        if anew or not isinstance(decision, Resume) or newest is None or self.epochs.size.halved:
            newest = self.checkpoints.begin()
        self.checkpoint = newest
        log.info("Epoch %s, reading from %s (%s)", self.writer.master.epoch, dict(start), decision)
        limit, only = self.epochs.size.limit, self.epochs.size.suspect
        frame = self.topics.open_stream(self.spark, start, limit=limit, only=only)
        writer = frame.writeStream.foreachBatch(self.on_batch).option("checkpointLocation", str(newest))
        return writer.trigger(processingTime=self.pipeline.definition.stream.trigger).start()

    def on_batch(self, frame: DataFrame, batch: int) -> None:
        """Turn one micro-batch into an epoch; whatever goes wrong is kept for the main thread.

        Spark takes a batch that a closed driver leaves alone for done: the master's word counts, not Spark's.
        """
        with self.lock:
            if self.closed or self.failure:
                return
            try:
                ends = self.topics.to_vector(read_planned_ends(self.checkpoint, batch))
                self.epochs.process_batch(frame, ends, stopping=self.stopping.is_set())
            except FenceLost as error:
                exit_with_error(error)
            except BaseException as error:
                self.failure, self.raised = store_failed(error) or error, True
                raise

    def run(self) -> None:
        """Keep the query running until it is asked to stop; a failed epoch is retried under a new number."""
        query: StreamingQuery | None = self.open_query()
        self.epochs.write_heartbeat()
        asked = time.monotonic()
        while not self.stopping.wait(TICK):
            if time.monotonic() - asked > 1:
                asked = time.monotonic()
                self.poll_control()
            if self.paused:
                self.pause(query)
                query = None
            elif self.failure or (self.topics.names and not (query and query.isActive)):
                query = self.restart_after_failure(query)
            elif self.epochs.is_outdated:
                query = self.replace_query(query)
            elif self.lock.acquire(timeout=TICK):
                try:
                    # The epoch that was waited for may have failed: then nobody knows where the master ends.
                    if not self.failure:
                        self.work_between_epochs()
                finally:
                    self.lock.release()
        self.finish(query)

    def work_between_epochs(self) -> None:
        """Do what is done between two epochs; what a new query may do better is no reason to end."""
        try:
            with translate_store_errors():
                self.epochs.declare_idle_edge(self.asked.drained)
                self.epochs.state_news(len(self.asked.restated))
                if view := self.turns.next_view(self.writer.behind, time.monotonic()):
                    moved = self.epochs.catch_up(self.spark, [view])
                    awaits = view in self.writer.awaiting
                    self.turns = self.turns.record_step(
                        view, time.monotonic(), moved=moved, awaits_build=awaits
                    )
                self.failure = self.side.work(self.spark, self.asked, stopping=self.stopping.is_set())
        except KafkaUnavailable as error:
            log.warning("Kafka does not answer: %s", error.message)
            # Only what begins again compares the log with new leaders.
            self.failure = error if self.topics.led_anew else None
        except TRIED_AGAIN as error:
            # A commit may have landed or not, the ledger's row of an epoch before too: the tables are read again.
            self.failure = error

    def pause(self, query: StreamingQuery | None) -> None:
        """Run no query while the stream is paused: the driver stays up, and its heartbeat has the lag."""
        if query is not None:
            self.stop_query(query)
            log.info("Paused at epoch %s", self.writer.master.epoch)
        elif time.monotonic() - self.told < TELL_EVERY:
            return
        self.told = time.monotonic()
        try:
            with translate_store_errors():
                if self.failure:
                    self.epochs.reload_log()
                    self.failure = None
                self.epochs.close("paused")
        except TRIED_AGAIN as error:
            if not isinstance(error, KafkaUnavailable):
                self.failure = error
            self.epochs.write_heartbeat("paused")

    def restart_after_failure(self, query: StreamingQuery | None) -> StreamingQuery | None:
        """Start a new query after a pause or a failure, unless the failure says that nothing can be done.

        A broker or a store that does not answer is waited for. After a Conflict, as with a commit of its own that has
        landed late, or where Spark lost what a task had left, the tables are read again.
        """
        failure, failed = self.failure, query is not None or bool(self.failure and not self.topics.names)
        if query is not None:
            self.await_end(query)
            failure = failure or query.exception()
        while not self.stopping.is_set():
            if failed:
                if isinstance(failure, SeamlineError) and not isinstance(failure, TRIED_AGAIN):
                    raise failure
                self.count_failure(failure)
            try:
                with translate_store_errors():
                    self.epochs.restart()
                self.failure, self.raised = None, False
                return self.start_query(anew=True) if failed else self.open_query()
            except AWAY as error:
                failure, failed = error, True
        return query

    def count_failure(self, failure: BaseException | None) -> None:
        """Count a failure, and wait a little before the next attempt; SeamlineError after too many."""
        self.poll_control()
        said, number = format_driver_failure(failure), self.epochs.retries + 1
        log.error("Attempt %s at the same position failed: %s", number, said)
        if not isinstance(failure, AWAY):
            self.epochs.retries += 1
        if self.epochs.retries > GIVE_UP:
            raise SeamlineError(f"The stream's query ended: {failure}", hint="see the driver's log.")
        if not self.epochs.size.halved or self.epochs.size.condemned:
            self.stopping.wait(min(0.5 * max(self.epochs.retries, 1), 5))

    def await_end(self, query: StreamingQuery) -> None:
        """See a query to its end; its error, if it has failed, is ours to report."""
        with contextlib.suppress(StreamingQueryException):
            if query.isActive and not (self.raised and query.awaitTermination(60)):
                self.stop_query(query)

    def replace_query(self, query: StreamingQuery | None) -> StreamingQuery | None:
        """Start a new query between two epochs, over the lanes and with the size that are right by now."""
        if query is not None:
            self.stop_query(query)
        if self.failure:
            return query
        try:
            with translate_store_errors():
                self.epochs.restart()
            log.info("Starting a new query with at most %s records per epoch", self.epochs.size.limit)
            return self.open_query()
        except AWAY as error:
            self.failure = error
            return query

    def stop_query(self, query: StreamingQuery) -> None:
        """Stop a query between two epochs."""
        with self.lock:
            self.closed = True
        query.stop()
        self.closed = False

    def poll_control(self) -> None:
        """Read what the stream should be doing, who has the lease, and whether our parent lives."""
        if os.getppid() != self.parent:
            self.stopping.set()
        try:
            with translate_store_errors():
                found = self.poll.look()
        except StoreUnavailable as error:
            return log.warning("%s", error.message)
        if found.lease is not None and found.lease.token > self.token:
            exit_with_error(
                FenceLost(f"The lease has token {found.lease.token}, but ours is {self.token}.", hint="exit.")
            )
        self.asked, self.paused = found, found.desired is Desired.PAUSED
        self.epochs.askers.keep_up(len(found.asks))
        if found.desired is Desired.STOPPED and not self.alone:
            self.stopping.set()

    def finish(self, query: StreamingQuery | None) -> None:
        """Let the epoch finish, declare an edge, and stop the query between epochs."""
        with self.lock:
            self.closed = True
            if not self.failure:  # The last edge is the next driver's then.
                with contextlib.suppress(*TRIED_AGAIN), translate_store_errors():
                    self.epochs.close()
        self.epochs.askers.close()
        self.refresher.close()
        if query is not None:
            query.stop()
        self.topics.close()
