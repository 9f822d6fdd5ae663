"""Live lives until a budget is spent, or one again: ``python -m tests.lives --cpu 60``."""

from __future__ import annotations

import argparse
import logging
import math
import os
import sys
import time
import traceback

from tests.lives.lives import LENGTH, Tally, drawn, lived, revision, shrunk, told
from tests.lives.switches import OFF, ON


def main() -> int:
    """Return how many lives went wrong."""
    words = argparse.ArgumentParser(prog="python -m tests.lives")
    words.add_argument("--seed", type=int, help="this life alone")
    words.add_argument("--keep", help="of it these steps alone, with commas between")
    words.add_argument("--first", type=int, default=1, help="the first of several")
    words.add_argument("--seconds", type=float, default=math.inf)
    words.add_argument("--cpu", type=float, default=60, help="seconds of CPU")
    words.add_argument("--lives", type=int, default=sys.maxsize, help="so many at most")
    words.add_argument("--shrink", type=float, default=60, help="seconds to find out what a failure needs")
    words.add_argument("--length", type=int, default=LENGTH)
    words.add_argument(
        "--on", action="append", default=[], choices=[*OFF, *ON, "all"], help="with what is switched off"
    )
    words.add_argument("--off", action="append", default=[], choices=ON, help="without what is switched on")
    words.add_argument("--go-on", action="store_true", help="not end with the first that goes wrong")
    words.add_argument("--trace", action="store_true")
    asked = words.parse_args()
    logging.disable(logging.CRITICAL)
    on = {*ON, *(OFF if "all" in asked.on else asked.on)} - {*asked.off}
    tally, wrong, seed = Tally(), 0, asked.first if asked.seed is None else asked.seed
    until, last = time.monotonic() + asked.seconds, seed + asked.lives
    while time.monotonic() < until and time.process_time() < asked.cpu and seed < last:
        life = drawn(seed, on, length=asked.length)
        if asked.keep is not None:
            life = life.only({int(each) for each in asked.keep.split(",") if each})
        began = time.monotonic()
        failure = lived(life)
        tally.add(life)
        if failure:
            wrong += 1
            print(f"after {time.process_time():.0f} s of CPU", flush=True)
            if asked.trace:
                traceback.print_exception(failure.error)
            if asked.keep is None:
                life, failure = shrunk(life, failure, until=time.monotonic() + asked.shrink)
            print(told(life, failure), flush=True)
        if asked.seed is not None or (failure and not asked.go_on):
            break
        seed += 1
    took = time.monotonic() - began
    print(f"revision {revision()}: {tally}; {wrong} went wrong; the last took {took:.2f} s")
    return min(wrong, 1)


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    # DuckDB complains of what is left to the end of a process.
    os._exit(code)
