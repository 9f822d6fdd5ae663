"""The stream driver: one Structured Streaming query whose every micro-batch becomes one epoch."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from seamline.lake import layout as places
from seamline.lake.control import ControlTable, Desired, Drained
from seamline.lake.format import require_format
from seamline.lake.layout import Layout
from seamline.lake.log import known_epochs
from seamline.lake.lookups import Lookups
from seamline.model import catalog
from seamline.model.compiled import CompiledPipeline
from seamline.model.epoch import Epoch
from seamline.model.errors import FenceLost, SeamlineError
from seamline.model.jobs import StreamJob
from seamline.model.lookups import in_force
from seamline.plan.epochs import Resume, position
from seamline.spark.checkpoint import Checkpoints, planned_ends
from seamline.spark.ending import end
from seamline.spark.epochs import Epochs
from seamline.spark.kernel import KernelResult
from seamline.spark.serving import Refresher
from seamline.spark.session import session
from seamline.spark.task import warm
from seamline.spark.topics import Topics
from seamline.spark.writer import Writer

log = logging.getLogger("seamline.stream")
TICK = 0.25
CATCH_UP_EVERY = 15.0
GIVE_UP = 45


class Driver:
    """One run of a pipeline's stream under one token, from start to stop.

    Making one compares Kafka's topics with the log and reads the look-ups: what is wrong is said before Spark has
    started.
    """

    def __init__(self, pipeline: CompiledPipeline, layout: Layout, token: int, home: Path) -> None:
        self.pipeline, self.layout, self.token = pipeline, layout, token
        self.folder = home / "streams" / pipeline.name
        self.checkpoints = Checkpoints(self.folder)
        self.topics = Topics(pipeline.name, pipeline.definition.source)
        self.control = ControlTable.ensure(layout)
        epochs = known_epochs(layout)
        self.topics.require_whole(epochs, self.control.read().accepted)
        self.lookups = Lookups(pipeline.record.lookups, layout, in_force(epochs, pipeline.record_version))
        self.parent = os.getppid()
        self.lock = threading.RLock()
        self.stopping = threading.Event()
        self.closed = False
        self.failure: BaseException | None = None
        self.drained: Drained | None = None

    def start(self, spark: SparkSession) -> None:
        """Take the tables over, repair what is short, catch up, and find where to read from."""
        self.spark = spark
        self.writer = Writer(self.layout, self.pipeline, self.token, jvm=jvm_pid(spark))
        self.refresher = Refresher(self.writer.pipeline, self.layout)
        ledger = self.registered(self.writer.repaired())
        self.epochs = Epochs(
            self.writer, self.topics, self.refresher, self.lookups, ledger, self.folder / "driver.json"
        )
        self.epochs.catch_up(spark)
        warm(spark)

    def registered(self, ledger: list[Epoch]) -> list[Epoch]:
        """Hold an epoch of kind hole for every gap that somebody has accepted, and give the ledger with them."""
        decisions = {each.gap: each for each in self.control.read().accepted}
        for gap in self.topics.require_whole(ledger, decisions.values()):
            log.warning("Registering a hole: %s (%s)", gap, decisions[gap].reason)
            epoch = decisions[gap].epoch(self.writer.take(), self.token, datetime.now(UTC), ledger[-1])
            ledger = [*ledger, self.writer.commit(epoch, KernelResult(), self.writer.current)]
        return ledger

    def query(self) -> StreamingQuery:
        """Start the query where the master ends: on Spark's checkpoint if it agrees, else on a new one."""
        start = self.epochs.progress.vector
        held = self.topics.offsets(self.writer.master.position(start))
        ends = {name: offsets for name, offsets in held.items() if offsets}
        decision = position(ends, self.checkpoints.read())
        newest = self.checkpoints.newest
        if not isinstance(decision, Resume) or newest is None or self.epochs.halved:
            newest = self.checkpoints.begin()
        self.checkpoint = newest
        log.info("Epoch %s, reading from %s (%s)", self.writer.master.epoch, dict(start), decision)
        suspect = self.epochs.suspects[0] if self.epochs.suspects else None
        frame = self.topics.read(self.spark, start, limit=self.epochs.limit, only=suspect)
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
                ends = self.topics.lanes(planned_ends(self.checkpoint, batch))
                self.epochs.read(frame, ends, stopping=self.stopping.is_set())
            except FenceLost as error:
                leave(error)
            except BaseException as error:
                self.failure = error
                raise

    def run(self) -> None:
        """Keep the query going until it is told to stop; a failed epoch is tried again under a new number."""
        query = self.query()
        self.epochs.heartbeat()
        asked = caught = time.monotonic()
        while not self.stopping.wait(TICK):
            if self.failure or not query.isActive:
                query = self.again(query)
                continue
            if self.epochs.outdated:
                query = self.anew(query)
            now = time.monotonic()
            if now - asked > 1:
                asked = now
                self.obey()
            if self.lock.acquire(blocking=False):
                try:
                    self.epochs.rest(self.drained)
                    if now - caught > CATCH_UP_EVERY:
                        caught = now
                        self.epochs.catch_up(self.spark)
                finally:
                    self.lock.release()
        self.finish(query)

    def again(self, query: StreamingQuery) -> StreamingQuery:
        """Start a new query after a failure, unless the failure says that nothing can be done."""
        if query.isActive:
            self.ended(query)
        failure = self.failure or query.exception()
        if isinstance(failure, SeamlineError):
            raise failure
        self.epochs.retries += 1
        if self.epochs.retries > GIVE_UP:
            raise SeamlineError(f"The stream's query ended: {failure}", hint="see the driver's log.")
        log.error("Attempt %s at one place failed: %s", self.epochs.retries, shown(failure))
        self.epochs.restart()
        self.failure = None
        if not self.epochs.halved:
            time.sleep(min(0.5 * self.epochs.retries, 5))
        return self.query()

    def ended(self, query: StreamingQuery) -> None:
        """Wait until a query that has failed is over; its error is ours to report."""
        with contextlib.suppress(StreamingQueryException):
            query.awaitTermination(60)

    def anew(self, query: StreamingQuery) -> StreamingQuery:
        """Start a new query between two epochs, over the lanes and with the size that are right by now."""
        with self.lock:
            self.closed = True
        query.stop()
        self.closed = False
        self.epochs.restart()
        return self.query()

    def obey(self) -> None:
        """Look at what the stream should be doing, who holds the lease, and whether our parent lives."""
        found = self.control.read()
        if found.lease is not None and found.lease.token > self.token:
            leave(FenceLost(f"The lease has token {found.lease.token}, ours is {self.token}.", hint="exit."))
        self.drained = found.drained
        if found.desired is Desired.STOPPED or os.getppid() != self.parent:
            self.stopping.set()

    def finish(self, query: StreamingQuery) -> None:
        """Let the epoch finish, declare an edge, and stop the query between epochs."""
        with self.lock:
            self.closed = True
            if not self.failure:
                self.epochs.close()
        self.refresher.close()
        query.stop()


