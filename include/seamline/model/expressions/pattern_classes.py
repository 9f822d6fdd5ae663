"""Classes of a regular expression, [a-z_]: read by the rules that Java and everybody else share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seamline.model.expressions.letter_sets import Ranges, add_both_cases, invert, join_ranges

if TYPE_CHECKING:
    from seamline.model.expressions.patterns import PatternReader


def read_class(reader: PatternReader) -> Ranges:
    """Read a class behind its bracket."""
    inverted = reader.sees("^")
    found: list[tuple[int, int]] = []
    first = True
    while first or not reader.sees("]"):
        found.extend(read_member(reader, first=first))
        first = False
    ranges = join_ranges(found)
    ranges = add_both_cases(ranges) if reader.folded else ranges
    return invert(ranges) if inverted else ranges


def read_member(reader: PatternReader, *, first: bool) -> Ranges:
    """Read a letter, a range or a set within a class."""
    low = read_letter(reader, first=first)
    if not isinstance(low, str):
        return low
    rest = reader.text[reader.place : reader.place + 2]
    if not rest.startswith("-") or rest == "-]":
        return ((ord(low), ord(low)),)
    reader.place += 1
    high = read_letter(reader, first=False)
    if not isinstance(high, str) or high < low:
        raise reader.refuse("has a range that ends before it starts", "write it as a-z, and - as \\-.")
    return ((ord(low), ord(high)),)


def read_letter(reader: PatternReader, *, first: bool) -> str | Ranges:
    """Read one thing within a class; a bare - is the character at either end only."""
    letter = reader.text[reader.place : reader.place + 1]
    after = reader.text[reader.place + 1 : reader.place + 2]
    if not letter or letter == "[" or letter + after == "&&" or (letter == "]" and first):
        raise reader.refuse(
            "has a class with [, && or ] in it, or without its end",
            "write \\[, \\& and \\] for the characters.",
        )
    reader.place += 1
    if letter == "\\":
        return reader.read_escaped()
    if letter == "-" and not first and after != "]":
        raise reader.refuse("has a class with - in the middle", "write \\- for the character.")
    return letter
