"""How long a stream is down: SIGKILL to the next committed epoch, under its supervisor.

    python -m benchmarks.recovery [--trials 20] [--seed 1]

Each trial kills the driver's JVM, its Python parent, or both, at a random moment of an epoch, while records arrive;
the records' answers are checked against a plain replay at the end.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.faults.line import Line
from tests.ports import free_ports

from benchmarks.machine import machine, percentile
from seamline.local.broker import Broker


def main(argv: list[str]) -> int:
    """Measure and print; 0 if everything was counted once."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recovery", description=__doc__)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(argv)
    print(machine(), f"seed {options.seed}", sep="\n", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        broker = Broker(home / "kafka", free_ports(), free_ports())
        broker.start()
        line = Line(home / "line", broker.connection, options.seed, trigger="1 second", limit=100_000, env={})
        try:
            took = measured(line, options.trials, random.Random(options.seed))
        finally:
            line.close()
            broker.stop()
    print(
        f"SIGKILL to next committed epoch: n {len(took)}, p50 {percentile(took, 0.5):.1f} s, "
        f"p95 {percentile(took, 0.95):.1f} s, max {max(took):.1f} s"
    )
    return 0


def measured(line: Line, trials: int, chance: random.Random) -> list[float]:
    """Kill, and wait for the next epoch, again and again; then judge all of it."""
    took = []
    line.send(500)
    line.supervise()
    with line.reader:
        with line.flowing(200):
            for number in range(trials):
                line.await_beyond(line.stack.epoch())
                family = line.family()
                time.sleep(chance.uniform(0, 3))
                victim = chance.choice(["jvm", "python", "both"])
                epoch = line.stack.epoch()
                for pid in {
                    "jvm": [family.jvm],
                    "python": [family.driver],
                    "both": [family.jvm, family.driver],
                }[victim]:
                    line.kill(pid)
                began = time.monotonic()
                # One epoch may have been under way; the next one is the new driver's.
                line.await_beyond(epoch + 1)
                took.append(time.monotonic() - began)
                print(f"{number}: {victim} killed at epoch {epoch}: {took[-1]:.1f} s", flush=True)
        line.drained()
    line.stop()
    line.judge()
    return took


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
