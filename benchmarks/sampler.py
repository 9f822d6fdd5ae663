"""What a process and all it has started cost over time: CPU seconds and memory, by sampling."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import psutil

EVERY = 0.25


@dataclass
class Sampler:
    """Samples a process tree while the ``with`` lasts: (epoch seconds, CPU seconds, resident MB)."""

    pid: int
    pages_once: bool = False
    """Whether pages that processes share are counted once in ``once_mb``, which takes milliseconds a look."""
    driver_mb: float = 0.0
    """The most memory of the process itself."""
    jvm_mb: float = 0.0
    """The most memory of its JVM, if it has one."""
    once_mb: float = 0.0
    """The most memory of all: their proportional set sizes."""
    samples: list[tuple[float, float, float]] = field(default_factory=list)
    halt: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Sampler:
        self.seen: dict[tuple[int, float], float] = {}
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.halt.set()
        self.thread.join()

    def watch(self) -> None:
        """Look again and again."""
        while not self.halt.wait(EVERY):
            self.look()

    def look(self) -> None:
        """Add a sample; what a process used that has ended stays counted as of the last look at it."""
        memory = 0
        try:
            root = psutil.Process(self.pid)
            alive = [root, *root.children(recursive=True)]
        except psutil.NoSuchProcess:
            return
        for process in alive:
            try:
                times, held = process.cpu_times(), process.memory_info().rss
                self.seen[process.pid, process.create_time()] = times.user + times.system
                if process is root:
                    self.driver_mb = max(self.driver_mb, held / 2**20)
                elif process.ppid() == self.pid and process.name() == "java":
                    self.jvm_mb = max(self.jvm_mb, held / 2**20)
            except psutil.NoSuchProcess:
                continue
            memory += held
        if self.pages_once:
            shares = sum(share_of_memory(process.pid) for process in alive)
            self.once_mb = max(self.once_mb, shares / 2**10)
        self.samples.append((time.time(), sum(self.seen.values()), memory / 2**20))

    def cpu(self, since: float, until: float) -> float:
        """Return the CPU seconds used between two moments, between the samples next to them."""
        return self.at(until) - self.at(since)

    def at(self, moment: float) -> float:
        """Return the CPU seconds used up to a moment, by straight lines between samples."""
        place = bisect_left(self.samples, (moment,))
        if place == 0:
            return 0.0 if not self.samples else self.samples[0][1]
        if place == len(self.samples):
            return self.samples[-1][1]
        (t0, c0, _), (t1, c1, _) = self.samples[place - 1], self.samples[place]
        return c0 + (c1 - c0) * (moment - t0) / max(t1 - t0, 1e-9)

    @property
    def peak_mb(self) -> float:
        """The most memory there was at a look."""
        return max((sample[2] for sample in self.samples), default=0.0)


def share_of_memory(pid: int) -> int:
    """Return the proportional set size of a process in KiB; 0 of one that has gone."""
    try:
        told = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in told.splitlines() if line.startswith("Pss:"))
