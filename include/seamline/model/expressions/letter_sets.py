"""Sets of letters as ranges of their numbers, both ends inclusive, in order and apart."""

from __future__ import annotations

from collections.abc import Iterable

Ranges = tuple[tuple[int, int], ...]
LAST = 0x10FFFF


def join_ranges(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Put ranges in order, and those together that touch."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return tuple(found)


def invert(ranges: Ranges) -> Ranges:
    """Return all other letters."""
    starts = [0, *(high + 1 for _, high in ranges)]
    ends = [*(low - 1 for low, _ in ranges), LAST]
    return tuple((low, high) for low, high in zip(starts, ends, strict=True) if low <= high)


def add_both_cases(ranges: Ranges) -> Ranges:
    """Add the other case of each letter of ASCII; Java's (?i) is of ASCII only."""
    added = list(ranges)
    for first, other in ((65, 97), (97, 65)):
        for low, high in ranges:
            start, end = max(low, first), min(high, first + 25)
            if start <= end:
                added.append((start - first + other, end - first + other))
    return join_ranges(added)


def spell_ranges(ranges: Ranges) -> str:
    """Spell a set for RE2."""
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return spell_letter(ranges[0][0])
    if ranges in WIDELY_FOLDED:
        return f"(?:{'|'.join(spell_letter(low) for low, _ in ranges)})"
    parts = (spell_letter(low) + (f"-{spell_letter(high)}" if high > low else "") for low, high in ranges)
    return f"[{''.join(parts)}]"


def spell_letter(number: int) -> str:
    """Spell a letter: by its number, unless it can only be itself."""
    letter = chr(number)
    return letter if letter.isascii() and letter.isalnum() else f"\\x{{{number:x}}}"


def letters_of(text: str) -> Ranges:
    """Return the letters of a text."""
    return join_ranges((ord(letter), ord(letter)) for letter in text)


WIDELY_FOLDED = (letters_of("Ss"), letters_of("Kk"))
"""Classes that RE2 takes for (?i)s and (?i)k, and among alternatives for the long s and the Kelvin sign as well."""
ANY: Ranges = ((0, LAST),)
TERMINATORS = letters_of("\n\r\x85\u2028\u2029")
"""What ends a line in Java."""
DIGIT, UPPER, LOWER = ((48, 57),), ((65, 90),), ((97, 122),)
ALPHA = join_ranges([*UPPER, *LOWER])
ALNUM = join_ranges([*ALPHA, *DIGIT])
WORD = join_ranges([*ALNUM, *letters_of("_")])
SPACE = letters_of("\t\n\x0b\f\r ")
CLASSES = {
    "d": DIGIT,
    "w": WORD,
    "s": SPACE,
    "D": invert(DIGIT),
    "W": invert(WORD),
    "S": invert(SPACE),
}
POSIX: dict[str, Ranges] = {
    "Lower": LOWER,
    "Upper": UPPER,
    "ASCII": ((0, 127),),
    "Alpha": ALPHA,
    "Digit": DIGIT,
    "Alnum": ALNUM,
    "Punct": letters_of("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"),
    "Blank": letters_of(" \t"),
    "XDigit": join_ranges([*DIGIT, (65, 70), (97, 102)]),
    "Space": SPACE,
}
CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
