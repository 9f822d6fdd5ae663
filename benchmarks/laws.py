"""How many cases the laws and conformance suites try, and how long that takes. `python -m benchmarks.laws`

Cases of laws are those that Hypothesis generated and that passed; a conformance test tries what its parameters say.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.machine import machine

ROOT = Path(__file__).resolve().parents[1]
SUITES = ("tests/laws", "tests/conformance")
PASSING = re.compile(r"(\d+) passing, \d+ failing")
TESTS = re.compile(r"(\d+) passed")


def main() -> int:
    """Run both suites; the exit code is that of the first that failed."""
    print(machine())
    print("| suite | tests | generated cases | seconds |\n| --- | --- | --- | --- |")
    for suite in SUITES:
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "--hypothesis-show-statistics", suite],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            print(done.stdout[-3000:], file=sys.stderr)
            return done.returncode
        tests = sum(map(int, TESTS.findall(done.stdout)))
        cases = sum(map(int, PASSING.findall(done.stdout)))
        print(f"| {suite} | {tests} | {cases:,} | {time.monotonic() - began:.0f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
