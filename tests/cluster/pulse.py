"""Numbers in order through a cluster: what was sent, and whether each is counted once by every side."""

from __future__ import annotations

import os
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

from deltalake import DeltaTable

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.produce import RecordWriter
from seamline.lake.log.epoch_log import known_epochs
from seamline.lake.log.master import Master
from seamline.lake.storage.layout import locate_tables
from seamline.model.errors import AirflowFailed, AirflowUnavailable, SeamlineError, SetupError
from seamline.orchestration.airflow_api import AirflowApi
from seamline.serve.read import read

TOPIC, PARTITIONS, EACH = "pulse", 2, 40
BATCH, STREAM = "pulse__batch", "pulse__stream"
FIRST = datetime(2024, 1, 1, tzinfo=UTC)
DAYS = 3
WITHIN = 400.0


class Pulse:
    """A topic of numbers, and the pipeline that counts them by the day."""

    def __init__(self, connection: KafkaConnection) -> None:
        self.connection, self.sent = connection, 0

    def make_topic(self) -> None:
        """Make the topic."""
        with TopicAdmin(self.connection) as admin:
            admin.create_topic(TOPIC, PARTITIONS)

    def send(self, count: int = EACH) -> None:
        """Send so many numbers more, over all days: most of them are late."""
        with RecordWriter(self.connection) as writer:
            for number in range(self.sent, self.sent + count):
                value = b'{"id": %d, "at": "%s"}' % (number, at_of(number).isoformat().encode())
                writer.send(TOPIC, value=value, partition=number % PARTITIONS)
        self.sent += count

    def close(self) -> None:
        """Send a number of a later day to each partition, so that the watermark closes all others."""
        with RecordWriter(self.connection) as writer:
            for partition in range(PARTITIONS):
                at = (FIRST + timedelta(days=DAYS + 1)).isoformat().encode()
                writer.send(TOPIC, value=b'{"id": 0, "at": "%s"}' % at, partition=partition)

    def read(self) -> bool:
        """Return whether the stream has taken in all that was sent, and an edge stands behind it."""
        layout = locate_tables("pulse")
        try:
            if not Master.exists(layout):
                return False
            epochs, master = list(known_epochs(layout)), Master.open(layout)
        except SeamlineError:
            return False
        offsets = sum(len(part) for epoch in epochs for part in epoch.ranges)
        return offsets >= self.sent + PARTITIONS and master.edge == master.epoch

    def await_read(self) -> float:
        """Wait until all is read; return the seconds it took. SetupError if it does not come about."""
        began = time.monotonic()
        while not self.read():
            if time.monotonic() - began > WITHIN:
                raise SetupError(f"pulse has not read all within {WITHIN:g} s.", hint="see the hosts' logs.")
            time.sleep(0.2)
        return time.monotonic() - began

    def build(self, api: AirflowApi) -> float:
        """Have a run build what is dirty; return the seconds it took. SetupError if it fails.

        Airflow may be about to come back: its processes end when their database does.
        """
        began = time.monotonic()
        while True:
            try:
                run = api.trigger(BATCH, {"reason": "after a fault"})
                state = api.await_run(BATCH, run, timeout=WITHIN)
                break
            except (AirflowFailed, AirflowUnavailable):
                if time.monotonic() - began > WITHIN:
                    raise
                time.sleep(1.0)
        if state != "success":
            raise SetupError(f"Run {run} of {BATCH} ended as {state}.", hint="see the schedulers' logs.")
        return time.monotonic() - began

    def require_exact(self) -> None:
        """Each number is in the master once, and both sides together and the batch alone count each once."""
        store = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
        table = DeltaTable(str(locate_tables("pulse").table("master")), storage_options=store)
        rows = table.to_pyarrow_table(columns=["id", "at"]).to_pylist()
        found = Counter(row["id"] for row in rows if row["at"] < FIRST + timedelta(days=DAYS))
        wrong = {number: found[number] for number in range(self.sent) if found[number] != 1}
        if wrong or len(found) != self.sent:
            raise SetupError(
                f"The master has not each number once: {dict(list(wrong.items())[:5])}.", hint=""
            )
        for side in ("merged", "batch"):
            answer: Any = read("pulse.by_day", side=side, format="answer")
            told = {
                row["window_start"]: (row["n"], row["total"], row["highest"])
                for row in answer.table.to_pylist()
            }
            for day, expected in expect(self.sent).items():
                if told.get(day) != expected:
                    raise SetupError(f"{side} of {day:%Y-%m-%d}: {told.get(day)} for {expected}.", hint="")


def at_of(number: int) -> datetime:
    """Return the moment of a number."""
    return FIRST + timedelta(days=number % DAYS, seconds=number)


def expect(sent: int) -> dict[datetime, tuple[int, int, int]]:
    """Count numbers by the day, their sum and the highest, in plain Python."""
    numbers: dict[datetime, list[int]] = {}
    for number in range(sent):
        numbers.setdefault(FIRST + timedelta(days=number % DAYS), []).append(number)
    return {day: (len(all_), sum(all_), max(all_)) for day, all_ in numbers.items()}
