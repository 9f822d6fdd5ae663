"""Points at which a test lets the driver die: ``SEAMLINE_FAIL=<point>:<n>`` kills it at the n-th passing.

Points, in the order of an epoch, each passed just *after* the thing is done: ``planned`` (number taken,
nothing written), ``files`` (kernel done, nothing committed), ``slices``, ``quarantine``, ``master``, ``ledger``.
Without the variable nothing happens. ``SEAMLINE_POISON=<text>`` makes the kernel fail at every chunk in which
a record's value holds the text: a bug that one record sets off.
"""

from __future__ import annotations

import os
import signal
from collections import Counter

import pyarrow as pa

POINTS = ("planned", "files", "slices", "quarantine", "master", "ledger")
passed: Counter[str] = Counter()


def reach(point: str, *, jvm: int | None = None) -> None:
    """Kill this process and its JVM, as a power cut would, if this is the passing that was asked for."""
    wanted, _, count = os.environ.get("SEAMLINE_FAIL", "").partition(":")
    if wanted != point:
        return
    passed[point] += 1
    if passed[point] == int(count or 1):
        for process in (jvm, os.getpid()):
            if process is not None:
                os.kill(process, signal.SIGKILL)


def swallow(values: pa.ChunkedArray) -> None:
    """Fail as a bug in the kernel would if one of the values is poisonous."""
    poison = os.environ.get("SEAMLINE_POISON", "").encode()
    if poison and any(poison in (value or b"") for value in values.to_pylist()):
        raise RuntimeError("a record was poisonous")
