"""The memory of each part of a running demo.

    python -m benchmarks.memory                # in another terminal, while `make demo` runs

Shared pages count by share (PSS) where the system tells, else whole (RSS); says which.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import psutil

PARTS = {
    "kafka.Kafka": "broker (JVM)",
    "jobs.stream": "stream driver (Python)",
    "jobs/build": "build driver (Python)",
    "jobs.build": "build driver (Python)",
    "spark.daemon": "Python workers of Spark",
    "SparkSubmit": "Spark (JVM)",
    "seamline.supervisor": "supervisor",
    "seamline.local.demo": "the demo itself",
    "airflow": "Airflow, all its processes",
}


def main() -> int:
    """Print one line a part; 1 if no demo runs."""
    home = Path(sys.argv[1] if len(sys.argv) > 1 else ".seamline/demo").resolve()
    parts = found(home)
    if not parts:
        print(f"No demo runs in {home}.")
        return 1
    for name, (count, size) in sorted(parts.items(), key=lambda part: -part[1][1]):
        print(f"{name:<28}{count:>4} processes{size / 2**20:>8.0f} MB")
    print(f"{'together':<28}{'':>14}{sum(size for _, size in parts.values()) / 2**20:>8.0f} MB")
    return 0


def found(home: Path) -> Mapping[str, tuple[int, int]]:
    """Count the processes of each part of the demo in ``home`` and add up their bytes."""
    totals: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for process in psutil.process_iter():
        try:
            words = " ".join(process.cmdline())
            ours = str(home) in words or process.environ().get("SEAMLINE_HOME") == str(home)
            if not ours or not words:
                continue
            part = next((name for key, name in PARTS.items() if key in words), "others")
            memory = process.memory_full_info()
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
        count, size = totals[part]
        totals[part] = (count + 1, size + int(getattr(memory, "pss", memory.rss)))
    return totals


if __name__ == "__main__":
    sys.exit(main())
