"""What a reader asks of a view's page: all of it is in the address, which can be passed on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any
from urllib.parse import urlencode

from seamline.model.errors import BadRange

SIDES = ("merged", "batch", "speed")
DRAWN = ("lines", "heat", "small", "compared")
"""What a page draws: lines by key, a heat map, a small chart for each key, or two ranges."""
CHOICES: Mapping[str, tuple[str, ...]] = {
    "side": SIDES,
    "draw": DRAWN,
    "scale": ("linear", "log"),
    "axes": ("equal", "own"),
    "by": ("clock", "keys"),
}
TEXTS = {
    "start": 200,
    "end": 200,
    "measure": 200,
    "version": 200,
    "zone": 100,
    "series": 1000,
    "against": 100,
    "other": 200,
}
"""Texts, and how many characters of them are read."""
LONGEST_KEY = 1000
"""Characters of a key's value."""
NUMBERS = ("offset", "page")
NUMBER = re.compile(r"\d{1,9}", re.ASCII)


@dataclass(frozen=True)
class ViewRequest:
    """What a reader asks of a view's page."""

    start: str = ""
    """An instant, inclusive, as text; with ``end`` empty too, the last intervals that have rows."""
    end: str = ""
    """An instant, exclusive, as text; empty for no bound."""
    side: str = "merged"
    """One of SIDES."""
    measure: str = ""
    """Empty for the first measure that is a number."""
    version: str = ""
    """A fingerprint; empty for the version that is served."""
    offset: int = 0
    """Rows before the page."""
    draw: str = "lines"
    """One of DRAWN."""
    scale: str = "linear"
    """``linear`` or ``log``."""
    axes: str = "equal"
    """Whether small charts have ``equal`` axes or each its ``own``."""
    by: str = ""
    """The rows of a heat map: ``clock`` or ``keys``; empty for what fits the view."""
    zone: str = ""
    """The zone whose clocks lay windows beside each other; empty for that of the view's windows."""
    series: str = ""
    """The name of the key that is drawn where one is; empty for the largest."""
    against: str = ""
    """What a range is compared with: a name of ``two_ranges.SHIFTS``; empty for the range before."""
    other: str = ""
    """An instant at which the other range starts, instead; empty for none."""
    page: int = 0
    """Pages of small charts before this one."""
    keys: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Values by key column, as text."""

    @classmethod
    def of(cls, items: Iterable[tuple[str, str]]) -> ViewRequest:
        """Read it from an address; what cannot be meant is left out, and what is too long is refused: BadRange."""
        given: dict[str, Any] = {}
        keys: dict[str, list[str]] = {}
        for name, value in items:
            if name.startswith("key.") and value:
                keys.setdefault(name.removeprefix("key."), []).append(require_short(name, value, LONGEST_KEY))
            elif name in TEXTS:
                given[name] = require_short(name, value, TEXTS[name])
            elif value in CHOICES.get(name, ()):
                given[name] = value
            elif name in NUMBERS and NUMBER.fullmatch(value):
                given[name] = int(value)
        return cls(**given, keys=keys)

    @property
    def log(self) -> bool:
        """Whether the scale is logarithmic."""
        return self.scale == "log"

    def address(self, **changed: Any) -> str:
        """Write it as an address; what is usual is left out, and so are the pages, unless they are given."""
        plain = {each.name: each.default for each in fields(self) if each.name != "keys"}
        own = {name: getattr(self, name) for name in plain if name not in NUMBERS} | changed
        items = [(name, value) for name, value in own.items() if value != plain[name]]
        return "?" + urlencode(
            [*items, *((f"key.{name}", each) for name, some in self.keys.items() for each in some)]
        )


def require_short(name: str, value: str, longest: int) -> str:
    """Refuse a value that is too long: cut off it would be another one."""
    if len(value) > longest:
        raise BadRange(
            f"{name} has {len(value):,} characters; an address takes {longest:,} at most.",
            hint="`seamline query --where` takes longer values of keys.",
        )
    return value
