"""Processes of the command line that are forked from one which has imported everything: ``python -m`` this.

Reads a line of JSON for each: the environment and the words. Answers with a line: the exit code, and what was said.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pandas
import pyarrow.dataset
from sqlglot.dialects import spark

from seamline import cli
from seamline.cli.sinks import sink_commands
from seamline.kafka import row_topic
from seamline.lake.log import master
from seamline.lake.read.sinks import logged_records, served_changes
from seamline.lake.tables import claims_table, readiness
from seamline.model.expressions import compiler
from seamline.sinks import kafka_target, sending, sinks_process
from seamline.sinks.files import target as files_target
from seamline.sinks.letters import letter_target
from seamline.sinks.postgres import target as postgres_target
from seamline.sinks.redis import target as redis_target

ROOT = Path(__file__).resolve().parents[3]
NEEDED = (
    *(pandas, pyarrow.dataset, spark, sink_commands, row_topic, master, claims_table, readiness, compiler),
    *(sinks_process, postgres_target, redis_target, files_target, letter_target),
)
"""What a process would import for itself."""


class Forking:
    """The process that forks."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.sinks.forked"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "include"), str(ROOT)])},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, env: Mapping[str, str], words: Sequence[str]) -> tuple[int, str]:
        """Run a command; return its exit code, negative for a signal, and what it has said."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps([dict(env), list(words)]) + "\n")
        self.process.stdin.flush()
        code, said = json.loads(self.process.stdout.readline())
        return code, said


@contextmanager
def forking() -> Iterator[Forking]:
    """Start the process that forks, and end it."""
    made = Forking()
    with made.process:
        yield made


def fork(env: Mapping[str, str], words: Sequence[str]) -> tuple[int, str]:
    """Run a command in a process of its own."""
    with tempfile.TemporaryFile("w+") as said:
        child = os.fork()
        if not child:
            for number in (1, 2):
                os.dup2(said.fileno(), number)
            os.environ.clear()
            os.environ.update(env)
            sys.argv[1:] = words
            try:
                cli.run()
            except SystemExit as end:
                os._exit(end.code if isinstance(end.code, int) else 1)
            finally:
                os._exit(70)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        said.seek(0)
        return code, said.read()


if __name__ == "__main__":
    logged_records.BATCH = 3
    served_changes.BATCH, sending.MOST_BATCHES, kafka_target.AT_ONCE = 3, 1, 4
    for line in sys.stdin:
        print(json.dumps(fork(*json.loads(line))), flush=True)
