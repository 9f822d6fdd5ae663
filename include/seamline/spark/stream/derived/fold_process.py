"""The tails of a fold, in processes that share its keys: each key is in one of them, by the hash of its columns."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any, TypeVar

import pyarrow as pa

from seamline.lake.engine.key_parts import split_by_key
from seamline.lake.joins.past_rows import Earliest, PastRows
from seamline.lake.joins.snapshots import list_key_columns
from seamline.model.compile.processes.compiled_process import CompiledProcess
from seamline.model.functions.folding import FunctionUnusable
from seamline.model.functions.tails import KeySpan
from seamline.spark.stream.derived.fold_worker import Change, WrittenPast, write_table
from seamline.spark.stream.derived.worker_process import release_worker, take_worker

MOST = 4
"""Processes that share a fold's keys, where nobody has said how many: the driver and Spark want processors, too."""
ReadPast = Callable[[Earliest], Iterable[PastRows]]
T = TypeVar("T")


def count_processes(wanted: int) -> int:
    """Return how many processes share a fold's keys: as many as wanted, or half of the machine's processors."""
    return wanted or min(MOST, max(1, (os.cpu_count() or 1) // 2))


class FoldPart:
    """The tails of some keys, in a process of their own; users' code is bounded by ``memory`` and the fold's budget."""

    def __init__(self, process: CompiledProcess, memory: str) -> None:
        self.process, self.worker = process, take_worker(process, memory)
        self.release = weakref.finalize(self, release_worker, self.worker)
        self.release.atexit = False

    def ask(self, question: str, *given: Any) -> Any:
        """Ask, and return the answer; FunctionUnusable where the fold cannot go on."""
        return self.worker.ask(self.process, question, *given)

    def close(self) -> None:
        """Forget all; the process is kept for another fold if it can be."""
        if not self.worker.conn.closed:
            with suppress(FunctionUnusable):
                self.ask("close")
        self.release()


class FoldProcess:
    """The tails of one fold, in ``count`` processes. Raises FunctionUnusable where it cannot go on."""

    def __init__(self, process: CompiledProcess, memory: str, count: int = 1) -> None:
        self.process, self.keys = process, [key.name for key in process.keys]
        self.parts: list[FoldPart] = []
        self.threads = ThreadPoolExecutor(count, thread_name_prefix="fold")
        try:
            for _ in range(count):
                self.parts.append(FoldPart(process, memory))
        except FunctionUnusable:
            self.close()
            raise

    def each(self, ask: Callable[[FoldPart, int], T]) -> list[T]:
        """Ask all processes at once, each with its number; all have answered where one cannot go on."""
        if len(self.parts) == 1:
            return [ask(self.parts[0], 0)]
        asked: list[Future[T]] = [
            self.threads.submit(ask, part, number) for number, part in enumerate(self.parts)
        ]
        wait(asked)
        return [each.result() for each in asked]

    def split(self, rows: pa.Table, keys: Sequence[str]) -> list[bytes]:
        """Split rows by their key among the processes."""
        return [write_table(each) for each in split_by_key(rows, keys, len(self.parts))]

    def split_past(self, past: Iterable[PastRows]) -> list[list[WrittenPast]]:
        """Split the past of keys among the processes."""
        columns = list_key_columns(self.process)
        found: list[list[WrittenPast]] = [[] for _ in self.parts]
        for each in past:
            halves = self.split(each.snapshots, columns), self.split(each.rows, self.keys)
            for mine, snapshots, rows in zip(found, *halves, strict=True):
                mine.append((snapshots, rows))
        return found

    def open(self, mark: float, paths: Sequence[str] = ()) -> bool:
        """Begin to make tails at a watermark, in microseconds from 1970, from files of snapshots if there are any.

        Returns whether these can be read.
        """
        given, count = [*paths], len(self.parts)
        return all(self.each(lambda part, n: part.ask("open", self.process, mark, given, (n, count))))

    def restore(self, rows: Iterable[pa.RecordBatch], again: Iterable[PastRows] = ()) -> int:
        """Make the tails of all keys of the spans that are not over; return how many have one.

        ``rows`` are all that are not in the files, those of a key together, without the keys of ``again``: these go on
        from other snapshots.
        """
        past = self.split_past(again)
        self.each(lambda part, n: part.ask("restore_again", past[n]))
        for batch in rows:
            split = self.split(pa.Table.from_batches([batch]), self.keys)
            self.each(lambda part, n, mine=split: part.ask("restore", mine[n]))  # type: ignore[misc]
        return sum(self.each(lambda part, _: int(part.ask("restored"))))

    def take(
        self, rows: pa.Table, read_past: ReadPast, mark: float, sides: Sequence[str]
    ) -> Mapping[str, Change]:
        """Take in the rows of an epoch and its watermark; return what changes on some sides.

        ``read_past`` reads what keys have been through before the rows that come late.
        """
        split = self.split(rows, self.keys)
        late: dict[KeySpan, int] = {}
        for found in self.each(lambda part, n: part.ask("give", split[n])):
            late |= found
        past = self.split_past(read_past(late) if late else ())
        changes = self.each(lambda part, n: part.ask("take", past[n], mark, sides))
        return {side: unite_changes([each[side] for each in changes]) for side in sides}

    def save(self, paths: Sequence[str]) -> int:
        """Have snapshots written while the fold goes on, by each process to a file of its own; return of how many keys.

        None may be being written.
        """
        return sum(self.each(lambda part, n: int(part.ask("save", paths[n]))))

    def find_saved(self, *, wait: bool = False) -> str | None:
        """Return why snapshots could not be written, empty where they have been; None while they are being written."""
        said: list[str | None] = self.each(lambda part, _: part.ask("saved", wait))
        return None if None in said else next(filter(None, said), "")

    def close(self) -> None:
        """Forget all; the processes are kept for another fold if they can be."""
        for part in self.parts:
            part.close()
        self.threads.shutdown(wait=False)


def unite_changes(changes: Sequence[Change]) -> Change:
    """Unite what epochs change in several processes."""
    if len(changes) == 1:
        return changes[0]
    added, withdrawn = zip(*changes, strict=True)
    return Change(pa.concat_tables(added), pa.concat_tables(withdrawn))


def write_past(past: PastRows) -> WrittenPast:
    """Write the past of keys for the process."""
    return write_table(past.snapshots), write_table(past.rows)
