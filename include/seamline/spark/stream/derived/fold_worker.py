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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final, NamedTuple

import duckdb
import pyarrow as pa

from seamline.lake.joins.folded_rows import gather_key_rows, make_emitted_table
from seamline.lake.joins.snapshots import Part, is_torn, read_snapshot_file, read_snapshots
from seamline.model.compile.processes.compiled_process import CompiledProcess, require_same_code
from seamline.model.functions.folding import BLANK, FunctionUnusable, KeyRow, Snapshot, describe_error
from seamline.model.functions.tails import KeyChange, KeySpan, Tails
from seamline.model.memory import parse_memory
from seamline.runtime.collecting import SparingCollector
from seamline.runtime.machine_memory import limit_own_memory
from seamline.spark.stream.derived.tail_saving import TailSaving

OF_FUNCTIONS = (ValueError, TypeError, ArithmeticError, LookupError, AttributeError, RuntimeError)
"""What may be wrong with values that users' code is given, or gives: it concerns that view alone."""
WrittenPast = tuple[bytes, bytes]
"""Snapshots of keys, and their rows since (``PastRows``), as ``write_table`` writes them."""
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

    def __init__(self, watch: memoryview, saving: TailSaving) -> None:
        self.watch, self.saving = watch, saving
        self.process: CompiledProcess
        self.tails: Tails
        self.new: dict[KeySpan, list[KeyRow]] = {}
        self.begun: dict[KeySpan, Snapshot] = {}
        """What keys go on from whose rows are still to come."""

    def open(self, process: CompiledProcess, mark: float, paths: Iterable[str], part: Part) -> bool:
        """Begin to make the tails of a part of a fold's keys; return whether the files of snapshots can be read."""
        require_same_code(process.function)
        self.process, self.new = process, {}
        self.tails = Tails(replace(process.fold, watch=self.watch), process.size, mark)
        try:
            self.begun = {}
            for path in paths:
                self.begun |= read_snapshot_file(process, Path(path), mark, part)
        except (OSError, pa.ArrowException, duckdb.Error, *OF_FUNCTIONS) as error:
            if not is_torn(error):
                raise
            return False
        return True

    def restore_again(self, past: Iterable[WrittenPast]) -> None:
        """Make the tails of keys that go on from other snapshots than the file's."""
        rows, begun = self.read_past(past)
        for key in rows:
            self.begun.pop(key, None)
        self.tails.restore(rows, begun)

    def restore(self, rows: bytes) -> None:
        """Make the tails of other keys of their rows that are not in snapshots; those of a key follow each other."""
        found = self.new
        for key, some in gather_key_rows(self.process, read_table(rows)).items():
            found.setdefault(key, []).extend(some)
        # The last key's rows may go on with the next ones.
        last = [*found][-1:]
        self.new = {key: found.pop(key) for key in last}
        self.restore_rows(found)

    def restored(self) -> int:
        """Make the tails that are left; return how many keys have one."""
        self.restore_rows(self.new)
        self.restore_rows({key: [] for key in self.begun})
        self.new = {}
        return len(self.tails.tails)

    def restore_rows(self, rows: Mapping[KeySpan, Sequence[KeyRow]]) -> None:
        """Make the tails of keys, of what they go on from and all of their rows since."""
        self.tails.restore(rows, {key: self.begun.pop(key, BLANK) for key in rows})

    def give(self, rows: bytes) -> dict[KeySpan, int]:
        """Be given the rows of an epoch; return the keys of which the past is needed, with their first rows' times."""
        self.new = gather_key_rows(self.process, read_table(rows))
        return self.tails.find_late(self.new)

    def take(self, past: Iterable[WrittenPast], mark: float, sides: Sequence[str]) -> Mapping[str, Change]:
        """Take them in, with the past and the epoch's watermark; return what changes on some sides."""
        known, begun = self.read_past(past)
        changes = self.tails.take(self.new, known, mark, begun)
        self.new = {}
        return {side: self.make_change(side, changes) for side in sides}

    def read_past(
        self, past: Iterable[WrittenPast]
    ) -> tuple[dict[KeySpan, list[KeyRow]], dict[KeySpan, Snapshot]]:
        """Read the past of keys: their rows, and what they go on from."""
        rows: dict[KeySpan, list[KeyRow]] = {}
        begun: dict[KeySpan, Snapshot] = {}
        for written, since in past:
            found = gather_key_rows(self.process, read_table(since))
            rows |= found
            for key in found:
                begun.pop(key, None)
            begun.update(read_snapshots(self.process, read_table(written)))
        return {key: [] for key in begun} | rows, begun

    def save(self, path: str) -> int:
        """Have a child write the snapshots of all keys; return how many keys there are."""
        self.saving.begin(Path(path), self.process, self.tails)
        return len(self.tails.tails)

    def saved(self, wait: bool) -> str | None:
        """Return why the child that writes could not, empty where it has, or there is none; None while it is at it."""
        return self.saving.look(wait=wait)

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
        self.new, self.begun = {}, {}


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
        worker = FoldWorker(memoryview(memory).cast(NUMBER), TailSaving((int(socket), int(lifeline))))
        answer_questions(conn, worker)


def end_with(lifeline: int) -> None:
    """Have the system end this process, whatever it is doing, when the other end of a socket is closed.

    SIGIO ends a process that does nothing about it; a handler of Python's would wait for a call of C code. It tells of
    changes, so an end that was closed before is looked for.
    """
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([lifeline], [], [], 0)[0]:
        sys.exit(0)
