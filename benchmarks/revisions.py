"""What a change costs: two revisions drain the same topic in turn, the older one twice a round, as its own yardstick.

    python -m benchmarks.revisions BEFORE [AFTER] [--records 3000000] [--rounds 6]

Each revision runs whole, its own job and its own harness, from a copy of its files; AFTER is HEAD unless it is named.
Printed are the ratios of CPU seconds per million events and of rates within a round, as minimum, median and maximum:
AFTER to BEFORE, and BEFORE to itself, which says what the machine's own unrest makes of no change at all.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks import ads
from benchmarks.drain import Run
from benchmarks.machine import machine
from benchmarks.results import Results
from benchmarks.spine import broker

ROOT = Path(__file__).resolve().parents[1]
TURNS = ("before", "again", "after")
ONE = """
import json, os, pickle, sys
from dataclasses import asdict
from pathlib import Path
from benchmarks.drain import Drain, seamline
from seamline.kafka.connections import KafkaConnection
brokers, topic, count, truth, home = sys.argv[1:]
drain = Drain(KafkaConnection(brokers), topic, int(count), pickle.loads(Path(truth).read_bytes()))
print(json.dumps(asdict(seamline(drain, Path(home)))), flush=True)
os._exit(0)
"""
"""Run by a revision's own code, which may have any names but those of the benchmark; Spark's JVM ends with it."""


@dataclass(frozen=True)
class Ratio:
    """Quotients within rounds: their least, median and greatest."""

    least: float
    middle: float
    most: float

    def __str__(self) -> str:
        return f"{self.middle:.3f} ({self.least:.3f} to {self.most:.3f})"


def copied(revision: str, folder: Path) -> Path:
    """Lay the files of a revision into ``folder``; CalledProcessError where there is no such revision."""
    folder.mkdir()
    files = subprocess.run(["git", "archive", revision], cwd=ROOT, capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x", "-C", str(folder)], input=files, check=True)
    return folder


def drained(code: Path, given: Sequence[str]) -> Run:
    """Drain once by the code of a revision."""
    path = os.pathsep.join([str(code / "include"), str(code)])
    env = {**os.environ, "PYTHONPATH": path, "SEAMLINE_JOBS": str(code / "spark_jobs")}
    done = subprocess.run(
        [sys.executable, "-c", ONE, *given], cwd=code, env=env, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{code.name} failed:\n{done.stderr[-3000:]}")
    return Run(**json.loads(done.stdout.splitlines()[-1]))


def ratio(rounds: Sequence[dict[str, Run]], over: str, under: str, figure: Callable[[Run], float]) -> Ratio:
    """Compare two of each round by a figure."""
    found = sorted(figure(each[over]) / figure(each[under]) for each in rounds)
    return Ratio(found[0], median(found), found[-1])


def main(argv: list[str]) -> int:
    """Let both drain in turn, another first each round, and print the ratios."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.revisions", description=__doc__)
    parser.add_argument("before")
    parser.add_argument("after", nargs="?", default="HEAD")
    parser.add_argument("--records", type=int, default=3_000_000)
    parser.add_argument("--rounds", type=int, default=6)
    options = parser.parse_args(argv)
    print(machine(), flush=True)
    rounds: list[dict[str, Run]] = []
    with tempfile.TemporaryDirectory() as name, broker(Path(name)) as connection:
        folder = Path(name)
        before = copied(options.before, folder / "before")
        code = {"before": before, "again": before, "after": copied(options.after, folder / "after")}
        truth = folder / "truth"
        truth.write_bytes(pickle.dumps(ads.preload(connection, "ads", options.records)))
        for number in range(options.rounds):
            turn = number % len(TURNS)
            found: dict[str, Run] = {}
            for which in [*TURNS[turn:], *TURNS[:turn]]:
                home = folder / f"{which}-{number}"
                given = [connection.brokers, "ads", str(options.records), str(truth), str(home)]
                found[which] = run = drained(code[which], given)
                print(
                    f"{which:7}{run.steady_rate:9,.0f} events/s, {run.cpu_per_million:.2f} CPU s", flush=True
                )
            rounds.append(found)
    figures: dict[str, Callable[[Run], float]] = {
        "CPU s per million": lambda run: run.cpu_per_million,
        "CPU s per million, start to end": lambda run: run.whole_cpu_per_million,
        "events/s": lambda run: run.steady_rate,
    }
    for label, figure in figures.items():
        print(f"{label}: {ratio(rounds, 'after', 'before', figure)}; ", end="")
        print(f"before to itself: {ratio(rounds, 'again', 'before', figure)}")
    kept = [{which: vars(run) for which, run in each.items()} for each in rounds]
    Results("revisions").write({"machine": machine(), "revisions": vars(options), "rounds": kept})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
