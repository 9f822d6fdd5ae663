"""What the driver knows of a process that keeps the tails of a fold: it asks, and ends it where a call takes too long.

A process that is not needed any more is kept for the same fold, as one takes most of a second to start. It serves no
other: what users' code leaves behind in a process, nobody knows.
"""

from __future__ import annotations

import mmap
import os
import pickle
import socket
import subprocess
import sys
import weakref
from collections.abc import Iterable
from contextlib import suppress
from multiprocessing.connection import Connection
from tempfile import TemporaryFile
from typing import Any

from pyspark import cloudpickle

from seamline.model.compile.processes.compiled_process import CompiledProcess
from seamline.model.compile.processes.long_calls import CallLook, describe_long_call
from seamline.model.functions.folding import FunctionUnusable
from seamline.spark.stream.derived import fold_worker
from seamline.spark.stream.derived.fold_worker import NUMBER

TICK = 0.05
"""Seconds between looks at a process that does not answer."""
ENDS_WITHIN = 1.0
"""Seconds in which a process ends that has closed its socket."""
MOST_IDLE = 4
RUN = f"from {fold_worker.__name__} import main; main()"
"""Not ``-m``: what it answers with are classes of that module, by its name."""


class WorkerProcess:
    """A process that can be asked."""

    def __init__(self, memory: str) -> None:
        self.memory = memory
        # It imports the same modules, users' own among them, from wherever this process has them.
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        (ours, theirs), (self.lifeline, held) = socket.socketpair(), socket.socketpair()
        with TemporaryFile() as file, theirs, held:
            file.write(bytes(mmap.PAGESIZE))
            file.flush()
            self.watch = memoryview(mmap.mmap(file.fileno(), mmap.PAGESIZE)).cast(NUMBER)
            fds = theirs.fileno(), held.fileno(), file.fileno()
            command = [sys.executable, "-c", RUN, *map(str, fds), memory]
            self.child = subprocess.Popen(command, env=env, pass_fds=fds, stdin=subprocess.DEVNULL)
        self.conn = Connection(ours.detach())
        self.path, self.used_by = [*sys.path], ""
        self.asking = False
        self.end = weakref.finalize(self, end_child, self.child, self.conn, self.lifeline)
        """Ends the process, whatever it is doing; so does the last reference's going."""

    def fits(self, process: CompiledProcess, memory: str) -> bool:
        """Return whether it can serve a fold: it is new, or has served the same."""
        same = self.used_by in ("", process.id) and (self.memory, self.path) == (memory, sys.path)
        return same and self.child.poll() is None

    def ask(self, process: CompiledProcess, question: str, *given: Any) -> Any:
        """Ask, and return the answer; FunctionUnusable where the fold cannot go on.

        No call may take longer than the fold's budget; everything else takes as long as it takes.
        """
        if self.asking:
            # Whoever asked before has not waited for the answer.
            self.end()
        look, self.asking, self.used_by = CallLook(self.watch, process.budget.seconds), True, process.id
        name = process.function.name
        try:
            self.conn.send_bytes(cloudpickle.dumps((question, given)))  # type: ignore[no-untyped-call]
            while not self.conn.poll(TICK):
                if look.is_too_long():
                    raise FunctionUnusable(describe_long_call(process))
                if self.child.poll() is not None and not self.conn.poll():
                    raise EOFError
            why, answer = pickle.loads(self.conn.recv_bytes())
            if why is not None:
                raise FunctionUnusable(why)
        except (EOFError, OSError) as error:
            with suppress(subprocess.TimeoutExpired):
                self.child.wait(ENDS_WITHIN)
            self.end()
            code = self.child.returncode
            raise FunctionUnusable(f"{name}: the process that folds has ended with code {code}") from error
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            # What cannot be pickled says so by any of these.
            self.end()
            raise FunctionUnusable(f"{name}: {type(error).__name__}: {error}") from error
        except FunctionUnusable:
            self.end()
            raise
        self.asking = False
        return answer


def end_child(child: subprocess.Popen[bytes], conn: Connection, lifeline: socket.socket) -> None:
    """End a process that is asked over a socket."""
    conn.close()
    lifeline.close()
    child.kill()
    child.wait()


_idle: list[WorkerProcess] = []


def release_worker(worker: WorkerProcess) -> None:
    """Keep a process for another fold, or end it."""
    if not worker.asking and worker.child.poll() is None and len(_idle) < MOST_IDLE:
        _idle.append(worker)
    else:
        worker.end()


def start_workers(processes: Iterable[CompiledProcess], memory: str) -> None:
    """Start processes for folds, while something else is done; what cannot be started is told by the fold."""
    _idle[:] = [each for each in _idle if each.child.poll() is None][-MOST_IDLE:]
    free, missing = [*_idle], 0
    for process in processes:
        if fitting := choose_worker(free, process, memory):
            free.remove(fitting)
        else:
            missing += 1
    with suppress(OSError):
        _idle.extend(WorkerProcess(memory) for _ in range(missing))


def take_worker(process: CompiledProcess, memory: str) -> WorkerProcess:
    """Take an idle process for a fold, or start one; FunctionUnusable where the machine has no room for one."""
    if chosen := choose_worker(_idle, process, memory):
        _idle.remove(chosen)
        return chosen
    try:
        return WorkerProcess(memory)
    except OSError as error:
        said = f"{process.function.name}: no process can be started to fold in: {error}"
        raise FunctionUnusable(said) from error


def choose_worker(
    idle: Iterable[WorkerProcess], process: CompiledProcess, memory: str
) -> WorkerProcess | None:
    """Choose an idle process for a fold, the one that has served it if there is one."""
    fitting = (each for each in idle if each.fits(process, memory))
    return max(fitting, key=lambda each: bool(each.used_by), default=None)
