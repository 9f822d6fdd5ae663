"""The second stage of Spark work: what tasks have made goes by the hash of its key to parts, each in a task of its own.

A row of the shuffle is a piece: the part that it is for, its kind, and bytes, of a table a few megabytes as an Arrow
stream. Every task has a word for every part: which attempt speaks, and how many pieces it had. Spark may run a task
again while some parts have read what its first attempt left. Where the two have written different files, a stage of
which the parts have not heard the same attempts is of no use; a task that is *repeatable* says the same each time.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql.types import BinaryType, IntegerType, StringType, StructField, StructType

from seamline.model.errors import SparkFailed
from seamline.spark.tasks.task import REPORT, SCHEMA, collect_reports, freeze_worker_heap, limit_task_memory

PIECE = StructType(
    [
        StructField("part", IntegerType()),
        StructField("kind", StringType()),
        StructField("payload", BinaryType()),
    ]
)
"""What goes through the shuffle."""
PIECES = pa.schema([("part", pa.int32()), ("kind", pa.string()), ("payload", pa.binary())])
SPEAKS, HEARD = "speaks", "heard"
"""The word of a task for every part, and of a part for the driver."""
TABLE = "table/"
"""What the kind of a piece of a table begins with."""
PIECE_BYTES = 4 << 20
"""What a piece should contain at most."""
AGAIN = "Spark was interrupted, or has lost what a task had left: it is tried again."
Piece = tuple[int, str, bytes]
Row = tuple[str, bytes]


class Received:
    """What a part is given, one piece after another: tables by their kind, and other words as they were said.

    ``attempts`` are those of the tasks that have spoken, once all was read. Raises SparkFailed where a task has
    spoken twice, or pieces are missing.
    """

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self.rows = ((part, kind, payload) for batch in batches for part, kind, payload in list_pieces(batch))
        self.attempts: set[str] = set()
        # Every task has a word for every part, so that there is a first piece; and it is not the last.
        self.first = next(self.rows, None)
        self.part = self.first[0] if self.first else None

    def __iter__(self) -> Iterator[tuple[str, pa.Table | bytes]]:
        heard = told = 0
        for _, kind, payload in chain([self.first] if self.first else [], self.rows):
            if kind == SPEAKS:
                word = json.loads(payload)
                if word["attempt"] in self.attempts:
                    raise SparkFailed(f"Task {word['attempt']} was heard twice.", hint=AGAIN)
                self.attempts.add(word["attempt"])
                told += word["pieces"]
                continue
            heard += 1
            yield (
                (kind.removeprefix(TABLE), decode_table(payload))
                if kind.startswith(TABLE)
                else (kind, payload)
            )
        if heard != told:
            raise SparkFailed(f"A part was given {heard} pieces of {told}.", hint=AGAIN)


def list_pieces(batch: pa.RecordBatch) -> Iterator[Piece]:
    """List the pieces of a batch, each when its turn comes."""
    columns = [batch[name] for name in ("part", "kind", "payload")]
    for at in range(batch.num_rows):
        part, kind, payload = (column[at].as_py() for column in columns)
        yield part, kind, payload


def run_in_parts(
    frame: DataFrame,
    make: Callable[[Iterator[pa.RecordBatch]], Iterable[Piece]],
    merge: Callable[[int, Received], Iterable[Row]],
    *,
    parts: int,
    memory: str,
    tasks: int | None = None,
    repeatable: bool = False,
) -> list[Row]:
    """Run ``make`` over a frame's batches and ``merge`` over each part of what it made; return what parts report.

    Both run in tasks, each within ``memory``. ``merge`` is called once for each part, with its number, and reads all
    that it is given. A frame has so many ``tasks``, if that is known. Raises Spark's error where a task fails, and
    SparkFailed if parts have not heard all tasks, each in the same attempt.
    """
    speak = speak_to_parts(make, parts, repeatable=repeatable)
    made = frame.mapInArrow(limit_task_memory(speak, memory), PIECE)
    spread = made.repartitionById(parts, "part")
    merged = spread.mapInArrow(limit_task_memory(merge_parts(merge), memory), REPORT)
    return require_all_heard(collect_reports(merged), parts, tasks)


def speak_to_parts(
    make: Callable[[Iterator[pa.RecordBatch]], Iterable[Piece]], parts: int, *, repeatable: bool
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Make the function of the first stage; it yields rows of ``PIECE``."""

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context, sent = TaskContext.get(), Counter[int]()
        attempt = str(context.partitionId()) if context and repeatable else uuid.uuid4().hex
        for part, kind, payload in make(batches):
            sent[part] += 1
            yield encode_piece(part, kind, payload)
        for part in range(parts):
            yield encode_word(part, attempt, sent[part])
        freeze_worker_heap()

    return task


def encode_piece(part: int, kind: str, payload: bytes) -> pa.RecordBatch:
    """Encode one row of the shuffle."""
    return pa.RecordBatch.from_arrays(
        [pa.array([part], pa.int32()), pa.array([kind]), pa.array([payload], pa.binary())], schema=PIECES
    )


def encode_word(part: int, attempt: str, pieces: int) -> pa.RecordBatch:
    """Encode what a task says last to a part: who speaks, and how many pieces it had."""
    return encode_piece(part, SPEAKS, json.dumps({"attempt": attempt, "pieces": pieces}).encode())


def merge_parts(
    merge: Callable[[int, Received], Iterable[Row]],
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Make the function of the second stage; it yields rows of ``REPORT``."""

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        received = Received(batches)
        if received.part is None:
            return
        for kind, payload in merge(received.part, received):
            yield encode_report(kind, payload)
        said = {"part": received.part, "attempts": sorted(received.attempts)}
        yield encode_report(HEARD, json.dumps(said).encode())
        freeze_worker_heap()

    return task


def encode_report(kind: str, payload: bytes) -> pa.RecordBatch:
    """Encode one row of a report."""
    return pa.RecordBatch.from_arrays([pa.array([kind]), pa.array([payload], pa.binary())], schema=SCHEMA)


def split_into_pieces(part: int, kind: str, table: pa.Table) -> Iterator[Piece]:
    """Encode a table for a part, in pieces of a few megabytes; none for no rows."""
    step = max(table.num_rows * PIECE_BYTES // max(table.nbytes, 1), 1)
    for start in range(0, table.num_rows, step):
        yield part, TABLE + kind, encode_table(table.slice(start, step))


def encode_table(table: pa.Table) -> bytes:
    """Encode a table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def decode_table(payload: bytes) -> pa.Table:
    """Decode an Arrow stream."""
    return pa.ipc.open_stream(payload).read_all()


def require_all_heard(rows: Sequence[Row], parts: int, tasks: int | None = None) -> list[Row]:
    """Return what parts report; SparkFailed unless each has heard the same attempts, of so many ``tasks``."""
    heard = [json.loads(payload) for kind, payload in rows if kind == HEARD]
    numbers = sorted(each["part"] for each in heard)
    if numbers != list(range(parts)):
        raise SparkFailed(
            f"Of {parts} parts {numbers} have reported what they did.",
            hint=AGAIN,
        )
    if len({tuple(each["attempts"]) for each in heard}) > 1:
        raise SparkFailed(
            "Parts were given what different attempts of a task have made.",
            hint=AGAIN,
        )
    if tasks is not None and heard and len(heard[0]["attempts"]) != tasks:
        raise SparkFailed(f"Parts have heard {len(heard[0]['attempts'])} tasks of {tasks}.", hint=AGAIN)
    return [row for row in rows if row[0] != HEARD]
