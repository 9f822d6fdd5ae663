"""Watches a stream's driver: one that has something to read and commits no epoch is stuck."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

from seamline.kafka.topic_ends import ends_of
from seamline.lake.log.master import Master
from seamline.lake.storage.layout import Layout, definitions_folder, home_folder
from seamline.model.compile.catalog import load_pipeline
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.definition.restarts import ExponentialDelay, RestartPolicy
from seamline.model.errors import SeamlineError
from seamline.model.protocol.offsets import OffsetRange
from seamline.model.time.intervals import parse_duration
from seamline.plan.stream.driver_progress import LastSeen, choose_patience, find_restart_reason, is_check_due
from seamline.supervisor.driver_report import DriverReport
from seamline.supervisor.sources.source_ends import ask_source_ends

log = logging.getLogger("seamline.supervisor")
STARTS_WITHIN = 300.0
LOOK_EVERY = 1.0
KAFKA_WITHIN = 8.0


class Watch:
    """The watch over one driver, under its token; ``why`` says what is wrong with it once that is known.

    Kafka is asked in a thread of its own: a broker that does not answer must not cost the lease.
    """

    def __init__(
        self, pipeline: CompiledPipeline, layout: Layout, home: Path, token: int, now: float
    ) -> None:
        self.pipeline, self.layout, self.home, self.token = pipeline, layout, home, token
        self.stuck_after = parse_duration(pipeline.definition.stream.stuck_after).total_seconds()
        self.seen = LastSeen("", now)
        self.looked = now
        self.asking: Future[int | None] | None = None
        self.threads = ThreadPoolExecutor(1, thread_name_prefix="lag")
        self.why = ""

    def is_stuck(self, now: float) -> bool:
        """Look, at most once a second; true once the driver must be restarted."""
        if self.why or now - self.looked < LOOK_EVERY:
            return bool(self.why)
        self.looked = now
        self.seen = self.seen.add_look(self.mark(), now)
        allowed = self.patience()
        if self.asking is not None and self.asking.done():
            self.seen = self.seen.add_lag(self.asking.result(), now)
            self.asking = None
        elif self.asking is None and is_check_due(self.seen, now, allowed):
            self.asking = self.threads.submit(count_unread_records, self.pipeline, self.layout)
        self.why = find_restart_reason(self.seen, now, allowed)
        return bool(self.why)

    def patience(self) -> float:
        """Return the seconds that the driver has."""
        return choose_patience(self.seen, stuck_after=self.stuck_after, starts_within=STARTS_WITHIN)

    def mark(self) -> str:
        """Return what changes while the driver makes progress; empty until it is up, always new while it is paused."""
        try:
            said = DriverReport.read(self.home, self.pipeline.name)
        except (OSError, ValueError, KeyError, TypeError):
            return ""
        if said is None or said.token != self.token:
            return ""
        return f"{said.epoch} {said.at}" if said.state != "running" else f"{said.epoch}"

    @property
    def held(self) -> bool:
        """Return whether the driver has committed an epoch."""
        return self.seen.add_look(self.mark(), self.looked).signs > 1

    def close(self) -> None:
        """End the thread, without waiting for Kafka."""
        self.threads.shutdown(wait=False, cancel_futures=True)


def make_watch_factory(name: str, layout: Layout) -> Callable[[int], Watch | None]:
    """Make the function that begins to watch a driver of a stream, under the driver's token.

    None if the definition cannot be used: the driver says that itself.
    """

    def begin(token: int) -> Watch | None:
        try:
            pipeline = load_pipeline(definitions_folder(), name)
        except SeamlineError:
            return None
        return Watch(pipeline, layout, home_folder(), token, time.monotonic())

    return begin


def make_policy_reader(name: str) -> Callable[[], RestartPolicy]:
    """Make a function that reads a stream's restart policy from its definition as it is now.

    While the definition cannot be used, that is the last policy that was read, or the default.
    """
    last: RestartPolicy = ExponentialDelay()

    def read() -> RestartPolicy:
        nonlocal last
        with suppress(SeamlineError):
            last = load_pipeline(definitions_folder(), name).definition.stream.restart
        return last

    return read


def count_unread_records(pipeline: CompiledPipeline, layout: Layout) -> int | None:
    """Count the records that topics and tables have and the master has not read; None if one does not answer."""
    try:
        offsets = ask_source_ends(
            pipeline.definition, layout, os.environ, partial(ends_of, timeout=KAFKA_WITHIN)
        )
    except SeamlineError as error:
        log.warning("The lag is not known: %s", error.message)
        return None
    held = Master.open(layout).position(offsets.ends) if Master.exists(layout) else {}
    starts = {lane: held.get(lane, offsets.beginnings.get(lane, 0)) for lane in offsets.ends}
    return sum(
        len(OffsetRange(lane, starts[lane], max(end, starts[lane]))) for lane, end in offsets.ends.items()
    )