def shown(failure: BaseException | None) -> str:
    """Say what went wrong without the JVM's part of the stack."""
    return str(failure).split("\tat py4j.")[0].rstrip()[-3000:]


def leave(error: SeamlineError) -> NoReturn:
    """Exit at once with the error's code: nothing more may be written."""
    print(error, file=sys.stderr)
    end(error.exit_code)


def jvm_pid(spark: SparkSession) -> int | None:
    """Give the process id of Spark's JVM."""
    process: Any = getattr(spark.sparkContext._gateway, "proc", None)  # noqa: SLF001
    return process.pid if process is not None else None


def main(argv: list[str]) -> int:
    """Run the stream job of a command line; give the exit code."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    log.setLevel(logging.INFO)
    job = StreamJob.parse(argv)
    try:
        pipeline = catalog.load(places.definitions()).pipeline(job.pipeline)
        layout = require_format(Layout(places.warehouse(), job.pipeline))
        driver = Driver(pipeline, layout, job.token, places.home())
        spark = session(f"seamline stream {job.pipeline}")
        for sign in (signal.SIGTERM, signal.SIGINT):
            signal.signal(sign, lambda *_: driver.stopping.set())
        driver.start(spark)
        driver.run()
        spark.stop()
    except SeamlineError as error:
        print(error, file=sys.stderr, flush=True)
        return error.exit_code
    return 0
