"""The fold of a key's rows: order, timers, ends, and what a call may not do."""

from __future__ import annotations

import errno
import pickle
from abc import ABC
from collections.abc import Iterable
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Any, ClassVar

import pytest
from tests.unit.process_functions import HALF_HOUR, Abandoned, Counts

from seamline.model.errors import DefinitionError
from seamline.model.functions.folding import (
    BLANK,
    EndlessTimers,
    Fold,
    FunctionUnusable,
    Item,
    KeyRow,
    Place,
    Snapshot,
)
from seamline.model.functions.frozen import FrozenDict, make_freezer
from seamline.model.functions.function import ProcessFunction, load_function
from seamline.model.time.intervals import EPOCH
from seamline.model.types.schema import parse_type

MINUTE = 60_000_000
DAY = 24 * 60 * MINUTE
FUNCTIONS = "tests.unit.process_functions"


def fold(name: str, *, forget: int | None = None) -> Fold:
    """Return the fold of a function of the examples."""
    return Fold(load_function(f"{FUNCTIONS}:{name}"), forget)


def row(minute: float, offset: int = 0, **values: Any) -> KeyRow:
    """Return a row of a key."""
    return KeyRow(int(minute * MINUTE), Place(0, offset, "t", "id"), values)


def total(minute: float, amount: object) -> KeyRow:
    """Return a row of a cart."""
    return row(minute, int(minute), total=Decimal(str(amount)))


def said(items: Iterable[Item]) -> list[tuple[float, str, tuple[Any, ...]]]:
    """Return in which minute what was emitted, and on which side."""
    return [(each.at / MINUTE, each.side, tuple(each.values)) for each in items]


def test_a_timer_fires_where_no_row_came_in_time():
    """0 30m 40m: the first cart is abandoned when the second row comes; the second by the timer at 70m."""
    items, done = fold("Abandoned").go_on(BLANK, [total(0, 5), total(20, 6), total(55, 7)], DAY)
    assert said(items) == [(50, "", ("abandoned", 6)), (85, "", ("abandoned", 7))]
    assert [each.needs / MINUTE for each in items] == [50, 85]
    assert done == BLANK


def test_a_row_at_the_instant_of_a_timer_comes_after_it():
    """The cart was abandoned before it was touched again."""
    items, done = fold("Abandoned").go_on(BLANK, [total(0, 5), total(30, 6)], 31 * MINUTE)
    assert said(items) == [(30, "", ("abandoned", 5))]
    assert done == Snapshot((Decimal("6.00"),), (60 * MINUTE,))


def test_what_waits_at_the_border_ends_there():
    """A timer behind it is never due; what ends is shown with the border, and booked before it."""
    items = fold("Abandoned").finish(BLANK, [total(DAY / MINUTE - 10, 5)], DAY)
    assert items == [Item(DAY - 1, DAY, "", (None, Decimal(5)))]


def test_a_key_without_state_does_not_end():
    """There is nothing to say of it."""
    assert [each.side for each in fold("Abandoned").finish(BLANK, [total(0, -5)], DAY)] == ["refunds", ""]


def test_a_side_has_columns_of_its_own():
    """What is set aside is shown with its row."""
    items, _ = fold("Abandoned").go_on(BLANK, [total(1, "-2.50")], 2 * MINUTE)
    assert said(items) == [(1, "refunds", (Decimal("2.50"),))]


def test_a_state_is_a_value():
    """It stays as it is, whoever holds it: a fold that goes on from a snapshot has the state of then."""
    _, done = fold("Counts").go_on(BLANK, [row(1, name="a"), row(2, name="b")], DAY)
    assert done.state == ({"a": 1, "b": 1}, {"name": "b"})
    assert done.state
    names, _ = done.state
    assert isinstance(names, FrozenDict)
    with pytest.raises(TypeError, match="stays as it is"):
        names["a"] = 2
    assert pickle.loads(pickle.dumps(names)) == names
    assert len({names, FrozenDict(b=1, a=1)}) == 1
    assert [*make_freezer(parse_type("MAP<STRING, INT>", "m"))({"b": 1, "a": 2})] == ["a", "b"]


