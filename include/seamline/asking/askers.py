"""The processes that ask other systems about a stream's rows: a child of the driver for each question."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from seamline.asking.told import Word
from seamline.kafka.connections import read_airflow_connection
from seamline.lake.status.ask_words import locate_ask_words
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.control_table import ControlTable
from seamline.lake.tables.decided import begin_questions, find_connection, find_question_births
from seamline.model.compile.asks.compiled_ask import CompiledAsk
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.stored_definition import to_json
from seamline.model.errors import ConnectionMissing
from seamline.plan.stream.ask_counts import LOGS

log = logging.getLogger("seamline.stream")
FIRST_WAIT, LONGEST_WAIT, CALM = 1.0, 30.0, 60.0
"""Seconds until one that has ended is started again; twice as many after each end, unless it ran for a while."""
GRACE, STRIKES = 15.0, 3
"""Seconds that one has for its end; ends in a row after which it counts as one that does not stay up."""


@dataclass
class Child:
    """One process."""

    process: subprocess.Popen[bytes]
    """The process."""
    began: float
    """When it was started, by the driver's clock."""
    wait: float
    """Seconds until the next is started where it ends."""
    heard: Word
    """What it was told last."""


class Askers:
    """The processes of one driver; without questions there are none."""

    def __init__(self, pipeline: CompiledPipeline, layout: Layout) -> None:
        self.pipeline, self.layout = pipeline, layout
        self.children: dict[str, Child] = {}
        self.word = Word()
        self.due: dict[str, tuple[float, float]] = {}
        self.lock = threading.RLock()
        """Epochs are told of by one thread, and processes kept up by another."""
        self.strikes: Counter[str] = Counter()
        self.ended: dict[str, str] = {}
        """What the process of a question ends with again and again, by the question's name."""

    def start(self, held: int) -> None:
        """Start them where the log ends at an epoch: rows of later ones are asked about.

        ConnectionMissing where the stream would read what was not written to the end.
        """
        require_committed_reads(self.pipeline, self.layout)
        self.word = Word(held)
        self.begin_questions(held)
        for ask in self.pipeline.asks:
            locate_ask_words(self.pipeline.name, ask.name).unlink(missing_ok=True)
            self.open(ask, FIRST_WAIT)

    def begin_questions(self, held: int) -> None:
        """Record where questions begin that were never asked: earlier decisions to ask again are not about them."""
        known = find_question_births(self.layout)
        new = [ask.id for ask in self.pipeline.asks if ask.id not in known]
        if new:
            begin_questions(ControlTable.ensure(self.layout), new, held, now=datetime.now(UTC))

    def open(self, ask: CompiledAsk, wait: float) -> None:
        """Start the process of one question."""
        word, command = self.word, [sys.executable, "-m", "seamline.asking", self.pipeline.name, ask.name]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=sys.stderr)
        assert process.stdin
        first = {"definition": to_json(self.pipeline.definition), "word": vars(word)}
        with suppress(OSError):
            process.stdin.write(json.dumps(first).encode() + b"\n")
            process.stdin.flush()
        os.set_blocking(process.stdin.fileno(), False)
        self.children[ask.name] = Child(process, time.monotonic(), wait, word)

    def tell(self, *, epoch: int | None = None, decisions: int | None = None) -> None:
        """Tell all where the stream stands; what one has no time to hear it is told with the next."""
        with self.lock:
            self.word = Word(
                self.word.epoch if epoch is None else epoch,
                self.word.decisions if decisions is None else decisions,
            )
            for child in self.children.values():
                assert child.process.stdin
                if child.heard != self.word:
                    with suppress(OSError):
                        os.write(child.process.stdin.fileno(), self.word.to_line())
                        child.heard = self.word

    def keep_up(self, decisions: int) -> None:
        """Tell how many decisions there are, and start again what has ended, not at once where it ends soon."""
        with self.lock:
            self.tell(decisions=decisions)
            for ask in self.pipeline.asks:
                self.keep_one_up(ask, time.monotonic())

    def keep_one_up(self, ask: CompiledAsk, now: float) -> None:
        """Start the process of one question again where it has ended."""
        child = self.children.get(ask.name)
        if child and (code := child.process.poll()) is not None:
            lasted = now - child.began > CALM
            wait = FIRST_WAIT if lasted else child.wait
            log.warning("The process that asks %s has ended with code %s", ask.name, code)
            self.close_line(self.children.pop(ask.name))
            self.due[ask.name] = (now + wait, min(wait * 2, LONGEST_WAIT))
            self.strikes[ask.name] = 1 if lasted else self.strikes[ask.name] + 1
            if self.strikes[ask.name] >= STRIKES:
                times = self.strikes[ask.name]
                said = f"the process that asks has ended {times} times in a row, with code {code}"
                self.ended[ask.name] = f"{said}; {LOGS}"
        elif child and now - child.began > CALM:
            self.ended.pop(ask.name, None)
        elif not child and ask.name in self.due and self.due[ask.name][0] <= now:
            self.open(ask, self.due.pop(ask.name)[1])

    def close(self) -> None:
        """Let all come to their end: what is being asked may still be answered."""
        for child in self.children.values():
            self.close_line(child)
        until = time.monotonic() + GRACE
        for child in self.children.values():
            try:
                child.process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                child.process.kill()
        self.children.clear()

    def close_line(self, child: Child) -> None:
        """End the line to a process."""
        assert child.process.stdin
        with suppress(OSError):
            child.process.stdin.close()


def require_committed_reads(pipeline: CompiledPipeline, layout: Layout) -> None:
    """Require that records of transactions that were aborted are not read; ConnectionMissing."""
    name = find_connection(pipeline.definition.connection, layout) if pipeline.asks else ""
    if name and read_airflow_connection(name).isolation_level != "read_committed":
        raise ConnectionMissing(
            f"Connection {name!r} reads uncommitted records, and {pipeline.name} asks other systems.",
            hint="a row would count twice whose answer was written twice, once in vain: set isolation.level to "
            "read_committed.",
        )
