"""Spark's Murmur3 for DuckDB, over Arrow columns: 32 bits, and a last byte that fills no word is one of its own."""

from __future__ import annotations

from collections.abc import Callable

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from duckdb.func import FunctionNullHandling, PythonUDFType

from seamline.model.expressions.hashes import FUNCTIONS

MASK = 0xFFFFFFFF
FIRST, SECOND, ADDED = 0xCC9E2D51, 0x1B873593, 0xE6546B64
FEW = 16
"""Of fewer rows that go on, each is hashed to its end by itself: one long text is not worth a pass for each word."""
STRETCH = 1 << 16
"""The words of a long text that are taken at once."""
QUIET_NAN = 0x7FF8000000000000
WIDTH = 16
"""The bytes of a DECIMAL in Arrow."""
Hashing = Callable[[np.ndarray, pa.Array], np.ndarray]


def add_spark_hashes(con: duckdb.DuckDBPyConnection) -> None:
    """Give a DuckDB the functions that the expressions' ``hash`` is spelled with."""
    for type_, hashing in HASHINGS.items():
        con.create_function(
            FUNCTIONS[type_],
            define_function(hashing),
            ["INTEGER", type_],
            "INTEGER",
            type=PythonUDFType.ARROW,
            null_handling=FunctionNullHandling.SPECIAL,
        )


def define_function(hashing: Hashing) -> Callable[[pa.ChunkedArray, pa.ChunkedArray], pa.Array]:
    """Make the function of two columns that goes on from each hash with a value, and leaves it as it is for a NULL."""

    def hash_column(before: pa.ChunkedArray, values: pa.ChunkedArray) -> pa.Array:
        found = np.array(before.to_numpy()).view(np.uint32)
        if values.null_count:
            here = pc.is_valid(values).to_numpy()
            if here.any():
                found[here] = hashing(found[here], values.drop_null().combine_chunks())
        else:
            found = hashing(found, values.combine_chunks())
        return pa.array(found.view(np.int32))

    return hash_column


def hash_integers(before: np.ndarray, values: pa.Array) -> np.ndarray:
    """Hash one word."""
    return finish(mix(before, scramble(values.to_numpy().view(np.uint32))), 4)


def hash_longs(before: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Hash two words, the low one first."""
    low, high = values.view(np.uint32).reshape(-1, 2).T
    return finish(mix(mix(before, scramble(low)), scramble(high)), 8)


def hash_doubles(before: np.ndarray, values: pa.Array) -> np.ndarray:
    """Hash the bits; both zeros are one, and so are all NaN."""
    numbers = values.to_numpy()
    bits = np.where(numbers == 0, 0.0, numbers).view(np.int64)
    return hash_longs(before, np.where(np.isnan(numbers), QUIET_NAN, bits))


def hash_texts(before: np.ndarray, values: pa.Array) -> np.ndarray:
    """Hash the bytes of texts, or of bytes."""
    values = values.cast(pa.large_binary())
    _, offsets, data = values.buffers()
    ends = np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values) + 1]
    letters = np.frombuffer(data, np.uint8) if data else np.empty(0, np.uint8)
    return hash_bytes(before, letters, ends[:-1], np.diff(ends))


def hash_decimals(before: np.ndarray, values: pa.Array) -> np.ndarray:
    """Hash the bytes of whole numbers as Java has them: the highest first, and no more than the sign needs."""
    data = np.frombuffer(values.buffers()[1], np.uint8)
    digits = data[values.offset * WIDTH :][: len(values) * WIDTH].reshape(-1, WIDTH)[:, ::-1]
    filled = np.where(digits[:, :1] > 127, 255, 0)
    spare = (digits[:, :-1] == filled) & ((digits[:, 1:] > 127) == (filled > 0))
    left_out = np.logical_and.accumulate(spare, axis=1).sum(axis=1)
    starts = np.arange(len(values)) * WIDTH + left_out
    return hash_bytes(before, digits.ravel(), starts, WIDTH - left_out)


HASHINGS: dict[str, Hashing] = {
    "INTEGER": hash_integers,
    "BIGINT": lambda before, values: hash_longs(before, values.to_numpy()),
    "DOUBLE": hash_doubles,
    "BLOB": hash_texts,
    "VARCHAR": hash_texts,
    "DECIMAL(38,0)": hash_decimals,
}


def hash_bytes(before: np.ndarray, data: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Hash runs of bytes: by words, all rows at once, and then the bytes that are left, each by itself and signed."""
    found, words = before.copy(), lengths // 4
    # A word may begin at any byte.
    view = np.ndarray(max(len(data) - 3, 0), "<u4", data, strides=(1,))
    rows, at = np.flatnonzero(words > 0), 0
    while len(rows) >= FEW:
        found[rows] = mix(found[rows], scramble(view[starts[rows] + 4 * at]))
        at += 1
        rows = rows[words[rows] > at]
    for row in rows:
        own = view[starts[row] + 4 * at : starts[row] + 4 * words[row] : 4]
        found[row] = mix_one_by_one(int(found[row]), scramble(own))
    for at in range(3):
        rows = np.flatnonzero(lengths % 4 > at)
        tail = data[starts[rows] + 4 * words[rows] + at].view(np.int8).astype(np.int32).view(np.uint32)
        found[rows] = mix(found[rows], scramble(tail))
    return finish(found, lengths.astype(np.uint32))


def mix_one_by_one(state: int, words: np.ndarray) -> int:
    """Take in the words of one row, each after the other."""
    for first in range(0, len(words), STRETCH):
        for word in words[first : first + STRETCH].tolist():
            state ^= word
            state = ((state << 13 | state >> 19) * 5 + ADDED) & MASK
    return state


def scramble(words: np.ndarray) -> np.ndarray:
    """Scramble words, each by itself."""
    return rotate(words * np.uint32(FIRST), 15) * np.uint32(SECOND)


def mix(states: np.ndarray, words: np.ndarray) -> np.ndarray:
    """Take a scrambled word into each state."""
    return rotate(states ^ words, 13) * np.uint32(5) + np.uint32(ADDED)


def rotate(words: np.ndarray, by: int) -> np.ndarray:
    """Rotate the bits of words to the left."""
    return (words << np.uint32(by)) | (words >> np.uint32(32 - by))


def finish(states: np.ndarray, lengths: np.ndarray | int) -> np.ndarray:
    """Make hashes of states, by the number of bytes that they have taken in."""
    states = states ^ np.asarray(lengths, np.uint32)
    states = (states ^ (states >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    states = (states ^ (states >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    made: np.ndarray = states ^ (states >> np.uint32(16))
    return made