def test_none_forgets_the_key():
    """Counts begin anew."""
    rows = [row(at, at, name=name) for at, name in enumerate(["a", "a", None, "a", "a"])]
    assert fold("Counts").go_on(BLANK, rows, DAY) == ([], Snapshot(({"a": 2}, {"name": "a"})))


@pytest.mark.parametrize(("gap", "count"), [(4.9, 3), (5, 2)])
def test_a_key_without_a_row_for_long_is_forgotten(gap, count):
    """Exactly as long is long enough."""
    rows = [row(0, name="a"), row(gap, name="a"), row(gap + 1, name="a")]
    items, done = fold("Counts", forget=5 * MINUTE).go_on(BLANK, rows, int((gap + 2) * MINUTE))
    assert done.state
    assert done.state[0] == {"a": count}
    assert len(items) == (count == 3)
    assert fold("Counts", forget=5 * MINUTE).go_on(BLANK, rows, int((gap + 6) * MINUTE))[1] == BLANK


def test_a_timer_behind_the_time_of_forgetting_is_refused():
    """It would never be due, and nobody would know."""
    items, done = fold("Abandoned", forget=30 * MINUTE).go_on(BLANK, [total(0, 5)], MINUTE)
    [(_, side, (call, error, topic, partition, offset))] = said(items)
    assert (side, call, topic, partition, offset) == ("errors", "row", "t", 0, 0)
    assert "is of no use: the key is forgotten at 1970-01-01T00:30:00Z" in error
    assert done == BLANK


def test_a_row_that_raises_has_no_effect_but_its_error():
    """Nothing of it is emitted; the rows after it are folded as if it were not there."""
    rows = [row(0, 0, name="a"), row(1, 1, name="bad"), row(2, 2, name="a")]
    items, done = fold("Fails").go_on(BLANK, rows, DAY)
    assert [each for each in said(items) if each[1]] == [
        (1, "errors", ("row", "ValueError: no such name", "t", 0, 1))
    ]
    assert done.state
    assert done.state[0] == {"a": 2}


def test_a_row_that_raises_does_not_keep_its_key():
    """Else a key that only sends nonsense would never be forgotten."""
    rows = [row(0, 0, name="a"), row(4, 1, name="bad"), row(6, 2, name="a")]
    _, done = fold("Fails", forget=5 * MINUTE).go_on(BLANK, rows, 7 * MINUTE)
    assert done.state
    assert done.state[0] == {"a": 1}


class Calls:
    """A function that does what a test says."""

    state, emits = "n BIGINT", "n BIGINT NOT NULL"

    def __init__(self) -> None:
        self.does: Any = None

    def row(self, state: Any, row: Any, out: Any) -> Any:
        return self.does(state, out)


CALLS = load_function(f"{__name__}:Calls")


@pytest.mark.parametrize(
    ("does", "error"),
    [
        (lambda _, out: 5, "5 was returned: a state is a tuple"),
        (lambda _, out: (), "state has 0 values, not one for each of (n)"),
        (lambda _, out: ("x",), "state.n: 'x' is not of type BIGINT"),
        (lambda _, out: (2**63,), "state.n: 9223372036854775808 is out of the range of BIGINT"),
        (lambda _, out: out.emit(), "emits has 0 values"),
        (lambda _, out: out.emit(m=1), "emits has no column 'm' to be given; its columns are (n)"),
        (lambda _, out: out.emit(None), "emits.n is NULL, and is declared NOT NULL"),
        (lambda _, out: out.side("odd", 1), "there is no side 'odd'; declared are none"),
        (lambda _, out: out.side("errors", 1), "there is no side 'errors'"),
        (lambda _, out: out.timer(out.at + HALF_HOUR), "is of no use: this class has no timer()"),
        (lambda _, out: out.timer(out.at), "timer(1970-01-01T00:00:00Z) is not after 1970-01-01T00:00:00Z"),
        (lambda _, out: out.timer(datetime(2026, 1, 1)), "has no time zone"),
        (lambda _, out: out.timer(5), "timer(5) is no datetime"),
    ],
)
def test_what_a_call_may_not_do_is_an_error_of_its_row(does, error):
    """It says what is wrong, and the fold goes on."""
    CALLS.made.does = does
    items, done = Fold(CALLS).go_on(BLANK, [row(0)], DAY)
    assert [each.side for each in items] == ["errors"]
    assert error in items[0].values[1]
    assert done == BLANK


