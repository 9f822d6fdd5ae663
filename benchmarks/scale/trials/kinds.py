"""What can be measured: by kind, at given sizes, each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping

from benchmarks.scale.trials.yardstick import Yardstick

Sizes = Mapping[str, float]
Figures = dict[str, float]


def stream(sizes: Sizes) -> Figures:
    """Drain a topic."""
    from benchmarks.scale.trials.streams import measure_stream

    return measure_stream(sizes)


def life(sizes: Sizes) -> Figures:
    """Hold epochs without Spark, with upkeep."""
    from benchmarks.scale.trials.tables import measure_life

    return measure_life(sizes)


def merge(sizes: Sizes) -> Figures:
    """Merge states."""
    from benchmarks.scale.trials.tables import measure_merge

    return measure_merge(sizes)


def lanes(sizes: Sizes) -> Figures:
    """Commit epochs of many partitions."""
    from benchmarks.scale.trials.lanes import measure_lanes

    return measure_lanes(sizes)


def keys(sizes: Sizes) -> Figures:
    """Show an interval of many keys."""
    from benchmarks.scale.trials.keys import measure_keys

    return measure_keys(sizes)


def intervals(sizes: Sizes) -> Figures:
    """Plan, publish and answer over many intervals."""
    from benchmarks.scale.trials.answers import measure_intervals

    return measure_intervals(sizes)


def requests(sizes: Sizes) -> Figures:
    """Commit and answer in a bucket."""
    from benchmarks.scale.trials.stores import measure_requests

    return measure_requests(sizes)


def pipelines(sizes: Sizes) -> Figures:
    """Parse and reconcile."""
    from benchmarks.scale.trials.pipelines import measure_pipelines

    return measure_pipelines(sizes)


def builds(sizes: Sizes) -> Figures:
    """Build a range of days."""
    from benchmarks.scale.trials.builds import measure_builds

    return measure_builds(sizes)


TRIALS: dict[str, Callable[[Sizes], Figures]] = {
    each.__name__: each for each in (stream, life, lanes, merge, keys, intervals, requests, pipelines, builds)
}


def measure_apart(kind: str, sizes: Sizes) -> Figures:
    """Measure in a process of its own; CPU seconds are those of the machine whose units are kept."""
    words = [f"{name}={value!r}" for name, value in sizes.items()]
    with Yardstick() as stick:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.scale.trials.kinds", kind, *words],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    found: Figures = json.loads(done.stdout.splitlines()[-1])
    adjusted = {
        name: value / stick.slowness if name.endswith("cpu_s") else value for name, value in found.items()
    }
    return adjusted | {"slowness": stick.slowness}


def main(argv: list[str]) -> None:
    """Measure in this process."""
    sizes = {name: float(value) for name, value in (each.split("=") for each in argv[1:])}
    print(json.dumps(TRIALS[argv[0]](sizes)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
