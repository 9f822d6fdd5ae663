"""The heartbeat of a driver: where its epochs, Kafka's topics and the views stand."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from seamline.lake.status.ask_words import read_ask_words
from seamline.model.errors import KafkaUnavailable, StoreUnavailable
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.offsets import OffsetRange, Vector
from seamline.model.time.intervals import format_utc_instant
from seamline.plan.stream.ask_counts import AskCount
from seamline.runtime.processes import own_process_name
from seamline.spark.stream.driver_heartbeat import Heartbeat, Trail, write_heartbeat
from seamline.spark.stream.epoch_writer import Writer
from seamline.spark.stream.progress import Progress
from seamline.spark.stream.read_topics import Topics

RENEWED_AFTER = 5.0
"""Seconds after which a heartbeat is written between epochs, where others than the driver have news."""


class Pulse:
    """Writes the heartbeat ``file``, and remembers what it takes from one beat to the next."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.ends: Vector = {}
        self.trail, self.up, self.process = Trail(), datetime.now(UTC), own_process_name()
        self.written = 0.0

    def renew(self, progress: Progress, writer: Writer, topics: Topics) -> None:
        """Write the heartbeat of an idle stream from time to time: those who ask go on without epochs."""
        if writer.pipeline.asks and time.monotonic() - self.written >= RENEWED_AFTER:
            self.beat(progress, writer, topics, "running")

    def write(self, progress: Progress, writer: Writer, topics: Topics, state: str) -> None:
        """Write the heartbeat; where Kafka does not answer, its ends are those of the last one."""
        with contextlib.suppress(KafkaUnavailable, StoreUnavailable):
            self.ends = topics.fetch_ends(progress.vector)
        self.beat(progress, writer, topics, state)

    def beat(self, progress: Progress, writer: Writer, topics: Topics, state: str) -> None:
        """Write the heartbeat, with the ends that Kafka gave last."""
        self.written = time.monotonic()
        epoch = progress.epoch or Epoch(-1, writer.token, datetime.now(UTC), "")
        at = {lane: (end, self.ends.get(lane, end)) for lane, end in progress.vector.items()}
        now = datetime.now(UTC)
        # Offsets of a table tell versions, and are no count of rows.
        counted = [both for lane, both in at.items() if not lane.of_table]
        read, end = (sum(both[which] for both in counted) for which in (0, 1))
        reached, earlier = self.trail.add(now, read, end)
        write_heartbeat(
            self.file,
            Heartbeat(
                pid=os.getpid(),
                token=writer.token,
                epoch=epoch.number,
                watermark=format_utc_instant(epoch.watermark) if epoch.watermark else "",
                rows=epoch.rows,
                refused=sum(epoch.refused.values()),
                lag={
                    str(lane): len(OffsetRange(lane, read, max(end, read)))
                    for lane, (read, end) in at.items()
                },
                seconds=writer.timing.seconds,
                behind={view: at for view, at in epoch.frontiers.items() if at != epoch.number},
                state=state,
                at=format_utc_instant(now),
                errors=dict(writer.errors),
                hot=dict(writer.hot),
                indexed=dict(writer.indexed),
                rules=dict(writer.rules),
                asks=read_ask_counts(writer),
                topics={id: name for name, id in topics.ids.items()},
                reached=reached,
                earlier=earlier,
                up=format_utc_instant(self.up),
                process=self.process,
            ),
        )


def read_ask_counts(writer: Writer) -> dict[str, AskCount]:
    """Read what the processes that ask have said, and why those that keep ending do so."""
    said = read_ask_words(writer.pipeline.name, [each.name for each in writer.pipeline.asks])
    broken = {name: replace(said.get(name, AskCount()), ended=why) for name, why in writer.ended.items()}
    return {**said, **broken}
