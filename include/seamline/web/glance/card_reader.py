"""A process that reads halves of cards, for a server to have its time for requests.

Python runs one thread at a time, and what was read of thousands of intervals makes each collection of garbage longer.
The process is asked through a pipe, and ends with it: no server leaves one behind, however it ends.
"""

from __future__ import annotations

import gc
import logging
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import BinaryIO

import psutil

from seamline.lake.storage.kept.cached_table import forget_what_was_seen, keep_tables_open
from seamline.lake.storage.layout import locate_tables
from seamline.web.glance.card_halves import STREAM, AnswersHalf, Key, StreamHalf, load_half

log = logging.getLogger(__name__)
TABLES = 16_384
"""Tables that the process keeps open: a dozen of each of a thousand pipelines."""
MOST_BYTES = 2 * 2**30
"""Memory with which the process ends; another takes its place, and reads all again."""
PATIENCE = 5.0
"""Seconds that the process has to end by itself."""


class CardReader:
    """The process, as the server sees it: started when there is something to read; one that died is started again."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Callable[[Key, StreamHalf | AnswersHalf | None], StreamHalf | AnswersHalf]:
        return self.read

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self, key: Key, _before: StreamHalf | AnswersHalf | None) -> StreamHalf | AnswersHalf:
        """Have a half read; the process knows itself what it has read before. That it does not run is an alarm."""
        for _attempt in range(2):
            if (found := self.ask(key)) is not None:
                return found
        said = (
            "The process that reads pipelines for the pages does not run: the API server's log says why.",
        )
        return StreamHalf(alarms=said) if key[0] == STREAM else AnswersHalf(alarms=said)

    def ask(self, key: Key) -> StreamHalf | AnswersHalf | None:
        """Ask the process; None if it has ended, or could not be started."""
        try:
            process = self.process = self.process or start_process()
            assert process.stdin and process.stdout
            pickle.dump(key, process.stdin)
            process.stdin.flush()
            found: StreamHalf | AnswersHalf = pickle.load(process.stdout)
        except (OSError, EOFError, pickle.UnpicklingError) as error:
            log.warning(
                "The process that reads pipelines does not answer: %s: %s", type(error).__name__, error
            )
            self.close()
            return None
        return found

    def close(self) -> None:
        """End the process: it ends once nobody asks, or is killed."""
        if (process := self.process) is None:
            return
        self.process = None
        assert process.stdin and process.stdout
        with suppress(OSError):
            process.stdin.close()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def start_process() -> subprocess.Popen[bytes]:
    """Start the process: what the server may import it may."""
    return subprocess.Popen(
        [sys.executable, "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )


def answer(asked: BinaryIO, answers: BinaryIO) -> None:
    """Read what is asked for until nobody asks any more, or memory is short."""
    known: dict[Key, StreamHalf | AnswersHalf] = {}
    process = psutil.Process()
    while process.memory_info().rss < MOST_BYTES:
        try:
            key: Key = pickle.load(asked)
        except EOFError:
            return
        # What is read of thousands of intervals is let go of at once: collections would only go through all of it.
        gc.disable()
        try:
            found = load_half(key, known.get(key))
        finally:
            gc.enable()
        if isinstance(found, AnswersHalf) and found is not known.get(key):
            # Statements and intervals in their thousands, which are read again once the tables have changed.
            forget_what_was_seen(locate_tables(key[2]).table(""))
        known[key] = found
        pickle.dump(found if isinstance(found, StreamHalf) else replace(found, seen=None), answers)
        answers.flush()


def main() -> None:
    """Answer through what is standard output; what definitions print goes to the log."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    keep_tables_open(TABLES)
    # A server that was killed takes no answer: neither this one, nor what is left of it when the file is closed.
    with suppress(BrokenPipeError), answers:
        answer(sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
