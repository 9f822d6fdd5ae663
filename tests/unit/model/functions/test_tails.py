"""What epochs add to what functions emit is what the law of the model says, whatever order rows come in."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import pytest
from tests.protocol.model import functions as model
from tests.unit.process_functions import Remembers

from seamline.model.functions import key_tail
from seamline.model.functions.folding import BLANK, Fold, FunctionUnusable, Item, KeyRow, Place, Snapshot
from seamline.model.functions.function import load_function
from seamline.model.functions.tails import KeyChange, KeySpan, Tails

REMEMBERS = Fold(load_function(f"{Remembers.__module__}:Remembers"))
KEY = ("a",)


def numbered(at: int, place: int) -> KeyRow:
    """Return a row whose time and place are numbers."""
    return KeyRow(at, Place(0, place, "t", "id"), {"n": place})


class Stream:
    """The tails of a stream that keeps all rows of its keys."""

    def __init__(self, size: int, fold: Fold = REMEMBERS) -> None:
        self.tails = Tails(fold, size)
        self.rows: dict[KeySpan, list[KeyRow]] = {}
        self.shown: Counter[tuple[KeySpan, Item]] = Counter()
        self.folded: list[int] = []

    def read(self, rows: Iterable[tuple[tuple[str | None], KeyRow]], mark: float) -> list[KeyChange]:
        """Read an epoch, and keep what is shown."""
        new: dict[KeySpan, list[KeyRow]] = {}
        for key, row in rows:
            new.setdefault(KeySpan(key, row.at // self.tails.size * self.tails.size), []).append(row)
        pasts = {key: self.find_past(key, at) for key, at in self.tails.find_late(new).items()}
        older, begun = ({key: past[n] for key, past in pasts.items()} for n in (0, 1))
        found = self.tails.take(new, older, mark, begun)
        for key, each in new.items():
            self.rows.setdefault(key, []).extend(each)
        for change in found:
            self.shown.update((change.key, item) for item in change.added)
            self.shown.subtract((change.key, item) for item in change.withdrawn)
        assert min(self.shown.values(), default=0) >= 0, "what is withdrawn was shown"
        return found

    def find_past(self, key: KeySpan, at: float) -> tuple[Sequence[KeyRow], Snapshot]:
        """Find what a key has been through before an instant: all of its rows."""
        return self.rows.get(key, []), BLANK

    def restart(self) -> None:
        """Lose all tails, and make them again."""
        self.tails = Tails(self.tails.fold, self.tails.size, self.tails.mark)
        size, mark = self.tails.size, self.tails.mark
        self.tails.restore({key: rows for key, rows in self.rows.items() if mark < key.span + size})


class SavedStream(Stream):
    """One of which snapshots are kept, which lacks rows that came later; ``rows`` are those of all epochs."""

    def __init__(self, size: int, fold: Fold = REMEMBERS) -> None:
        super().__init__(size, fold)
        self.saved: list[tuple[float, int, dict[KeySpan, Snapshot]]] = []
        """The watermark, the number of epochs, and the snapshots, the newest first."""
        self.epochs: dict[Place, int] = {}
        self.number = 0

    def save(self) -> None:
        """Keep what keys have come to."""
        self.saved.insert(0, (self.tails.mark, self.number, dict(self.tails.list_snapshots())))

    def read(self, rows: Iterable[tuple[tuple[str | None], KeyRow]], mark: float) -> list[KeyChange]:
        """Read an epoch; the past of late keys goes on from the newest snapshot that has all of their earlier rows."""
        self.number += 1
        rows = [*rows]
        found = super().read(rows, mark)
        self.epochs |= {row.place: self.number for _, row in rows}
        return found

    def find_past(self, key: KeySpan, at: float) -> tuple[Sequence[KeyRow], Snapshot]:
        """Find what a key has been through before an instant."""
        rows = self.rows.get(key, [])
        for mark, number, snapshots in self.saved:
            if mark > at:
                continue
            missed = [row.at for row in rows if row.at < mark and self.epochs[row.place] > number]
            if not missed:
                return [row for row in rows if row.at >= mark], snapshots.get(key, BLANK)
            at = min(at, *missed)
        return rows, BLANK

    def restart(self) -> None:
        """Lose all tails, and make them again."""
        self.tails = Tails(self.tails.fold, self.tails.size, self.tails.mark)
        size, mark = self.tails.size, self.tails.mark
        known = {*self.rows, *(key for _, _, found in self.saved for key in found)}
        pasts = {key: self.find_past(key, mark) for key in known if mark < key.span + size}
        self.folded.append(sum(len(rows) for rows, _ in pasts.values()))
        self.tails.restore(*({key: past[n] for key, past in pasts.items()} for n in (0, 1)))


def told(items: Iterable[model.Item]) -> Counter[tuple[int, float, str, tuple[str, ...]]]:
    """Return what the model says is shown, in the words of ``Remembers``."""
    found = []
    for at, needs, said in items:
        past = tuple(f"timer {each[1]}" if isinstance(each, tuple) else str(each) for each in said[-1])
        kind = f"row {said[1]}" if said[0] == "row" else str(said[0])
        found.append((at, float("-inf") if needs == model.ALWAYS else needs, kind, past))
    return Counter(found)


def flat(items: Iterable[Item]) -> Counter[tuple[int, float, str, tuple[str, ...]]]:
    """Return the same of what was emitted."""
    return Counter((each.at, each.needs, *each.values) for each in items)


@pytest.mark.parametrize("made", [Stream, SavedStream])
@pytest.mark.parametrize("restarts", [False, True], ids=["one life", "a life an epoch"])
def test_each_epoch_adds_what_the_law_says(restarts, made):
    """All logs of two epochs, and a tail that is made again knows what the lost one did."""
    logs = 0
    for log in model.list_logs(model.Bounds()):
        stream = made(model.SPAN)
        for number, epoch in enumerate(log):
            if restarts:
                stream.restart()
            rows = [(KEY, numbered(*epoch.row))] if epoch.row else []
            changes = stream.read(rows, epoch.mark)
            if isinstance(stream, SavedStream):
                stream.save()
            now, before = (told(model.law(log, each)) for each in (number, number - 1))
            assert flat(item for each in changes for item in each.added) == now - before, log
            assert flat(item for each in changes for item in each.withdrawn) == before - now, log
        logs += 1
    assert logs == 2_058


def whole(stream: Stream, mark: float) -> Counter[tuple[KeySpan, Item]]:
    """Fold all rows of a stream at once, in their order."""
    size = stream.tails.size
    return Counter(
        (key, item)
        for key, rows in stream.rows.items()
        for item in stream.tails.fold.finish(BLANK, sorted(rows), key.span + size)
        if item.needs <= mark
    )


def generate_rows(dice: random.Random, mark: int, number: int) -> list[tuple[tuple[str | None], KeyRow]]:
    """Return a few rows of a few keys, before a watermark and behind it, whose numbers go on from one."""
    rows: list[tuple[tuple[str | None], KeyRow]] = []
    for each in range(dice.randrange(6)):
        at = max(0, mark + dice.choice([-90, -20, -3, 0, 1, 5, 30]) + dice.randrange(5))
        rows.append(((dice.choice(["a", "b", "c", None]),), numbered(at, number + 1 + each)))
    return rows


@pytest.mark.parametrize("seed", range(12))
def test_random_streams_show_what_one_fold_shows(seed):
    """Many keys, rows of any lateness, watermarks that stand still or leap, and restarts."""
    dice = random.Random(seed)
    stream, mark, n = Stream(size=60), 0, 0
    for _ in range(60):
        rows = generate_rows(dice, mark, n)
        n += len(rows)
        mark += dice.choice([0, 0, 1, 4, 25])
        if dice.random() < 0.1:
            stream.restart()
        stream.read(rows, mark)
        assert +stream.shown == whole(stream, mark)
    stream.read([], mark + 120)
    assert +stream.shown == whole(stream, float("inf"))
    assert not stream.tails.tails
    assert len(stream.tails.due) < n


@pytest.mark.parametrize("most", [2, 32])
@pytest.mark.parametrize("seed", range(8))
def test_a_key_whose_rows_overlap_shows_what_one_fold_shows(seed, most, monkeypatch):
    """Each epoch has rows between those of the last ones, and the watermark passes timers between them."""
    monkeypatch.setattr(key_tail, "MOST_OF_PART", most)
    dice, stream, mark, n = random.Random(seed), Stream(size=1_000), 0, 0
    for _ in range(80):
        rows = []
        for _ in range(dice.randrange(4)):
            n += 1
            rows.append((KEY, numbered(mark + dice.randrange(12), n)))
        mark += dice.randrange(4)
        stream.read(rows, mark)
        assert +stream.shown == whole(stream, mark)


@pytest.mark.parametrize("size", [60, 1_000])
@pytest.mark.parametrize("seed", range(16))
def test_a_stream_that_goes_on_from_snapshots_shows_what_one_fold_shows(seed, size):
    """Snapshots of any age, rows before and behind them, timers that wait at them, and restarts."""
    dice = random.Random(seed)
    stream, mark, n = SavedStream(size=size), 0, 0
    for _ in range(80):
        rows = generate_rows(dice, mark, n)
        n += len(rows)
        mark += dice.choice([0, 0, 1, 4, 25])
        stream.read(rows, mark)
        if dice.random() < 0.3:
            stream.save()
        if dice.random() < 0.2:
            stream.restart()
        assert +stream.shown == whole(stream, mark)
        if dice.random() < 0.2:
            # Others may be there no longer.
            stream.saved = [each for each in stream.saved if dice.random() < 0.7]


def test_a_restart_folds_the_rows_since_the_last_snapshot():
    """Nothing on the way of a start grows with the rows of a span."""
    stream = SavedStream(1_000_000)
    for epoch in range(100):
        stream.read(
            [(KEY, numbered(10 * epoch + each, 10 * epoch + each)) for each in range(10)], 10 * epoch - 20
        )
        if epoch % 10 == 9:
            stream.save()
            stream.restart()
    assert max(stream.folded) <= 30
    assert +stream.shown == whole(stream, 970)


def test_a_hot_key_lets_go_of_its_settled_rows():
    """It always has rows that are newer than the watermark, and a late one now and then."""
    dice, stream = random.Random(5), Stream(size=100_000)
    for epoch in range(60):
        now = epoch * 10
        rows = [(KEY, numbered(max(0, now + dice.randrange(-40, 10)), epoch * 10 + n)) for n in range(10)]
        stream.read(rows, now - 50)
        [tail] = stream.tails.tails.values()
        assert sum(len(part.rows) for part in tail.parts) < 250
    assert +stream.shown == whole(stream, now - 50)


def test_a_key_of_single_rows_has_no_part_for_each():
    """Each part keeps a state: of a large one there would be hundreds, as many as epochs wait for the watermark."""
    stream = Stream(size=1_000_000)
    for at in range(1_000):
        stream.read([(KEY, numbered(at, at))], at - 500)
    [tail] = stream.tails.tails.values()
    assert len(tail.parts) < 500 / key_tail.MOST_OF_PART + 3
    assert +stream.shown == whole(stream, 499)


class Bell:
    """Keeps nothing, and rings later."""

    state, emits = "", "n BIGINT"

    def row(self, state: Any, row: Any, out: Any) -> tuple[()]:
        """Set a timer."""
        out.timer(out.at + timedelta(microseconds=5))
        return ()

    def timer(self, state: Any, at: Any, out: Any) -> None:
        """Ring."""
        out.emit(1)


class Swells:
    """Keeps a thousand letters of each row, and lets go of all at the fortieth."""

    state, emits = "many ARRAY<STRING>", "n BIGINT"

    def row(self, state: Any, row: Any, out: Any) -> tuple[Any]:
        """Keep them."""
        return ((),) if row["n"] == 40 else ((*(state.many if state else ()), "x" * 1_000),)


def test_a_state_is_measured_behind_all_rows_of_an_epoch():
    """Wherever parts begin: else what has passed in the stream would not after a restart."""
    stream = Stream(1_000_000, Fold(load_function(f"{__name__}:Swells"), largest=30_000))
    stream.read([(KEY, numbered(at, at)) for at in range(60)], -5)
    stream.restart()
    stream.read([(KEY, numbered(20, 100))], -5)
    with pytest.raises(FunctionUnusable, match="more than the"):
        stream.read([(KEY, numbered(100 + at, 200 + at)) for at in range(30)], -5)


def test_a_function_may_keep_nothing_but_a_timer():
    """An empty state is a state."""
    stream = Stream(100, Fold(load_function(f"{__name__}:Bell")))
    assert stream.read([(KEY, numbered(3, 0))], 4) == []
    stream.restart()
    [change] = stream.read([], 8)
    assert [item.at for item in change.added] == [8]


def test_a_row_on_time_folds_its_tail_alone():
    """Nothing on the way of an epoch grows with the rows that a key has had."""
    calls: list[str] = []

    class Counting(Fold):
        def go_on(self, begun, rows, until):
            rows = list(rows)
            calls.extend("x" for _ in rows)
            return super().go_on(begun, rows, until)

    stream = Stream(1_000_000, Counting(REMEMBERS.function))
    for at in range(0, 400, 10):
        stream.read([(KEY, numbered(at, at))], at - 20)
    assert len(calls) < 40 * 2 * 5


def test_late_rows_are_those_before_what_is_settled():
    """A key whose span is over is late whatever comes; a key that nobody has seen is not at the watermark."""
    stream = Stream(4)
    stream.read([(KEY, numbered(0, 0))], 4)
    tails = stream.tails
    late: Mapping[KeySpan, Sequence[KeyRow]] = {
        KeySpan(KEY, 0): [numbered(3, 1)],
        KeySpan(("b",), 4): [numbered(4, 2)],
        KeySpan(("c",), 0): [numbered(0, 3)],
    }
    assert {*tails.find_late(late)} == {KeySpan(KEY, 0), KeySpan(("c",), 0)}


def test_a_key_is_forgotten_when_its_time_is_over():
    """It would be there until the state begins anew, which may be a month."""
    stream = Stream(1_000_000, Fold(REMEMBERS.function, forget=50))
    stream.read([(KEY, numbered(0, 0))], 10)
    assert len(stream.tails.tails) == 1
    stream.read([], 49)
    assert len(stream.tails.tails) == 1
    stream.read([], 50)
    assert not stream.tails.tails
    stream.read([(KEY, numbered(60, 1))], 60)
    assert +stream.shown == whole(stream, 60)


def test_a_row_of_the_future_keeps_no_other_key():
    """One device with a wrong clock would have all rows kept, and each key named once an epoch."""
    stream = Stream(1_000_000)
    for epoch in range(50):
        rows = [((f"key {n}",), numbered(epoch * 1000 + n, epoch * 10 + n)) for n in range(5)]
        stream.read([*rows, (("far",), numbered(990_000 + epoch, epoch * 10 + 9))], epoch * 1000 - 500)
    assert sum(len(keys) for _, _, keys in stream.tails.recent) < 100
    assert (
        sum(
            sum(len(part.rows) for part in tail.parts)
            for key, tail in stream.tails.tails.items()
            if key.key != ("far",)
        )
        < 20
    )
