"""Unit costs: what one of each thing costs on the machine whose yardstick is the reference, and how that was found."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FILE = Path(__file__).with_name("units.toml")
STATED = Path(__file__).with_name("stated.toml")
WAITED = "round_trip"
"""A second that is waited for: it is a second."""
Terms = Mapping[str, float]
"""How often each unit is paid, by its name."""


@dataclass(frozen=True)
class Unit:
    """What one thing costs."""

    value: float
    """How much."""
    of: str
    """In what: "s" of CPU, "MB", "bytes", "requests", "dollars"."""
    command: str
    """The command that measured it, or where it is stated."""


@dataclass(frozen=True)
class Units:
    """All unit costs, by name."""

    known: Mapping[str, Unit]

    def __getitem__(self, name: str) -> float:
        """Return a unit's value; KeyError that names the files where there is none."""
        if name not in self.known:
            raise KeyError(f"{FILE.name} and {STATED.name} have no unit {name!r}")
        return self.known[name].value

    def total(self, terms: Terms) -> float:
        """Add up what so many of each unit cost; ValueError if they are not of one kind."""
        kinds = {self.known[name].of for name in terms if name in self.known}
        if len(kinds) > 1:
            raise ValueError(f"{sorted(terms)} are of different kinds: {sorted(kinds)}")
        return sum((1.0 if name == WAITED else self[name]) * times for name, times in terms.items())


@cache
def read_units() -> Units:
    """Read the unit costs that are kept: those that were fitted, and those that are stated."""
    found = {name: each for file in (FILE, STATED) for name, each in tomllib.loads(file.read_text()).items()}
    return Units({name: Unit(**each) for name, each in found.items()})
