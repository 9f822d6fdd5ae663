"""Flink asks about each record of a topic by its asynchronous I/O, in any order, and writes rows with their answers.

The function that asks is FlinkAsks.java, which the JDK's compiler makes anew for each run.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    KafkaException,
    TopicPartition,
)

from benchmarks.ads import PARTITIONS
from benchmarks.peers.flink import Flink, Job, flink
from benchmarks.peers.flink_jars import class_path
from benchmarks.sampler import EVERY, Sampler
from benchmarks.spine import free_port
from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import KafkaConnection
from seamline.model.errors import SetupError
from seamline.runtime.java import java_home

SOURCE = Path(__file__).with_name("FlinkAsks.java")
STEADY_FROM = 0.25
PATIENCE = 60.0
"""Seconds to wait for answers that are there."""
COMMON_POOL = "-Djava.util.concurrent.ForkJoinPool.common.parallelism=2"
"""On two cores Java would give that pool one thread, and then start a thread for each answer by HTTP."""


@dataclass(frozen=True)
class Asking:
    """Who is asked: a row's ``fields`` go to ``url`` as JSON, or come back after ``millis`` where there is none."""

    fields: Sequence[str]
    url: str = ""
    millis: int = 20
    at_once: int = 64
    """The most calls at one time; the ``tasks`` share them."""
    tasks: int = 2
    timeout: float = 2.0
    """Seconds after which a row gets an error instead of an answer."""


@dataclass(frozen=True)
class Answered:
    """So many rows with answers; ``seconds`` are from the first one that the broker got to the last one."""

    records: int
    seconds: float
    cpu: float
    """CPU seconds of the JVM in that time."""
    steady: float
    """Rows a second, the first quarter of the rows left out."""
    steady_cpu: float
    """CPU seconds per thousand rows, the same left out."""
    mb: float
    """The most memory of the JVM."""
    first: float
    """Seconds from the start of the JVM to the first row."""

    @property
    def rate(self) -> float:
        """Rows a second."""
        return self.records / self.seconds


def run_flink_asks(
    connection: KafkaConnection, topic: str, answers: str, home: Path, asking: Asking
) -> Answered:
    """Let Flink answer all that is in ``topic`` into a new topic; SystemExit if a row has no answer."""
    home.mkdir(parents=True)
    classes = compile_function(home / "classes")
    with TopicAdmin(connection) as admin:
        count = sum(admin.end_offsets(topic).values())
        admin.create_topic(answers, PARTITIONS, config={"message.timestamp.type": "LogAppendTime"})
    began = time.time()
    with flink(home, classes, options=[COMMON_POOL]) as engine, Sampler(engine.pid) as sampler:
        submit(engine, connection.brokers, topic, answers, asking).wait()
        time.sleep(2 * EVERY)
    rows = sorted(read_rows(connection, answers))
    failed = [error for _, error in rows if error]
    if failed or len(rows) != count:
        raise SystemExit(f"Flink wrote {len(rows):,} rows of {count:,}, {len(failed):,} failed: {failed[:1]}")
    return measure([moment for moment, _ in rows], began, sampler)


def measure(moments: Sequence[float], began: float, sampler: Sampler) -> Answered:
    """Work out the figures of rows that came at ``moments``, which are in order."""
    skipped = int(len(moments) * STEADY_FROM)
    first, quarter, last = moments[0], moments[skipped], moments[-1]
    return Answered(
        records=len(moments),
        seconds=last - first,
        cpu=sampler.cpu(first, last),
        steady=(len(moments) - skipped) / (last - quarter),
        steady_cpu=sampler.cpu(quarter, last) * 1000 / (len(moments) - skipped),
        mb=sampler.peak_mb,
        first=first - began,
    )


