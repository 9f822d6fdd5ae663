"""What scripts are given: texts as Arrow has them, cut into as many rows as one script changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seamline.model.time.zone_clock import MICROSECOND
from seamline.sinks.redis.row_texts import RowTexts, combine
from seamline.sinks.target import ChangeBatch

ROW_BYTES = 2_500
"""Bytes of a key with its value, beyond which, on average, a script has fewer rows."""
NO_TEXTS = b"", b"\0\0\0\0"
NO_ROWS = *NO_TEXTS, *NO_TEXTS


@dataclass(frozen=True)
class ScriptPart:
    """Changes of some rows, as ``WRITE`` is given them."""

    rows: int
    """How many."""
    size: int
    """The bytes of their keys and values."""
    given: tuple[Any, ...]
    """Nine arguments: keys, values, expiries, keys that are gone, the beginnings of their values; texts are two."""


@dataclass(frozen=True)
class ScriptParts:
    """How changes are cut."""

    texts: RowTexts
    """How rows are written."""
    expire: timedelta | None
    """How long after its window a row is kept; None for ever."""
    at_once: int
    """The most rows of one script."""

    @property
    def most_bytes(self) -> int:
        """Keys and values of one script, but for a row that has more by itself."""
        return self.at_once * ROW_BYTES

    def spell_scripts(self, batches: Iterable[ChangeBatch]) -> Iterator[list[Any]]:
        """Spell the arguments of one script after another; of one without rows where there is nothing to change."""
        given: list[Any] = []
        rows = size = scripts = 0
        for part in self.spell_parts(batches):
            if rows and (rows + part.rows > self.at_once or size + part.size > self.most_bytes):
                yield given
                given, rows, size, scripts = [], 0, 0, scripts + 1
            given.extend(part.given)
            rows, size = rows + part.rows, size + part.size
        if given or not scripts:
            yield given

    def spell_parts(self, batches: Iterable[ChangeBatch]) -> Iterator[ScriptPart]:
        """Spell the changes of batches."""
        for batch in batches:
            keys, values = self.texts.spell_keys(batch.upserts), self.texts.spell_values(batch.upserts)
            expiries = (
                None if self.expire is None else spell_expiries(batch.upserts["window_end"], self.expire)
            )
            for at, rows, size in self.cut(keys, values):
                expiry = b"" if expiries is None else expiries[8 * at : 8 * (at + rows)]
                pair = *spell_texts(keys.slice(at, rows)), *spell_texts(values.slice(at, rows))
                yield ScriptPart(rows, size, (*pair, expiry, *NO_ROWS))
            gone = self.texts.shape.name_identity(batch.deletions)
            keys, bounds = self.texts.spell_keys(gone), self.texts.spell_bounds(gone)
            for at, rows, size in self.cut(keys, bounds):
                pair = *spell_texts(keys.slice(at, rows)), *spell_texts(bounds.slice(at, rows))
                yield ScriptPart(rows, size, (*NO_ROWS, b"", *pair))

    def cut(self, keys: pa.Array, values: pa.Array) -> Iterator[tuple[int, int, int]]:
        """Say where parts begin, how many rows they have, and about how many bytes."""
        row = (keys.nbytes + values.nbytes) // max(len(keys), 1) + 1
        most = max(min(self.at_once, self.most_bytes // row), 1)
        for at in range(0, len(keys), most):
            rows = min(most, len(keys) - at)
            yield at, rows, rows * row


def spell_texts(texts: pa.Array) -> tuple[Any, Any]:
    """Return texts as two arguments of a script: all in one, and where each ends."""
    if not len(texts):
        return NO_TEXTS
    _, ends, data = texts.buffers()
    places = np.frombuffer(ends, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    kept = memoryview(data)[places[0] : places[-1]] if data else b""
    return kept, memoryview(places - places[0]).cast("B")


def spell_expiries(ends: pa.ChunkedArray, expire: timedelta) -> memoryview:
    """Return when rows expire as an argument of a script, in milliseconds since 1970; no server takes one before."""
    micros = pc.add(combine(ends).cast(pa.int64()), expire // MICROSECOND)
    return memoryview(pc.max_element_wise(pc.divide(micros, 1000), 1).to_numpy()).cast("B")
