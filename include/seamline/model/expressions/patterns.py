"""Java's regular expressions, read and spelled for RE2 where both mean the same for every text."""

from __future__ import annotations

import re

from seamline.model.errors import ExpressionError
from seamline.model.expressions.letter_sets import (
    ANY,
    CLASSES,
    CONTROLS,
    POSIX,
    TERMINATORS,
    Ranges,
    add_both_cases,
    invert,
    spell_ranges,
)
from seamline.model.expressions.pattern_parts import END, Piece, RegexPattern
from seamline.model.expressions.terms import build_expression_error

MOST_REPEATS, MOST_PARTS = 1000, 4000
"""RE2 repeats at most so often, and keeps so many parts well within its memory."""
MOST_DEPTH = 50
"""Groups within groups, at most."""
QUANTIFIER = re.compile(r"[*+?]|\{(0|[1-9]\d{0,3})(,(0|[1-9]\d{0,3})?)?\}")
CODE = re.compile(r"x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|x\{([0-9A-Fa-f]{1,6})\}")
FLAGS = re.compile(r"\(\?([is]+)\)")
PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~ ")


def read_pattern(text: str) -> RegexPattern:
    """Read a pattern; ExpressionError for what engines read differently."""
    reader = PatternReader(text)
    piece = reader.read_alternatives(last=True)
    if reader.place < len(text):
        raise reader.refuse("has a ) that closes nothing", "write \\) for the character.")
    plain = reader.plain_text() if not reader.folded else None
    return RegexPattern(piece.re2, reader.groups, frozenset(reader.repeated), piece.nullable, plain)