def test_a_timer_without_a_state_is_an_error():
    """Who forgets to return the state would lose the timer with it, and never know."""
    made = load_function(f"{__name__}:Forgets")
    items, _ = Fold(made).go_on(BLANK, [row(0)], DAY)
    assert "a timer was set, and no state returned" in items[0].values[1]


class Forgets(Abandoned):
    """Returns nothing."""

    def row(self, state: Any, row: Any, out: Any) -> None:
        out.timer(out.at + HALF_HOUR)


class Unspeakable(Exception):
    """Has no text."""

    def __str__(self) -> str:
        raise ValueError


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.EOVERFLOW, "too large"), "OSError: "),
        (RecursionError("deep"), "RecursionError: deep"),
        (Unspeakable(), "Unspeakable: its text raised ValueError"),
    ],
)
def test_what_one_value_brings_about_is_an_error_of_its_row(error, said):
    """A record of nested brackets, or of a time that no clock has, would leave the view behind for ever."""

    def fail(state: Any, out: Any) -> Any:
        raise error

    CALLS.made.does = fail
    items, _ = Fold(CALLS).go_on(BLANK, [row(0)], DAY)
    assert [each.values.error.startswith(said) for each in items] == [True]


@pytest.mark.parametrize("error", [ImportError("no numpy"), OSError("disk"), MemoryError()])
def test_what_is_no_fault_of_a_row_ends_the_fold(error):
    """The view is left behind, and no row is listed as wrong."""

    def fail(state: Any, out: Any) -> Any:
        raise error

    CALLS.made.does = fail
    with pytest.raises(FunctionUnusable, match=f"Calls.row: {type(error).__name__}"):
        Fold(CALLS).go_on(BLANK, [row(0)], DAY)


class Forever(Calls):
    """Sets the next timer in each."""

    def timer(self, state: Any, at: Any, out: Any) -> Any:
        """Set it."""
        out.timer(out.at + timedelta(microseconds=1))
        return state


def test_timers_without_an_end_end_the_fold():
    """An epoch would never be committed, and nobody would know of which function."""
    made = load_function(f"{__name__}:Forever")
    made.made.does = lambda _, out: (out.timer(out.at + HALF_HOUR), (1,))[1]
    with pytest.raises(
        EndlessTimers, match=r"Forever.timer: timers of a key have set 1,001 others without a row"
    ):
        Fold(made, chained=1000).go_on(BLANK, [row(0)], DAY)


def test_how_many_timers_chain_is_the_same_wherever_a_fold_is_cut():
    """A stream would go on where a build, or its own next start, gives up."""
    made = load_function(f"{__name__}:Forever")
    made.made.does = lambda _, out: (out.timer(out.at + HALF_HOUR), (1,))[1]
    first = 30 * MINUTE
    at, begun = Fold(made, chained=1000), BLANK
    for until in range(first, first + 1000, 100):
        rows = [row(0)] if until == first else []
        _, begun = at.go_on(begun, rows, until)
    with pytest.raises(EndlessTimers):
        at.go_on(begun, [], first + 1100)
    _, again = at.go_on(begun, [row(30, 1)._replace(at=first + 950)], first + 1500)
    assert again.chained < 600


def test_many_timers_that_rows_have_set_are_no_chain():
    """Each of a hundred thousand rows may wait for an hour."""
    fold_ = Fold(load_function(f"{FUNCTIONS}:Remembers"), chained=0)
    items, _ = fold_.go_on(BLANK, [KeyRow(n, Place(0, n, "t", "id"), {"n": n}) for n in range(20)], 40)
    assert sum(each.values.said == "timer" for each in items) == 22


def test_setting_a_timer_twice_sets_it_once():
    """As in Flink."""
    made = load_function(f"{FUNCTIONS}:Remembers")
    items, _ = Fold(made).go_on(BLANK, [row(0, n=1), KeyRow(2, Place(0, 1, "t", "id"), {"n": 2})], 10)
    assert [each.values[0] for each in items] == ["row 1", "timer", "row 2", "timer", "timer"]


class Derived(ProcessFunction, ABC):
    """Is derived from what Python keeps notes in, and has what is not a method."""

    state, emits = "n BIGINT", "n BIGINT"

    def row(self, state: Any, row: Any, out: Any) -> Any:
        """Return what it is."""
        return (self._size,)

    @property
    def _size(self) -> int:
        return 5


