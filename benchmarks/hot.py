"""An epoch whose records are all in one partition: read by one task, and by as many as there are cores.

    python -m benchmarks.hot [--records 300000]

The shipped kernel in one Spark over a real topic of four partitions; medians of three, alternating, after one of each.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from statistics import median
from unittest.mock import patch

from pyspark.sql import SparkSession

from benchmarks.machine import machine
from benchmarks.spine import TOPIC, broker
from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.kafka.produce import RecordWriter
from seamline.kernel.kernel_config import KernelConfig
from seamline.local.flights import Span, read_flights
from seamline.model.compile.catalog import load_pipeline
from seamline.model.protocol.offsets import Lane, OffsetRange
from seamline.spark.session.session import open_spark_session
from seamline.spark.stream import read_topics as topics_module
from seamline.spark.stream.read_topics import Topics
from seamline.spark.tasks.task import REPORT, kernel_task, merge_task_reports, warm_workers

ROOT = Path(__file__).resolve().parents[1]
RUNS = 3


def main(argv: list[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hot", description=__doc__)
    parser.add_argument("--records", type=int, default=300_000)
    count = parser.parse_args(argv).records
    print(machine(), flush=True)
    with tempfile.TemporaryDirectory() as folder, broker(Path(folder)) as connection:
        preload(connection, count)
        spark = open_spark_session("benchmarks.hot")
        warm_workers(spark)
        took: dict[str, list[float]] = {"one task": [], "split": []}
        for number in range(RUNS + 1):
            for name, seconds in took.items():
                spent = epoch(
                    spark, connection, Path(folder) / f"{name}-{number}", count, split=name == "split"
                )
                if number:
                    seconds.append(spent)
    for name, seconds in took.items():
        middle = median(seconds)
        print(f"{name}: {middle:.1f} s, {count / middle:,.0f} records/s")
    print(f"split / one task: {median(took['split']) / median(took['one task']):.2f}")
    return 0


def preload(connection: KafkaConnection, count: int) -> None:
    """Put flights into the first of four partitions."""
    with TopicAdmin(connection) as admin, RecordWriter(connection) as writer:
        admin.create_topic(TOPIC, 4)
        for flight in islice(read_flights(Span()), count):
            writer.send(TOPIC, value=json.dumps(flight).encode(), partition=0)


def epoch(spark: SparkSession, connection: KafkaConnection, home: Path, count: int, *, split: bool) -> float:
    """Read, judge and count them as an epoch does, without its commits; give the seconds."""
    pipeline = load_pipeline(ROOT / "include" / "pipelines", "flights")
    extra = {"bootstrap.servers": connection.brokers}
    os.environ["AIRFLOW_CONN_KAFKA_DEFAULT"] = json.dumps({"conn_type": "kafka", "extra": extra})
    topics = Topics(pipeline.name, pipeline.definition.source)
    part = OffsetRange(Lane(topics.ids[TOPIC], 0), 0, count)
    config = KernelConfig(
        pipeline=pipeline,
        topic_ids=topics.ids,
        token=1,
        epoch=0,
        committed={part.lane: 0},
        views=frozenset(view.id for view in pipeline.views),
        master=home / "master",
        quarantine=home / "quarantine",
        at=datetime.now(UTC),
    )
    for place in (config.master, config.quarantine):
        place.mkdir(parents=True)
    with patch.object(topics_module, "LEAST_SHARE", topics_module.LEAST_SHARE if split else count):
        raw = topics.read_range(spark, part)
    began = time.monotonic()
    result = merge_task_reports(
        (row.kind, row.payload) for row in raw.mapInArrow(kernel_task(config), REPORT).collect()
    )
    took = time.monotonic() - began
    assert result.accepted.total() + result.refused.total() == count
    return took


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