class PatternReader:
    """Reads a pattern from left to right."""

    def __init__(self, text: str) -> None:
        flags = FLAGS.match(text)
        self.text = text
        self.place = flags.end() if flags else 0
        self.folded = bool(flags and "i" in flags[1])
        self.dot = ANY if flags and "s" in flags[1] else invert(TERMINATORS)
        self.groups = self.depth = 0
        self.repeated: set[int] = set()
        self.letters: list[str | None] = []

    def plain_text(self) -> str | None:
        """Return the text of a pattern that is letters only."""
        known = [letter for letter in self.letters if letter is not None]
        return "".join(known) if known and len(known) == len(self.letters) else None

    def refuse(self, what: str, hint: str) -> ExpressionError:
        """Make the error of a pattern that engines read differently."""
        return build_expression_error(f"Pattern {self.text!r} {what}.", hint)

    def sees(self, wanted: str) -> bool:
        """Whether the pattern goes on so; if it does, what is seen is read."""
        if self.text.startswith(wanted, self.place):
            self.place += len(wanted)
            return True
        return False

    def read_alternatives(self, *, last: bool) -> Piece:
        """Read a|b; ``last``: the whole pattern ends with what is read."""
        found = [self.read_sequence(last=last)]
        while self.sees("|"):
            self.letters.append(None)
            found.append(self.read_sequence(last=last))
        return Piece(
            "|".join(each.re2 for each in found),
            any(each.nullable for each in found),
            sum(each.parts for each in found),
            max(each.repeats for each in found),
        )

    def read_sequence(self, *, last: bool) -> Piece:
        """Read what stands one after the other."""
        found: list[Piece] = []
        while self.place < len(self.text) and self.text[self.place] not in "|)":
            found.append(self.read_repeated(last=last))
        if not found:
            raise self.refuse("has an alternative that is empty", "make what it is in optional with ?.")
        return Piece(
            "".join(each.re2 for each in found),
            all(each.nullable for each in found),
            sum(each.parts for each in found),
            max(each.repeats for each in found),
        )

    def read_repeated(self, *, last: bool) -> Piece:
        """Read one thing and how often it occurs."""
        before = self.groups
        piece = self.read_one(last=last)
        self.letters.append(piece.letter)
        times = QUANTIFIER.match(self.text, self.place)
        if times is None:
            if self.text[self.place : self.place + 1] == "{":
                raise self.refuse("has a { that is no repetition", "write \\{, or {2}, {2,} or {2,5}.")
            return piece
        self.place = times.end()
        self.letters.append(None)
        if piece.nullable:
            raise self.refuse(
                f"repeats with {times[0]} what may be empty", "engines count that differently: use + inside."
            )
        if times[0] != "?":
            self.repeated.update(range(before + 1 + piece.captures, self.groups + 1))
        return self.repeat(piece, times)

    def repeat(self, piece: Piece, times: re.Match[str]) -> Piece:
        """Apply a quantifier."""
        least, most = int(times[1] or 0), int(times[3] or times[1] or 1)
        lazy = "?" if self.sees("?") else ""
        if QUANTIFIER.match(self.text, self.place) or most < least or most == 0:
            raise self.refuse(
                f"has {times[0]} before another repetition, or one that is none",
                "possessive quantifiers are not supported: use *, +, ?, {2}, {2,} or {2,5}.",
            )
        made = Piece(
            f"{piece.re2}{times[0]}{lazy}",
            times[0] in ("*", "?") or (times[1] is not None and least == 0),
            piece.parts * most,
            piece.repeats * most,
        )
        if made.repeats > MOST_REPEATS or made.parts > MOST_PARTS:
            raise self.refuse("repeats too often", f"repeat at most {MOST_REPEATS} times in all.")
        return made

    def read_one(self, *, last: bool) -> Piece:
        """Read a letter, a class, an anchor or a group."""
        letter = self.text[self.place]
        self.place += 1
        if letter == "(":
            return self.read_group(last=last)
        if letter == "^":
            return self.anchor(r"\A")
        if letter == "$":
            return self.read_end(last=last)
        if letter == ".":
            return self.set_piece(self.dot)
        if letter == "[":
            return self.set_piece(self.read_class())
        if letter == "\\":
            return self.read_escape()
        if letter in "*+?{}]":
            raise self.refuse(f"has a {letter} without what it belongs to", f"write \\{letter} for it.")
        return self.letter_piece(letter)

    def anchor(self, spelled: str) -> Piece:
        """Return a place in the text."""
        return Piece(spelled, nullable=True)

    def read_end(self, *, last: bool) -> Piece:
        """Read $, which must be the last thing: what is before it may not tell line ends from others."""
        if not last:
            raise self.refuse_end()
        self.require_end()
        return self.anchor(END)

    def require_end(self) -> None:
        """Refuse what follows a $."""
        if self.text[self.place : self.place + 1] not in ("", "|", ")"):
            raise self.refuse_end()

    def refuse_end(self) -> ExpressionError:
        """Make the error of a $ that something may follow."""
        return self.refuse("has a $ that is not at its end", "write \\$ for the character, \\z for the end.")

    def set_piece(self, ranges: Ranges) -> Piece:
        """Return one letter out of many."""
        if not ranges:
            raise self.refuse("has a class without a letter", "put a letter into it.")
        return Piece(spell_ranges(ranges), nullable=False, parts=1 + len(ranges))

    def letter_piece(self, letter: str) -> Piece:
        """Return a letter."""
        ranges: Ranges = ((ord(letter), ord(letter)),)
        spelled = spell_ranges(add_both_cases(ranges) if self.folded else ranges)
        return Piece(spelled, nullable=False, letter=letter)

    def read_group(self, *, last: bool) -> Piece:
        """Read (...) and (?:...)."""
        opened = "(?:" if self.sees("?:") else "("
        if opened == "(" and self.sees("?"):
            raise self.refuse(
                "has a (? that only one engine knows",
                "use ( ), (?: ), and (?i), (?s) at the very start; look-around and named groups have no equal.",
            )
        self.groups += opened == "("
        self.depth += 1
        if self.depth > MOST_DEPTH:
            raise self.refuse("has groups in groups too deep", f"nest at most {MOST_DEPTH}.")
        self.letters.append(None)
        inside = self.read_alternatives(last=last and opened == "(?:")
        if not self.sees(")"):
            raise self.refuse("has a ( that is not closed", "write \\( for the character.")
        self.depth -= 1
        if END in inside.re2:
            self.require_end()
        return Piece(f"{opened}{inside.re2})", inside.nullable, inside.parts, inside.repeats)

    def read_escape(self) -> Piece:
        """Read a backslash and what follows, outside of a class."""
        if self.sees("A"):
            return self.anchor(r"\A")
        if self.sees("z"):
            return self.anchor(r"\z")
        found = self.read_escaped()
        return self.letter_piece(found) if isinstance(found, str) else self.set_piece(found)

    def read_escaped(self) -> str | Ranges:
        """Read a backslash and what follows: a letter, or a set of them."""
        letter = self.text[self.place : self.place + 1]
        code = CODE.match(self.text, self.place)
        if code is not None:
            return self.read_code(code)
        self.place += 1
        if letter in PUNCTUATION and letter:
            return letter
        if letter in CONTROLS:
            return CONTROLS[letter]
        if letter in CLASSES:
            return CLASSES[letter]
        if letter in ("p", "P"):
            return self.read_posix(inverted=letter == "P")
        raise self.refuse(
            f"has \\{letter}, which engines read differently",
            "spell it out: [0-9], [A-Za-z_], \\z for the end of the text.",
        )

    def read_code(self, code: re.Match[str]) -> str:
        """Read a letter by its number."""
        self.place = code.end()
        number = int(code[1] or code[2] or code[3], 16)
        if 0xD800 <= number <= 0xDFFF or number > 0x10FFFF:
            raise self.refuse(f"has \\{code[0]}, which is no letter", "write \\x{1F600} for one beyond FFFF.")
        return chr(number)

    def read_posix(self, *, inverted: bool) -> Ranges:
        r"""Read \p{Alpha} and its kin, which are of ASCII in Java."""
        name = re.compile(r"\{(\w+)\}").match(self.text, self.place)
        if name is None or name[1] not in POSIX or self.folded:
            raise self.refuse(
                "has a \\p class that depends on an engine's Unicode tables",
                f"use one of {', '.join(POSIX)} without (?i), or list ranges: [a-zà-ÿ].",
            )
        self.place = name.end()
        return invert(POSIX[name[1]]) if inverted else POSIX[name[1]]

    def read_class(self) -> Ranges:
        """Read [...] behind its bracket."""
        from seamline.model.expressions.pattern_classes import read_class

        return read_class(self)
