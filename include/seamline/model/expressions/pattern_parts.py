"""What a regular expression becomes once it is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from seamline.model.expressions.letter_sets import TERMINATORS, spell_ranges

END = "\0"
"""Where a pattern has $ : each use spells it for the text at hand."""


@dataclass(frozen=True)
class RegexPattern:
    """A regular expression that means the same in Java and in RE2."""

    re2: str
    """Its text for RE2, with END for $."""
    groups: int
    """How many capturing groups it has."""
    repeated: frozenset[int]
    """Groups within what is repeated: Java keeps what they matched even where it went back behind them."""
    nullable: bool
    """Whether it may match the empty text."""
    plain: str | None
    """The text it stands for where it has no operator."""

    @property
    def ends(self) -> bool:
        """Whether it has $."""
        return END in self.re2

    def spell(self, *, crlf: bool = False) -> str:
        """Spell it for RE2; Java's $ is also before the last line's end, which is \\r\\n as a whole if it can be."""
        end = r"(?:\r\n)?\z" if crlf else f"{spell_ranges(TERMINATORS)}?\\z"
        return self.re2.replace(END, f"(?:{end})")


class Piece(NamedTuple):
    """A part of a pattern."""

    re2: str
    """Its text for RE2."""
    nullable: bool
    """Whether it may match the empty text."""
    parts: int = 1
    """How many parts it has once each repetition is written out."""
    repeats: int = 1
    """The product of the repetitions within it."""
    letter: str | None = None
    """The letter it stands for where it is one."""

    @property
    def captures(self) -> bool:
        """Whether it is a capturing group."""
        return self.re2.startswith("(") and not self.re2.startswith("(?:")
