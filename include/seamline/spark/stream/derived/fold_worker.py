"""A process of its own that keeps the tails of a fold: if users' code in it hangs, grows or crashes, nothing else does.

Its driver asks it over a socket, one question at a time; it ends with its driver, whatever it is doing.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import pickle
import select
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Final, NamedTuple

import pyarrow as pa

from seamline.lake.joins.folded_rows import gather_key_rows, make_emitted_table
from seamline.model.compile.processes.compiled_process import CompiledProcess, require_same_code
from seamline.model.functions.folding import FunctionUnusable, describe_error
from seamline.model.functions.tails import KeyChange, KeySpan, Rows, Tails
from seamline.model.memory import parse_memory
from seamline.runtime.collecting import SparingCollector
from seamline.runtime.machine_memory import limit_own_memory

OF_FUNCTIONS = (ValueError, TypeError, ArithmeticError, LookupError, AttributeError, RuntimeError)
"""What may be wrong with values that users' code is given, or gives: it concerns that view alone."""
NUMBER: Final = "Q"
"""How a number is written into the memory that the driver reads, too."""


class Change(NamedTuple):
    """What an epoch changes on one side of a fold."""

    added: pa.Table
    """What is shown now, and was not before."""
    withdrawn: pa.Table
    """What was shown before, and is not now."""


def write_table(table: pa.Table) -> bytes:
    """Write a table as a stream of Arrow: of a part of a larger one the part alone, where pickle writes all."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def read_table(written: bytes) -> pa.Table:
    """Read what ``write_table`` wrote."""
    with pa.ipc.open_stream(written) as stream:
        return stream.read_all()


class FoldWorker:
    """The tails of one fold, and the rows of the epoch that is being taken in; ``watch`` is what the driver sees.

    Rows that it is given are those of ``write_table``.
    """

    def __init__(self, watch: memoryview) -> None:
        self.watch = watch
        self.process: CompiledProcess
        self.tails: Tails
        self.new: Rows = {}

    def open(self, process: CompiledProcess, rows: bytes, mark: float) -> int:
        """Make the tails of a fold of all rows of the spans that are not over; return how many keys have one."""
        require_same_code(process.function)
        self.process = process
        self.tails = Tails(replace(process.fold, watch=self.watch), process.size, mark)
        self.tails.restore(gather_key_rows(process, read_table(rows)))
        return len(self.tails.tails)

    def give(self, rows: bytes) -> set[KeySpan]:
        """Be given the rows of an epoch; return the keys of which all earlier rows are needed."""
        self.new = gather_key_rows(self.process, read_table(rows))
        return self.tails.find_late(self.new)

    def take(self, older: bytes | None, mark: float, sides: Sequence[str]) -> Mapping[str, Change]:
        """Take them in, with the earlier rows and the epoch's watermark; return what changes on some sides."""
        known = {} if older is None else gather_key_rows(self.process, read_table(older))
        changes = self.tails.take(self.new, known, mark)
        self.new = {}
        return {side: self.make_change(side, changes) for side in sides}

    def make_change(self, side: str, changes: Sequence[KeyChange]) -> Change:
        """Make the tables of what changes on a side."""
        added = ((each.key, item) for each in changes for item in each.added)
        withdrawn = ((each.key, item) for each in changes for item in each.withdrawn)
        return Change(
            make_emitted_table(self.process, side, added), make_emitted_table(self.process, side, withdrawn)
        )

    def close(self) -> None:
        """Forget all."""
        del self.process, self.tails
        self.new = {}


def answer_questions(conn: Connection, worker: FoldWorker) -> None:
    """Answer what is asked until the socket is closed."""
    collector = SparingCollector()
    while True:
        try:
            asked = conn.recv_bytes()
        except EOFError:
            return
        why, answer = None, None
        try:
            name, given = pickle.loads(asked)
            answer = getattr(worker, name)(*given)
        except FunctionUnusable as error:
            why = str(error)
        except BaseException as error:  # noqa: BLE001 - users' code may raise anything, and the driver tells it
            why = describe_error(error)
        conn.send_bytes(pickle.dumps((why, answer), protocol=5))
        answer = None
        collector.collect()


def main() -> None:
    """Run as the process whose socket, lifeline, shared memory and most bytes are the arguments."""
    socket, lifeline, shared, most = sys.argv[1:]
    for sign in (signal.SIGTERM, signal.SIGINT):
        # Its driver ends it, once the epoch at hand is done.
        signal.signal(sign, signal.SIG_IGN)
    end_with(int(lifeline))
    limit_own_memory(parse_memory(most))
    memory = mmap.mmap(int(shared), mmap.PAGESIZE)
    with Connection(int(socket)) as conn:
        answer_questions(conn, FoldWorker(memoryview(memory).cast(NUMBER)))


def end_with(lifeline: int) -> None:
    """Have the system end this process, whatever it is doing, when the other end of a socket is closed.

    SIGIO ends a process that does nothing about it; a handler of Python's would wait for a call of C code. It tells of
    changes, so an end that was closed before is looked for.
    """
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([lifeline], [], [], 0)[0]:
        sys.exit(0)
