"""How fast this machine computes at the moment: the CPU seconds of a fixed piece of work, beside what is measured.

    python -m benchmarks.scale.trials.yardstick

A program of its own; a line of input ends it, and it prints the median. Neighbours on the same cores make the same
work cost more CPU seconds, so figures are divided by how much slower it is than REFERENCE.
"""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
import zlib
from statistics import median
from types import TracebackType

REFERENCE = 0.035
"""CPU seconds of a piece of work on the machine whose units are kept."""
PAUSE = 1.0
"""Seconds between two pieces."""


class Yardstick:
    """Runs the program while the block runs; ``slowness`` is then how many times REFERENCE a piece has taken."""

    slowness = 1.0

    def __enter__(self) -> Yardstick:
        command = [sys.executable, "-m", "benchmarks.scale.trials.yardstick"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        told, _ = self.process.communicate("\n")
        self.slowness = float(told) / REFERENCE


def piece_of_work(values: list[int], text: bytes) -> float:
    """Sort, count and compress; return the CPU seconds."""
    began = time.thread_time()
    counts: dict[int, int] = {}
    for each in sorted(values):
        counts[each % 1000] = counts.get(each % 1000, 0) + 1
    zlib.compress(text)
    return time.thread_time() - began


def main() -> None:
    """Work now and then until a line comes."""
    dice = random.Random(1)
    values = [dice.randrange(1 << 30) for _ in range(100_000)]
    text = b"".join(b"%d," % each for each in values[:20_000])
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.readline(), ended.set()), daemon=True).start()
    taken = [piece_of_work(values, text) for _ in range(3)]
    while not ended.wait(PAUSE):
        taken.append(piece_of_work(values, text))
    print(median(taken))


if __name__ == "__main__":
    main()
