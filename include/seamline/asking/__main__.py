"""Ask a pipeline's question: ``python -m seamline.asking PIPELINE NAME``, started by the stream's driver.

The first line that it is told is the definition, the others say where the stream stands (``told.Word``).
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from seamline.asking.asker import Asker
from seamline.asking.positions import read_position
from seamline.asking.row_reading import RowReader
from seamline.asking.told import Listener, Word
from seamline.kafka.connections import read_airflow_connection
from seamline.kafka.transactions import TransactionWriter
from seamline.lake.status.ask_words import locate_ask_words
from seamline.lake.storage.layout import locate_tables
from seamline.lake.tables.decided import find_connection
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.compile.stored_definition import from_json
from seamline.model.errors import SeamlineError
from seamline.model.time.intervals import format_utc_instant
from seamline.model.user_code import function_of
from seamline.runtime.process_exit import exit_process

SAYS_EVERY = 1.0
SWITCHES_EVERY = 0.0005


def main(argv: list[str]) -> int:
    """Ask until the driver wants no more; give the exit code."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    logging.getLogger("seamline.asking").setLevel(logging.INFO)
    line = sys.stdin.buffer
    if len(argv) != 2 or sys.stdin.isatty() or not (said := line.readline()):
        print(
            "There is no definition on standard input: the stream's driver starts this process. "
            "Use `seamline stream start PIPELINE`.",
            file=sys.stderr,
        )
        return 2
    (name, question), first = argv, json.loads(said)
    pipeline = compile_pipeline(from_json(first["definition"]))
    ask = next(each for each in pipeline.asks if each.name == question)
    try:
        layout = locate_tables(name)
        connection = read_airflow_connection(find_connection(pipeline.definition.connection, layout))
        function: Any = function_of(str(ask.definition.by))
        asker = Asker(
            ask,
            layout,
            RowReader(ask, pipeline, layout, connection),
            Listener(line, Word(**first["word"])),
            read_position(layout, ask.id),
            function,
        )
        # Named by its topic: two pipelines that share one would write two answers for a row.
        open_writer = partial(TransactionWriter, connection, ask.topic, f"seamline.answers.{ask.topic}")
        # Threads that read and write let go of Python soon, or calls would take longer than they do.
        sys.setswitchinterval(SWITCHES_EVERY)
        asyncio.run(ask_and_tell(asker, name, open_writer))
    except BaseExceptionGroup as group:
        ours, others = group.split(SeamlineError)
        if ours is None or others is not None:
            raise
        error = next(each for each in walk_errors(ours) if isinstance(each, SeamlineError))
        print(error, file=sys.stderr, flush=True)
        return error.exit_code
    except SeamlineError as error:
        print(error, file=sys.stderr, flush=True)
        return error.exit_code
    return 0


def walk_errors(group: BaseExceptionGroup[Any]) -> list[BaseException]:
    """List the errors of a group, and of the groups in it."""
    return [
        each
        for one in group.exceptions
        for each in (walk_errors(one) if isinstance(one, BaseExceptionGroup) else [one])
    ]


async def ask_and_tell(asker: Asker, pipeline: str, open_writer: Any) -> None:
    """Ask, and say every second how that goes."""
    telling = asyncio.create_task(tell(asker, pipeline))
    try:
        await asker.run(open_writer)
    finally:
        telling.cancel()
        write_words(asker, pipeline)


async def tell(asker: Asker, pipeline: str) -> None:
    """Say every second how the asking goes."""
    while True:
        write_words(asker, pipeline)
        await asyncio.sleep(SAYS_EVERY)


def write_words(asker: Asker, pipeline: str) -> None:
    """Write how the asking goes, in one step."""
    said = replace(asker.count(), at=format_utc_instant(datetime.now(UTC)))
    file = locate_ask_words(pipeline, asker.ask.name)
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(f".{os.getpid()}.tmp")
    draft.write_text(json.dumps(asdict(said)))
    draft.replace(file)


if __name__ == "__main__":
    exit_process(main(sys.argv[1:]))
