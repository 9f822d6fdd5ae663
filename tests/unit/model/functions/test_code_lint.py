"""What process functions may not do is found in their bytecode, wherever in their module it is."""

from __future__ import annotations

import datetime as calendar
import functools
import os
import random
import time as clock
import urllib.parse
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import pytest
from tests.unit import process_functions
from tests.unit.process_functions import Abandoned, Counts, Remembers

from seamline.model.functions.code_lint import list_unsound_parts

count = 0


def ask_dice() -> float:
    """Throw dice."""
    return random.random()


class Helper:
    """Another class of the module."""

    def ask(self) -> Any:
        """Read the clock."""
        return clock.time()


class Base:
    """What functions have in common."""

    state, emits = "n BIGINT", "n BIGINT"

    def __init__(self) -> None:
        self.size = 5

    def row(self, state: Any, row: Any, out: Any) -> Any:
        """Do nothing."""
        return state


class Clock(Base):
    def row(self, state: Any, row: Any, out: Any) -> Any:
        return (datetime.now(UTC),)


class Today(Base):
    def timer(self, state: Any, at: Any, out: Any) -> Any:
        return [each for each in [1] if date.today()]


class Dice(Base):
    def row(self, state: Any, row: Any, out: Any) -> Any:
        return (ask_dice(),)


class Indirect(Base):
    def row(self, state: Any, row: Any, out: Any) -> Any:
        return Helper().ask()


class Disk(Base):
    def row(self, state: Any, row: Any, out: Any) -> Any:
        with open("x") as file:  # noqa: PTH123 - what is looked for
            return file.read()


class Imports(Base):
    def row(self, state: Any, row: Any, out: Any) -> Any:
        import requests

        return requests.get("x")


class Global(Base):
    def row(self, state: Any, row: Any, out: Any) -> Any:
        global count  # noqa: PLW0603 - what is looked for
        count += 1
        return state


class Attribute(Base):
    def row(self, state: Any, row: Any, out: Any) -> Any:
        self.seen = row
        return state


class Hashes(Base):
    def end(self, state: Any, at: Any, out: Any) -> Any:
        return sorted("ab", key=lambda letter: hash(letter))


class Module(Base):
    def row(self, state: Any, row: Any, out: Any) -> Any:
        return (calendar.datetime.now(UTC),)


class Inside(Base):
    def row(self, state: Any, row: Any, out: Any) -> Any:
        from datetime import datetime

        return (datetime.now(UTC),)


class Member(Base):
    clock = staticmethod(clock.time)

    def row(self, state: Any, row: Any, out: Any) -> Any:
        return (self.clock(),)


def announced(method: Any) -> Any:
    """Wrap a method."""

    @functools.wraps(method)
    def call(*given: Any) -> Any:
        return method(*given)

    return call


class Wrapped(Base):
    @announced
    def row(self, state: Any, row: Any, out: Any) -> Any:
        return (clock.time(),)


@dataclass
class Total:
    """What a call adds up in."""

    n: int = 0

    def add(self, n: int) -> None:
        """Add a number."""
        self.n += n


class Pure(Base):
    """Uses what is neither clock nor disk of modules that have both."""

    def row(self, state: Any, row: Any, out: Any) -> Any:
        total, at = Total(), clock.strptime("2026", "%Y")
        total.add(at.tm_year)
        return (total.n, os.path.normpath("a/b"), urllib.parse.quote("ä"), row["now"])


@pytest.mark.parametrize(
    ("found", "part"),
    [
        (Clock, "Clock.row calls now(): ask `out.at` for the time of a row"),
        (Today, "Today.timer calls today(): ask `out.at` for the time of a row"),
        (Dice, "ask_dice uses random, of the module random"),
        (Indirect, "Helper.ask uses clock, of the module time"),
        (Disk, "Disk.row calls open(), which reads files"),
        (Imports, "Imports.row imports requests"),
        (Global, "Global.row changes the global 'count': what is kept between calls belongs in the state"),
        (
            Attribute,
            "Attribute.row sets the attribute 'seen': what is kept between calls belongs in the state",
        ),
        (Module, "Module.row calls now(): ask `out.at` for the time of a row"),
        (Inside, "Inside.row calls now(): ask `out.at` for the time of a row"),
        (Member, "Member.clock uses clock, of the module time"),
        (Wrapped, "Wrapped.row uses clock, of the module time"),
        (Hashes, "Hashes.end calls hash(), which is another number in each process"),
    ],
)
def test_what_two_runs_may_do_differently_is_named(found, part):
    """With the function that does it, which may be another one."""
    assert list_unsound_parts(found) == [part]


@pytest.mark.parametrize("found", [Base, Abandoned, Counts, Remembers, Pure])
def test_a_function_of_its_arguments_has_none(found):
    """Its attributes may be set when it is created, and a column may be called ``now``."""
    assert list_unsound_parts(found) == []
    assert process_functions.__name__ not in str(list_unsound_parts(found))
