"""The order of rows, and which of them repeat a group: of many rows by numbers, where Arrow would compare them.

A text stands for its first eight bytes after those that all texts share. Rows whose numbers are the same are compared
as they are, so that the order is the one that Arrow finds: ascending, NULL last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.engine.duckdb_connections import query_tables
from seamline.lake.engine.measures.steps import quote_identifier

MANY = 50_000
"""Rows from which numbers are worth their making."""
WIDTH, SHORT = 8, 22
"""Bytes of a text that a number has, and bits of a hash by which most rows are told apart."""
Codes = np.ndarray[tuple[int], np.dtype[np.uint64]]
Flags = np.ndarray[tuple[int], np.dtype[np.bool_]]
Places = np.ndarray[tuple[int], np.dtype[np.int64]]


def order_rows(table: pa.Table, by: Sequence[str]) -> pa.Array:
    """Return the places of rows in the order of some columns: ascending, NULL last, ties in no particular order."""
    if table.num_rows < MANY:
        return pc.sort_indices(table, [(name, "ascending") for name in by])
    chosen = [name for name in by if not is_constant(table[name])]
    if not chosen:
        return pa.array(np.arange(table.num_rows))
    numbered = [number_values(table[name], last=name == chosen[-1]) for name in chosen]
    known = [each for each in numbered if each is not None]
    if len(known) < len(numbered):
        return pc.sort_indices(table, [(name, "ascending") for name in chosen])
    codes = [code for each in known for code in each.codes]
    order = np.argsort(codes[0]) if len(codes) == 1 else np.lexsort(codes[::-1])
    return pa.array(order if known[-1].exact else settle_ties(table.select(chosen), codes, order))


def settle_ties(table: pa.Table, codes: Sequence[Codes], order: Places) -> Places:
    """Compare the rows whose numbers are the same."""
    new = np.ones(len(order), np.bool_)
    new[1:] = np.logical_or.reduce([code[order[1:]] != code[order[:-1]] for code in codes])
    tied = ~new
    tied[:-1] |= tied[1:]
    places = np.flatnonzero(tied)
    if not len(places):
        return order
    some = table.take(pa.array(order[places]))
    some = some.append_column("_run", pa.array(np.cumsum(new)[places]))
    within = pc.sort_indices(some, [(name, "ascending") for name in ["_run", *table.column_names]])
    found = order.copy()
    found[places] = order[places][within.to_numpy()]
    return found


def is_constant(column: pa.ChunkedArray) -> bool:
    """Return whether a column has one value, or NULL alone: it decides no order."""
    if column.null_count:
        return bool(column.null_count == len(column))
    first = column[0]
    return first == column[-1] and bool(pc.all(pc.equal(column, first)).as_py())


@dataclass(frozen=True)
class Numbered:
    """The numbers in whose order the values of a column are."""

    codes: Sequence[Codes]
    """One column of numbers, or two where there are NULLs: the first says which."""
    exact: bool
    """Whether equal numbers mean equal values."""


def number_values(column: pa.ChunkedArray, *, last: bool) -> Numbered | None:
    """Number values; None of types that are compared as they are. Those of the ``last`` column may be inexact."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        code, exact = number_texts(column)
        if not exact and not last:
            code, exact = rank_values(column), True
    elif pa.types.is_signed_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_date32(kind):
        whole = column.cast(pa.int32()) if pa.types.is_date32(kind) else column
        numbers = pc.fill_null(whole.cast(pa.int64()), 0).to_numpy().astype(np.int64, copy=False)
        code, exact = numbers.view(np.uint64) ^ np.uint64(1 << 63), True
    else:
        return None
    if not column.null_count:
        return Numbered([code], exact)
    missing = column.is_null().to_numpy()
    return Numbered([missing.astype(np.uint64), np.where(missing, np.uint64(0), code)], exact)


def rank_values(column: pa.ChunkedArray) -> Codes:
    """Return each value's place among the different ones."""
    whole = column.unify_dictionaries() if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    codes = whole.combine_chunks()
    different = codes.dictionary
    ranks = np.empty(len(different), np.uint64)
    ranks[pc.sort_indices(different).to_numpy()] = np.arange(len(different), dtype=np.uint64)
    found: Codes = (
        ranks[pc.fill_null(codes.indices, 0).to_numpy()]
        if len(different)
        else np.zeros(len(column), np.uint64)
    )
    return found


def number_texts(column: pa.ChunkedArray) -> tuple[Codes, bool]:
    """Return the bytes of each text behind what all texts share, and whether these are all that there are."""
    low, high = pc.min_max(column).as_py().values()
    if low is None:
        return np.zeros(len(column), np.uint64), True
    first, last = (each.encode() if isinstance(each, str) else each for each in (low, high))
    shared = next(
        (at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other),
        min(len(first), len(last)),
    )
    found = [number_chunk(chunk, shared) for chunk in column.chunks if len(chunk)]
    return np.concatenate([code for code, _ in found]), all(exact for _, exact in found)


def number_chunk(chunk: pa.Array, shared: int) -> tuple[Codes, bool]:
    """Return the ``WIDTH`` bytes of each text from place ``shared`` on, as a number; zeros where it is over."""
    _, offsets, content = chunk.buffers()
    ends = np.frombuffer(offsets, np.int32)[chunk.offset : chunk.offset + len(chunk) + 1].astype(np.int64)
    base, over = int(ends[0]), int(ends[-1])
    octets = np.zeros(over - base + shared + WIDTH, np.uint8)
    if over > base:
        octets[: over - base] = np.frombuffer(content, np.uint8)[base:over]
    windows: np.ndarray[Any, Any] = np.ndarray((len(octets) - WIDTH + 1,), ">u8", octets, strides=(1,))
    found = windows[ends[:-1] - base + shared].astype(np.uint64)
    left = np.maximum(np.diff(ends) - shared, 0)
    spare = (np.maximum(WIDTH - left, 0) * WIDTH).astype(np.uint64)
    found &= ~np.uint64(0) << np.minimum(spare, np.uint64(63))
    found[left == 0] = 0
    # A text that goes on with a zero has the number of one that ends.
    exact = not len(left) or (int(left.max()) <= WIDTH and bool(octets[: over - base].all()))
    return found, exact


def find_repeated(table: pa.Table, group: Sequence[str]) -> Flags:
    """Return which rows may be of a group with others: all that are, and hardly one more."""
    query = f"SELECT hash({', '.join(map(quote_identifier, group))}) AS code FROM states"
    hashed = query_tables(query, states=table.select([*group]))["code"].to_numpy()
    ordered = np.sort(hashed)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    found = np.zeros(table.num_rows, np.bool_)
    if not len(twice):
        return found
    # Most rows are told apart by a few bits, without a search.
    marked = np.zeros(1 << SHORT, np.bool_)
    marked[twice >> np.uint64(64 - SHORT)] = True
    places = np.flatnonzero(marked[hashed >> np.uint64(64 - SHORT)])
    some = hashed[places]
    found[places] = twice[np.minimum(np.searchsorted(twice, some), len(twice) - 1)] == some
    return found