class Larger(Derived):
    """Is another one only in what nobody else calls."""

    @property
    def _size(self) -> int:
        return 6


def test_a_function_is_known_by_what_it_does():
    """Also by what it calls of its own, and whatever classes it is derived from."""
    one, other = (load_function(f"{__name__}:{name}") for name in ("Derived", "Larger"))
    assert one.code != other.code
    assert one.code == load_function(f"{__name__}:Derived").code


class Nothing:
    """Lacks what a function has."""


class Taken(Counts):
    sides: ClassVar = {"errors": "why STRING"}


class NoDict(Counts):
    sides = "odd"


class Word(Counts):
    state = "class STRING"


class Number(Counts):
    emits = 5


class Needs(Counts):
    def __init__(self, size: int) -> None:
        pass


class Wrong(Counts):
    state = "n FOO"


class Short(Counts):
    def row(self, state: Any, row: Any) -> Any:  # type: ignore[override]
        return state


class Waits(Counts):
    async def row(self, state: Any, row: Any, out: Any) -> Any:
        return state


class Five(Counts):
    timer = 5


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("Nothing", "has no state, emits, row"),
        ("Taken", "has a side 'errors', which is the function's own"),
        ("NoDict", "sides is no dict"),
        ("Word", "has a column 'class', which is a word of Python"),
        ("Number", "emits is of type int, not a text of columns"),
        ("Needs", "cannot be created: TypeError"),
        ("Wrong", r"Wrong.state: Column 'n' has an unknown type"),
        ("Short", r"Short.row cannot be called: too many positional arguments"),
        ("Waits", "Waits.row is no method that returns a state"),
        ("Five", "Five.timer is no method that returns a state"),
    ],
)
def test_what_is_no_process_function_is_refused(name, problem):
    """With the name of the class, and what to write."""
    with pytest.raises(DefinitionError, match=problem) as raised:
        load_function(f"{__name__}:{name}")
    assert raised.value.hint


def test_the_instant_of_a_call_is_that_of_its_row():
    """Event times of rows that the function does not read are there all the same."""
    seen = []
    CALLS.made.does = lambda _, out: seen.append(out.at) or (1,)
    Fold(CALLS).go_on(BLANK, [KeyRow(5, Place(0, 0, "t", "id"), {})], DAY)
    assert seen == [EPOCH + timedelta(microseconds=5)]


class Grade(str, Enum):  # noqa: UP042 - as users write it
    """A text with a name of its own."""

    GOOD = "a"


class Day(date):
    """A day with more to it."""


@pytest.mark.parametrize(
    ("type", "value", "frozen"),
    [
        ("STRING", Grade.GOOD, "a"),
        ("INT", IntEnum("Number", ["ONE"])(1), 1),
        ("DATE", Day(2026, 1, 5), date(2026, 1, 5)),
        ("DOUBLE", -0.0, 0.0),
        ("DOUBLE", 3, 3.0),
        ("BOOLEAN", True, True),
        ("DECIMAL(38,0)", Decimal(10**38 - 1), Decimal(10**38 - 1)),
        ("ARRAY<STRING>", [Grade.GOOD, None], ("a", None)),
    ],
)
def test_a_frozen_value_is_of_the_class_of_its_type(type, value, frozen):
    """A table gives back that one: what a state says must not depend on where it was."""
    found = make_freezer(parse_type(type, "x"))(value)
    assert (repr(found), found.__class__) == (repr(frozen), frozen.__class__)


def test_there_is_one_nan():
    """Else a row with one would be withdrawn and added at each fold, as it is not itself."""
    freeze = make_freezer(parse_type("DOUBLE", "x"))
    assert (freeze(float("nan")),) == (freeze(float("inf") - float("inf")),)


@pytest.mark.parametrize(("type", "value"), [("STRING", "\ud800"), ("MAP<STRING, INT>", {"\ud800": 1})])
def test_a_text_without_utf_8_is_refused(type, value):
    """It is an error of its row, and not of the epoch in which it would be written."""
    with pytest.raises(TypeError, match="there is no UTF-8"):
        make_freezer(parse_type(type, "x"))(value)
