"""Points at which a test kills a process: ``SEAMLINE_FAIL=<point>:<n>:<victim>`` strikes at the n-th passing.

There may be several, with commas between. Points of an epoch, in order, each passed just *after* the thing is done:
``planned`` (number taken, nothing written), ``half`` (in a task, while its data files are open), ``part`` (in a task
that has written the states of a part, where there are many), ``files`` (kernel done, nothing committed), ``slices``,
``quarantine``, ``master``, ``ledger``. Points of a batch run: ``states`` (a view's files written, nothing committed),
``generation`` (a view's commit), ``built``, ``certified``, ``published``, ``served`` (a view's serving table). In a
task of a build: ``partials`` (before it reports a view's states), ``hashed`` (ids sent to parts), ``sorted`` (a part
has heard all hashes), ``compared`` (a part has heard all rows to compare), ``merged`` (merged states are written).
``answered`` (another system has answered, nothing
is written) and ``recorded`` (the topic has it) are passed by a process that asks.
Points of a sink: ``sink_taken`` (it has taken its target over), ``sink_begun`` and ``sink_half`` (a topic's transaction
has begun, and has its first record), ``sink_rows`` (rows are with the target, the position that says so is not),
``sink_written`` (both are), ``sink_sent`` (nobody else was told yet), ``sink_clearing`` (some rows are deleted).
Points of a replay of dead letters: ``letters_read`` (some are read, not produced), ``letters_replayed`` (they are).
``moved``: a file of a warehouse that moves was copied and verified. Without the variable nothing happens.
The victim is ``all`` (the driver with its JVM and workers, the default), ``jvm``, ``python`` (the driver's own
process), ``worker`` (a Python worker of Spark's), ``executor`` (the JVM of one, where it is not the driver's: in a
task its own), or ``freeze``: all are stopped, as a suspended machine's are.
``SEAMLINE_POISON=<text>`` makes the kernel fail at every chunk in which a record's value contains the text: a bug
that one record sets off. ``SEAMLINE_DEADLY=<text>`` kills the driver, its JVM and its workers there, each time: a
record for which the machine runs out of memory.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from dataclasses import dataclass

import psutil
import pyarrow as pa

EPOCH = ("planned", "half", "files", "slices", "quarantine", "master", "ledger")
TASKS = ("half", "part", "partials", "hashed", "sorted", "compared", "merged")
"""Points that are passed in a task of Spark's: a task that is tried again passes them again."""
BATCH = ("states", "generation", "built", "certified", "published", "served")
DAEMON = "spark.daemon"
"""What the command of the workers' parent has in it: ours (``seamline.spark.daemon``), and PySpark's own elsewhere."""
passed: Counter[str] = Counter()


@dataclass(frozen=True)
class Family:
    """The process ids of a driver."""

    driver: int
    """The driver's own."""
    jvm: int | None
    """Its JVM; None without one."""
    workers: tuple[int, ...] = ()
    """Spark's Python workers."""
    executors: tuple[int, ...] = ()
    """JVMs of executors, where they are processes of this machine and of the driver's JVM."""

    @classmethod
    def of_driver(cls, pid: int, jvm: int | None = None) -> Family:
        """Find what belongs to a driver, whose JVM is found where it is not passed."""
        below = [each for each in psutil.Process(pid).children(recursive=True) if is_process_running(each)]
        jvms = [each.pid for each in below if each.name() == "java"]
        executors = tuple(each.pid for each in below if each.pid in jvms and each.ppid() in jvms)
        daemons = {each.pid for each in below if DAEMON in " ".join(each.cmdline()) and each.ppid() in jvms}
        workers = tuple(each.pid for each in below if each.ppid() in daemons)
        return cls(pid, jvm or next(iter(jvms), None), workers, executors)

    @classmethod
    def of_worker(cls) -> Family:
        """Find what a worker, this process, belongs to: its daemon's parent is the JVM, whose parent the driver.

        The parent of an executor's JVM is the driver's.
        """
        _, jvm, driver, *above = psutil.Process().parents()
        if driver.name() == "java":
            return cls(above[0].pid, driver.pid, (os.getpid(),), (jvm.pid,))
        return cls(driver.pid, jvm.pid, (os.getpid(),))

    def strike(self, victim: str) -> None:
        """Kill the victim at once, or stop the whole family; this process is the last of it."""
        everybody = sorted(
            [*self.workers, *self.executors, *([self.jvm] if self.jvm else []), self.driver],
            key=lambda pid: pid == os.getpid(),
        )
        struck = {
            "all": everybody,
            "jvm": [pid for pid in everybody if pid == self.jvm],
            "python": [self.driver],
            "worker": self.workers[:1],
            "executor": self.executors[:1],
            "freeze": everybody,
        }[victim]
        for pid in struck:
            os.kill(pid, signal.SIGSTOP if victim == "freeze" else signal.SIGKILL)


def is_process_running(process: psutil.Process) -> bool:
    """Return whether a process runs."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def hit_failpoint(point: str, *, jvm: int | None = None) -> None:
    """Strike, as a power cut would, if this is a passing that was asked for."""
    asked = [each.split(":") for each in os.environ.get("SEAMLINE_FAIL", "").split(",")]
    passed[point] += 1
    for count, victim in ((*rest, *("1", "all")[len(rest) :]) for wanted, *rest in asked if wanted == point):
        if passed[point] == int(count):
            family = Family.of_worker() if point in TASKS else Family.of_driver(os.getpid(), jvm)
            family.strike(victim)


def fail_on_poison(values: pa.ChunkedArray) -> None:
    """Fail as a bug in the kernel would if one of the values is poisonous, die if one is deadly."""
    poison, deadly = (os.environ.get(name, "").encode() for name in ("SEAMLINE_POISON", "SEAMLINE_DEADLY"))
    if not poison and not deadly:
        return
    found = [value or b"" for value in values.to_pylist()]
    if deadly and any(deadly in value for value in found):
        Family.of_worker().strike("all")
    if poison and any(poison in value for value in found):
        raise RuntimeError("a record was poisonous")
