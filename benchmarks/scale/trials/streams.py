"""A real stream that drains a topic: broker, JVM, tasks and tables."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from unittest.mock import patch

import psutil

from benchmarks import ads
from benchmarks.sampler import Sampler
from benchmarks.spine import broker
from seamline.lake.log.ledger import Ledger
from seamline.local.stack import StreamStack

STEADY_FROM = 0.4
"""The share of the records after which the JVM has compiled most of what it runs."""
PATIENCE = 600
CAPACITY = "spark.kafka.consumer.cache.capacity"
TICKS = 100
"""Of a second, as the system counts a thread's time."""


class Compilers(Sampler):
    """A sampler that knows, too, what the JVM's compilers have used: they are done some day, drains are short."""

    def look(self) -> None:
        """Add a sample, without what compilers have used."""
        before = len(self.samples)
        super().look()
        if len(self.samples) == before:
            return
        with suppress(psutil.NoSuchProcess):
            for process in psutil.Process(self.pid).children(recursive=True):
                if process.name() == "java":
                    self.seen_compiling |= dict(read_compiler_seconds(process.pid))
        moment, cpu, memory = self.samples[-1]
        self.compiled.append((moment, sum(self.seen_compiling.values())))
        self.samples[-1] = moment, cpu - self.compiled[-1][1], memory

    def __enter__(self) -> Compilers:
        self.seen_compiling: dict[str, float] = {}
        self.compiled: list[tuple[float, float]] = []
        super().__enter__()
        return self

    def compiling(self, since: float, until: float) -> float:
        """Return the CPU seconds that compilers have used between two moments."""
        first, last = (
            max((cpu for at, cpu in self.compiled if at <= moment), default=0.0) for moment in (since, until)
        )
        return last - first


def read_compiler_seconds(pid: int) -> Iterator[tuple[str, float]]:
    """Read the CPU seconds of a JVM's compiler threads."""
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            name, _, rest = (task / "stat").read_text().partition(") ")
            if "Compiler" in name:
                user, system = rest.split()[11:13]
                yield task.name, (int(user) + int(system)) / TICKS


def measure_stream(sizes: Mapping[str, float]) -> dict[str, float]:
    """Drain ``records`` in epochs of ``epoch``, from so many ``partitions`` into so many ``views``.

    Tasks keep the Kafka consumers of ``cache`` partitions, or of as many as Spark does by itself.
    """
    records, epoch, partitions = int(sizes["records"]), int(sizes["epoch"]), int(sizes["partitions"])
    with tempfile.TemporaryDirectory() as folder, broker(Path(folder)) as connection:
        with patch.object(ads, "PARTITIONS", partitions):
            ads.preload(connection, "ads", records)
        text = ads.definition("ads", epoch=epoch + partitions, views=int(sizes["views"]))
        # An epoch that takes long on a busy machine would make the next ones smaller.
        text = text.replace("Stream(", 'Stream(epoch_target="10 minutes", ')
        env = {}
        if "cache" in sizes:
            (Path(folder) / "spark-defaults.conf").write_text(f"{CAPACITY} {int(sizes['cache'])}\n")
            env["SPARK_CONF_DIR"] = folder
        stack = StreamStack(Path(folder) / "stack", text, connection, "ad_campaigns", env)
        stack.start()
        assert stack.driver
        with Compilers(stack.driver.pid) as sampler:
            stack.drain(records, PATIENCE, 0.5)
        stack.stop()
        rows, ends = 0, []
        for row in Ledger.ensure(stack.layout).read():
            if row.ranges:
                rows += sum(map(len, row.ranges))
                ends.append((row.committed_at.timestamp(), rows))
        first = next(at for at, (_, read) in enumerate(ends) if read >= STEADY_FROM * records)
        epochs, read = len(ends) - 1 - first, ends[-1][1] - ends[first][1]
        spent = sampler.cpu(ends[first][0], ends[-1][0])
        data = [
            path for path in stack.layout.table("master").rglob("*.parquet") if "_delta_log" not in str(path)
        ]
        return {
            "epoch_cpu_s": spent / epochs,
            "compile_cpu_s": sampler.compiling(ends[first][0], ends[-1][0]) / epochs,
            "epoch_wall_s": (ends[-1][0] - ends[first][0]) / epochs,
            "records": read / epochs,
            "python_mb": sampler.driver_mb,
            "jvm_mb": sampler.jvm_mb,
            "workers_mb": sampler.peak_mb - sampler.driver_mb - sampler.jvm_mb,
            "tasks": len(data) / len(ends),
            "master_bytes": sum(path.stat().st_size for path in data) / rows,
        }
