"""Points at which a test lets a process die: ``SEAMLINE_FAIL=<point>:<n>`` kills it at the n-th passing.

Points of an epoch, in order, each passed just *after* the thing is done: ``planned`` (number taken, nothing
written), ``files`` (kernel done, nothing committed), ``slices``, ``quarantine``, ``master``, ``ledger``. Points of
a batch run: ``states`` (a view's files written, nothing committed), ``generation`` (a view's commit), ``built``,
``certified``, ``published``, ``served`` (a view's serving table). Without the variable nothing happens.
``SEAMLINE_POISON=<text>`` makes the kernel fail at every chunk in which a record's value holds the text: a bug
that one record sets off.
"""

from __future__ import annotations

import os
import signal
from collections import Counter

import pyarrow as pa

BATCH = ("states", "generation", "built", "certified", "published", "served")
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