def compile_function(classes: Path) -> Path:
    """Compile the function that asks; SetupError where Java comes without its compiler."""
    javac = java_home() / "bin" / "javac"
    if not javac.exists():
        raise SetupError(
            f"{SOURCE.name} has to be compiled, and there is no {javac}.",
            hint="install a JDK 17 or later and set JAVA_HOME; the Java from PyPI has no compiler.",
        )
    jars = ":".join(map(str, class_path()))
    subprocess.run([javac, "-proc:none", "-cp", jars, "-d", classes, SOURCE], check=True)
    return classes


def submit(engine: Flink, brokers: str, topic: str, answers: str, asking: Asking) -> Job:
    """Hand in the job, which ends where the topic does."""
    java, port = engine.jvm.org.apache.flink, free_port()
    streaming = java.streaming.api
    environment = streaming.environment.StreamExecutionEnvironment.getExecutionEnvironment(
        engine.configuration(port)
    )
    environment.setParallelism(asking.tasks)
    without_time = java.api.common.eventtime.WatermarkStrategy.noWatermarks()
    rows = streaming.datastream.AsyncDataStream.unorderedWait(
        environment.fromSource(read_from(engine, brokers, topic), without_time, topic),
        engine.jvm.benchmarks.FlinkAsks(asking.url, asking.millis, java_list(engine, asking.fields)),
        int(asking.timeout * 1000),
        engine.jvm.java.util.concurrent.TimeUnit.MILLISECONDS,
        asking.at_once // asking.tasks,
    )
    rows.sinkTo(write_to(engine, brokers, answers))
    return Job(environment.executeAsync(), port)


def read_from(engine: Flink, brokers: str, topic: str) -> Any:
    """Make the source: as text, all that is in a topic now."""
    java = engine.jvm.org.apache.flink
    offsets = java.connector.kafka.source.enumerator.initializer.OffsetsInitializer
    source = java.connector.kafka.source.KafkaSource.builder().setBootstrapServers(brokers)
    source.setTopics(java_list(engine, [topic])).setProperty("register.consumer.metrics", "false")
    source.setStartingOffsets(offsets.earliest()).setBounded(offsets.latest())
    return source.setValueOnlyDeserializer(java.api.common.serialization.SimpleStringSchema()).build()


def write_to(engine: Flink, brokers: str, topic: str) -> Any:
    """Make the sink: each row once or more often, as text."""
    java = engine.jvm.org.apache.flink
    sinks, text = java.connector.kafka.sink, java.api.common.serialization.SimpleStringSchema()
    record = sinks.KafkaRecordSerializationSchema.builder().setTopic(topic).setValueSerializationSchema(text)
    sink = sinks.KafkaSink.builder().setBootstrapServers(brokers).setRecordSerializer(record.build())
    sink.setDeliveryGuarantee(java.connector.base.DeliveryGuarantee.AT_LEAST_ONCE)
    return sink.setProperty("register.producer.metrics", "false").build()


def java_list(engine: Flink, words: Sequence[str]) -> Any:
    """Make a list of words."""
    made = engine.jvm.java.util.ArrayList()
    for word in words:
        made.add(word)
    return made


def read_rows(connection: KafkaConnection, topic: str) -> Iterator[tuple[float, str]]:
    """Read when the broker got each row of a topic, and the error in it; TimeoutError if it does not give them."""
    with TopicAdmin(connection) as admin:
        ends = admin.end_offsets(topic)
    consumer = Consumer(
        {"bootstrap.servers": connection.brokers, "group.id": topic, "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in ends])
    until = time.monotonic() + PATIENCE
    left = sum(ends.values())
    while left:
        if time.monotonic() > until:
            raise TimeoutError(f"{left:,} rows of {topic} were not read.")
        for message in consumer.consume(10_000, timeout=1):
            if error := message.error():
                raise KafkaException(error)
            kind, millis = message.timestamp()
            assert kind == TIMESTAMP_LOG_APPEND_TIME
            left -= 1
            yield millis / 1000, json.loads(message.value() or b"").get("error", "")
    consumer.close()
