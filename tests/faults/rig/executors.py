"""Epochs in parts, an executor killed in each stage: `python -m tests.faults.rig.executors FOLDER`.

The last line of its output has what was sent, where executors were killed, and how often an epoch was tried again.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from tests.unit.records import pipeline

from seamline import Stream, Tumbling, View, count
from seamline.kernel.kernel_config import KernelConfig
from seamline.lake.storage.layout import Layout
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.errors import SparkFailed
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.offsets import Lane, OffsetRange
from seamline.runtime.failpoints import Family
from seamline.spark.session.session import open_spark_session
from seamline.spark.stream import known_ids
from seamline.spark.stream.epoch_writer import Writer
from seamline.spark.stream.surveying import Surveys
from seamline.spark.tasks import state_parts
from seamline.testing.engine import RAW

AT = datetime(2024, 3, 1, 9, tzinfo=UTC)
PARTS, STEP, SIZE = 2, 20, 40
"""Parts, new ids of an epoch, and its records: half of them have ids of before."""
STAGES = {
    "made again": (known_ids, "load_index"),
    "marked": (known_ids, "mark_ids"),
    "counted": (state_parts, "make_states"),
    "merged": (state_parts, "merge_states"),
}
"""What each stage runs in tasks, by where its function is made."""
WIDE = compile_pipeline(
    pipeline(
        "id BIGINT, at TIMESTAMP",
        event_id=["id"],
        dedup_within="1 day",
        stream=Stream(parts=PARTS),
        views=[View("by_id", keys=["id"], window=Tumbling("1 day"), measures={"n": count()})],
    )
)
SETTINGS = {"spark.shuffle.io.maxRetries": "1", "spark.shuffle.io.retryWait": "1s"}
"""What an executor had left is soon found to be lost."""


MOST = 10
"""Failures of epochs, of all together."""


def strike_once(flag: str) -> None:
    """Kill the executor of the first task that comes here, and of no other."""
    try:
        os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    Family.of_worker().strike("executor")


def strike_in(make: Callable[..., Any], flag: Path) -> Callable[..., Any]:
    """Have a stage's tasks come to a strike when they have done all, and told nobody."""
    said = str(flag)

    def made(*given: Any, **named: Any) -> Callable[..., Iterator[Any]]:
        work = make(*given, **named)

        def task(*words: Any) -> Iterator[Any]:
            done = [*work(*words)]
            strike_once(said)
            yield from done

        return task

    return made


class Driver:
    """Makes epochs as a stream does, and tries one again under another number that Spark has failed."""

    def __init__(self, folder: Path) -> None:
        self.spark = open_spark_session(
            "tests.faults", cores="local-cluster[2,1,1024]", memory="1g", more=SETTINGS
        )
        self.folder = folder
        self.layout = Layout(folder / "warehouse", WIDE.name)
        self.writer = Writer(self.layout, WIDE, 1)
        self.writer.repair_ledger()
        self.surveys = Surveys(self.writer.pipeline, self.layout, folder / "ids")
        self.sent: Counter[int] = Counter()
        self.failures: list[str] = []

    def records(self) -> pa.Table:
        """Make an epoch's records."""
        first = self.sent.total()
        ids = [max(first // 2 + number - STEP, 0) for number in range(SIZE)]
        self.sent.update(ids)
        rows = [
            {
                "value": json.dumps({"id": id, "at": AT.isoformat()}).encode(),
                "topic": "t",
                "partition": 0,
                "offset": first + at,
                "timestamp": AT,
            }
            for at, id in enumerate(ids)
        ]
        return pa.Table.from_pylist(rows, RAW)

    def epoch(self, between: Callable[[], object] = int) -> None:
        """Make one epoch; ``between`` is done when its parts have ended and nothing is committed."""
        raw = self.records()
        while True:
            try:
                return self.attempt(raw, between)
            except (SparkFailed, PySparkException, Py4JError) as error:
                self.failures.append(str(error).splitlines()[0])
                if len(self.failures) > MOST:
                    raise
                self.surveys.settle(self.writer.master.epoch)

    def attempt(self, raw: pa.Table, between: Callable[[], object]) -> None:
        """Survey, count and commit an epoch in parts, under a number of its own."""
        number, views = self.writer.take_number(), self.writer.current
        config = KernelConfig(
            pipeline=self.writer.pipeline,
            topic_ids={"t": "T"},
            token=1,
            epoch=number,
            committed={},
            views=views,
            master=self.writer.master.table.root,
            quarantine=self.writer.quarantine.root,
            parts=PARTS,
            slices={view: slices.table.root for view, slices in self.writer.slices.items()},
        )
        frame = self.spark.createDataFrame(raw)
        config = self.surveys.survey(frame, config)
        result = state_parts.run_epoch_in_parts(frame, config)
        between()
        part = OffsetRange(Lane("T", 0), raw["offset"][0].as_py(), raw["offset"][-1].as_py() + 1)
        facts: dict[str, Any] = {"ranges": (part,), "accepted": dict(result.accepted)}
        blank = Epoch(number, 1, AT, record_version=WIDE.record_version, edge=True)
        self.writer.commit(replace(blank, **facts), result, views)
        self.surveys.commit(number)

    def lose(self, parts: Iterable[int]) -> None:
        """Take away what parts of the index have, as a disk does that was the executor's alone."""
        assert self.surveys.ids and self.surveys.ids.asked
        for part in parts:
            shutil.rmtree(self.surveys.ids.asked.part_folder(part))


def strike_each_stage(folder: Path) -> dict[str, Any]:
    """Kill an executor in each stage in turn, and tell what became of the epochs."""
    driver, struck = Driver(folder), []
    driver.epoch()
    for stage, (module, name) in STAGES.items():
        before, flag = getattr(module, name), folder / stage
        setattr(module, name, strike_in(before, flag))
        if name == "load_index":
            driver.lose([0])
        driver.epoch()
        setattr(module, name, before)
        struck += [stage] if flag.exists() else []
    driver.epoch(lambda: Family.of_driver(os.getpid()).strike("executor"))
    driver.epoch()
    Family.of_driver(os.getpid()).strike("executor")
    driver.lose([1])
    driver.epoch()
    return {"sent": driver.sent, "struck": struck, "failures": driver.failures}


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    print(json.dumps(strike_each_stage(Path(sys.argv[1]))), flush=True)
    # The executors of a session that ends on its own would be started again and again.
    os._exit(0)
