"""What states and calls cost: about how large a state is, and whether a call is being made."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from tests.unit.process_functions import Counts, Fails, Remembers

from seamline.model.compile.processes.long_calls import CallLook
from seamline.model.functions.folding import BLANK, Fold, FunctionUnusable, KeyRow, Place
from seamline.model.functions.function import load_function
from seamline.model.functions.kept_rows import PIECE, KeptRows
from seamline.model.functions.records import POINTER, RecordFreezer, parse_columns
from seamline.model.types.schema import Schema


def row(at: int, **values: Any) -> KeyRow:
    """Return a row."""
    return KeyRow(at, Place(0, at, "t", "id"), values)


def test_only_what_may_grow_is_measured() -> None:
    """Texts, lists and maps, with all that is in them."""
    columns = "n INT, worth DECIMAL(10,2), text STRING, many ARRAY<STRING>, more MAP<STRING, INT>"
    form = RecordFreezer("state", parse_columns(columns, "state"))
    state = form.freeze((1, Decimal(2), "abc", ["a" * 10, "b"], {"key": 1}))
    texts = 3 + 10 + 1 + len("key")
    assert form.measure(state) == 7 * POINTER + texts
    assert form.measure(form.freeze((1, None, None, None, None))) == 3 * POINTER
    assert RecordFreezer("state", parse_columns("n INT", "state")).measure((1,)) == 0


def test_kept_rows_are_measured_by_the_newest() -> None:
    """Without a look at each of them."""
    kept = KeptRows(Schema.parse("n INT, name STRING").fields)
    state = None
    for number in range(PIECE + 3):
        state = kept.add(state, (number, "x" * 100))
    assert state is not None
    assert kept.measure(state) == (PIECE + 3) * (POINTER + POINTER + 100)
    alone = None
    for number in range(PIECE + 1):
        alone = kept.add(alone, (number, "x" * (300_000 if number == PIECE else 100)))
    assert alone is not None
    assert kept.measure(alone) < 1 << 20, "nor is it right behind a full piece"
    outlier = kept.add(state, (0, "x" * 30_000))
    assert kept.measure(outlier) < (PIECE + 4) * 10_000, "one long text is not all of them"
    assert kept.measure(kept.add(state, (0, None))) > PIECE * 100, "nor is one that is NULL"


def test_a_state_that_is_too_large_ends_the_fold() -> None:
    """Once rows were folded, with a text that says what to change."""
    fold = Fold(load_function(f"{Remembers.__module__}:Remembers"), largest=2000)
    few = [row(10 * at, n=at) for at in range(3)]
    assert fold.go_on(BLANK, few, 100)[0]
    with pytest.raises(
        FunctionUnusable, match="Remembers: the state of a key has about 0 MiB, more than the 0 MiB"
    ):
        fold.go_on(BLANK, [row(10 * at, n=at) for at in range(50)], 1000)


@pytest.mark.parametrize("by", [Counts, Fails, Remembers])
def test_a_watch_is_even_between_calls(by: type) -> None:
    """Whether they return, raise, or are those of timers; two steps for each."""
    fold = Fold(load_function(f"{by.__module__}:{by.__name__}"))
    watch = fold.watch
    rows = [row(10 * at, n=at, name=name, total=Decimal(1)) for at, name in enumerate(["x", "bad", None])]
    fold.finish(BLANK, rows, 1000)
    assert watch[0] % 2 == 0
    assert watch[0] >= 2 * len(rows)
    assert replace(fold).watch is watch


def test_a_call_is_too_long_if_nothing_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time between calls is no call's."""
    now = [100.0]
    monkeypatch.setattr("seamline.model.compile.processes.long_calls.time.monotonic", lambda: now[0])
    watch = [0]
    look = CallLook(watch, 2)
    for seen, at, long in [
        (0, 200, False),
        (1, 201, False),
        (1, 202, False),
        (1, 203, True),
        (2, 300, False),
    ]:
        watch[0], now[0] = seen, at
        assert look.is_too_long() is long, (seen, at)
    watch[0] = 5
    assert not look.is_too_long()
    watch[0], now[0] = 7, 400
    assert not look.is_too_long(), "another call"
