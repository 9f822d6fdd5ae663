"""Chunks of bytes that the tasks of a build send to parts, by hashes: what a task sends is the same at each trial."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from seamline.spark.tasks.parts import Piece, Received, Row, run_in_parts

CHUNK = "chunk"
FEW = 4
"""Up to so many parts are picked one by one."""
Sending = Callable[[int], Iterable[tuple[int, bytes]]]
"""Makes chunks for parts of what a task, by number, reads."""
Receiving = Callable[[Iterator[bytes]], Iterable[Row]]
"""Makes a part's report of all its chunks, in whatever order they come, once it has heard the last."""


def send_to_parts(
    spark: SparkSession, sending: Sending, count: int, receiving: Receiving, parts: int, memory: str
) -> list[Row]:
    """Let ``count`` tasks send chunks to ``parts``; return what these report. Raises as ``run_in_parts``."""

    def make(batches: Iterator[pa.RecordBatch]) -> Iterator[Piece]:
        for number in (number for batch in batches for number in batch.column(0).to_pylist()):
            for part, payload in sending(number):
                yield part, CHUNK, payload

    def merge(_: int, received: Received) -> Iterator[Row]:
        yield from receiving(piece for _, piece in received if isinstance(piece, bytes))

    numbers = spark.range(0, count, 1, count)
    return run_in_parts(numbers, make, merge, parts=parts, memory=memory, tasks=count, repeatable=True)


def find_parts(hashes: np.ndarray, parts: int) -> np.ndarray:
    """Return the part of each hash of 64 bits, by its upper bits."""
    return ((hashes >> np.uint64(48)).astype(np.uint32) * np.uint32(parts) >> np.uint32(16)).astype(np.uint16)


def scatter(hashes: np.ndarray, parts: int) -> Iterator[tuple[int, np.ndarray]]:
    """Return the numbers of the rows of each part that has some, in order."""
    found = find_parts(hashes, parts)
    if parts <= FEW:
        chosen = [np.flatnonzero(found == part) for part in range(parts)]
    else:
        bounds = np.bincount(found, minlength=parts).cumsum()[:-1]
        chosen = np.split(np.argsort(found, kind="stable"), bounds)
    return ((part, rows) for part, rows in enumerate(chosen) if len(rows))
