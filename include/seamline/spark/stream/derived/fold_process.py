"""What the driver knows of a process that keeps the tails of a fold: it asks it, and ends it where a call is too long.

A process that has nothing to keep any more is kept for the next fold, as one takes most of a second to start.
"""

from __future__ import annotations

import mmap
import os
import pickle
import socket
import subprocess
import sys
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from tempfile import TemporaryFile
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle

from seamline.model.compile.processes.compiled_process import CompiledProcess
from seamline.model.compile.processes.long_calls import CallLook, describe_long_call
from seamline.model.functions.folding import FunctionUnusable
from seamline.model.functions.tails import KeySpan
from seamline.spark.stream.derived import fold_worker
from seamline.spark.stream.derived.fold_worker import NUMBER, Change, write_table

TICK = 0.05
"""Seconds between looks at a process that does not answer."""
MOST_IDLE = 4
RUN = f"from {fold_worker.__name__} import main; main()"
"""Not ``-m``: what it answers with are classes of that module, by its name."""
ReadOlder = Callable[[Collection[KeySpan]], pa.Table]


class WorkerProcess:
    """A process that can be asked."""

    def __init__(self, memory: str) -> None:
        self.memory = memory
        # It imports the same modules, users' own among them, from wherever this process has them.
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        ours, theirs = socket.socketpair()
        with TemporaryFile() as file, theirs:
            file.truncate(mmap.PAGESIZE)
            self.watch = memoryview(mmap.mmap(file.fileno(), mmap.PAGESIZE)).cast(NUMBER)
            fds = theirs.fileno(), file.fileno()
            command = [sys.executable, "-c", RUN, *map(str, fds), memory]
            self.child = subprocess.Popen(command, env=env, pass_fds=fds, stdin=subprocess.DEVNULL)
        self.conn = Connection(ours.detach())
        self.asking = False
        self.end = weakref.finalize(self, end_child, self.child, self.conn)
        """Ends the process, whatever it is about; so does nobody's knowing of it any more."""

    def ask(self, process: CompiledProcess, question: str, *given: Any) -> Any:
        """Ask, and return the answer; FunctionUnusable where the fold cannot go on.

        No call may take longer than the fold's budget; everything else takes as long as it takes.
        """
        if self.asking:
            # Whoever asked before has not waited for the answer.
            self.end()
        look, self.asking = CallLook(self.watch, process.budget.seconds), True
        try:
            self.conn.send_bytes(cloudpickle.dumps((question, given)))  # type: ignore[no-untyped-call]
            while not self.conn.poll(TICK):
                if look.is_too_long():
                    self.end()
                    raise FunctionUnusable(describe_long_call(process))
            why, answer = pickle.loads(self.conn.recv_bytes())
        except (EOFError, OSError) as error:
            self.end()
            code = self.child.returncode
            raise FunctionUnusable(
                f"{process.function.name}: the process that folds has ended with code {code}"
            ) from error
        self.asking = False
        if why is not None:
            raise FunctionUnusable(why)
        return answer


def end_child(child: subprocess.Popen[bytes], conn: Connection) -> None:
    """End a process that is asked over a socket."""
    conn.close()
    child.kill()
    child.wait()


_idle: list[WorkerProcess] = []


def release_worker(worker: WorkerProcess) -> None:
    """Keep a process for another fold, or end it."""
    if not worker.asking and worker.child.poll() is None and len(_idle) < MOST_IDLE:
        _idle.append(worker)
    else:
        worker.end()


def start_workers(count: int, memory: str) -> None:
    """Start processes for so many folds, while something else is done."""
    running = [each for each in _idle if each.memory == memory and each.child.poll() is None]
    _idle[:] = [*running, *(WorkerProcess(memory) for _ in range(count - len(running)))]


class FoldProcess:
    """The tails of one fold, in a process of its own; users' code is bounded by ``memory`` and the fold's budget."""

    def __init__(self, process: CompiledProcess, memory: str) -> None:
        self.process = process
        fitting = [each for each in _idle if each.memory == memory and each.child.poll() is None]
        self.worker = fitting[0] if fitting else WorkerProcess(memory)
        if fitting:
            _idle.remove(self.worker)
        self.release = weakref.finalize(self, release_worker, self.worker)
        self.release.atexit = False

    def open(self, rows: pa.Table, mark: float) -> int:
        """Make the tails of all rows of the spans that are not over; return how many keys have one.

        ``mark`` is a watermark in microseconds from 1970. Raises FunctionUnusable, as the others do.
        """
        count: int = self.worker.ask(self.process, "open", self.process, write_table(rows), mark)
        return count

    def take(
        self, rows: pa.Table, read_older: ReadOlder, mark: float, sides: Sequence[str]
    ) -> Mapping[str, Change]:
        """Take in the rows of an epoch and its watermark; return what changes on some sides.

        ``read_older`` reads all earlier rows of keys in spans.
        """
        late = self.worker.ask(self.process, "give", write_table(rows))
        older = write_table(read_older(late)) if late else None
        found: Mapping[str, Change] = self.worker.ask(self.process, "take", older, mark, sides)
        return found

    def close(self) -> None:
        """Forget all; the process is kept for another fold if it can be."""
        if not self.worker.conn.closed:
            with suppress(FunctionUnusable):
                self.worker.ask(self.process, "close")
        self.release()
