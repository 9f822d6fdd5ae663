"""How changes are cut into scripts: none is left out or twice, and none takes the server for long."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.e2e.sinks.served_rows import ServedRows, make_view

from seamline.sinks.redis import script_parts
from seamline.sinks.redis.row_texts import RowTexts
from seamline.sinks.redis.script_parts import ScriptParts
from seamline.sinks.row_shape import RowShape

VIEW = make_view()
TEXTS = RowTexts("{shop.out}", RowShape.of(VIEW), ends=False)


def read_texts(data: Any, ends: Any) -> list[str]:
    """Read texts as a script does."""
    places = [each for [each] in struct.iter_unpack("<i", bytes(ends))]
    return [bytes(data)[start:end].decode() for start, end in zip(places, places[1:], strict=False)]


def read_scripts(scripts: Sequence[list[Any]]) -> Iterator[tuple[int, list[Any], list[Any]]]:
    """Read how many rows each script changes, and which it sets and deletes."""
    for given_ in scripts:
        upserts, deletions = [], []
        for at in range(0, len(given_), 9):
            keys, values = read_texts(*given_[at : at + 2]), read_texts(*given_[at + 2 : at + 4])
            expiries = [each for [each] in struct.iter_unpack("<q", bytes(given_[at + 4]))]
            upserts += [*zip(keys, values, expiries or [None] * len(keys), strict=True)]
            gone, bounds = read_texts(*given_[at + 5 : at + 7]), read_texts(*given_[at + 7 : at + 9])
            deletions += [*zip(gone, bounds, strict=True)]
        yield len(upserts) + len(deletions), upserts, deletions


@given(st.integers(0, 2**32), st.integers(1, 12), st.booleans())
def test_scripts_together_are_the_changes_in_their_order(seed: int, at_once: int, expires: bool) -> None:
    """However they are cut, wherever in Arrow's memory they begin."""
    served = ServedRows(VIEW, seed, 15)
    batches = [served.change(4, 3, 2), *served.whole(5), served.change(1, 1)]
    expire = timedelta(days=1) if expires else None
    scripts = [*ScriptParts(TEXTS, expire, at_once).spell_scripts(batches)]
    [whole] = ScriptParts(TEXTS, expire, 10**6).spell_scripts(batches)
    [(_, upserts, deletions)] = read_scripts([whole])
    found = [*read_scripts(scripts)]
    assert all(rows <= at_once for rows, _, _ in found)
    assert [each for _, some, _ in found for each in some] == upserts
    assert [each for _, _, some in found for each in some] == deletions


def test_where_nothing_changes_the_position_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    """A script without rows is one too; a row that is larger than a script may be is one by itself."""
    parts = ScriptParts(TEXTS, None, 100)
    assert [*parts.spell_scripts([])] == [[]]
    monkeypatch.setattr(script_parts, "ROW_BYTES", 0)
    served = ServedRows(VIEW, 1, 3)
    assert [rows for rows, _, _ in read_scripts([*parts.spell_scripts(served.whole())])] == [1, 1, 1]
