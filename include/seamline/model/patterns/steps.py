"""The text of a pattern's steps: ``fail{3,} ok`` is read into a tree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

from seamline.model.errors import DefinitionError
from seamline.model.patterns.tree import Choice, Repeat, Sequence, Step, Tree, may_be_empty

MOST_DEEP = 50
"""So deep may brackets be in brackets."""
MOST_NAMES = 62
"""So many steps have a bit each in the BIGINT that says which hold for a row."""
TOKEN = re.compile(
    r"(?P<name>[A-Za-z]\w*)|(?P<count>\{\s*\d*\s*(,\s*\d*\s*)?\})|(?P<sign>[?*+|()])", re.ASCII
)
SPACE = re.compile(r"\s*")
REPEATS = {"?": (0, 1), "*": (0, None), "+": (1, None)}
WRITE = 'write steps as "fail{3,} ok" or "a (b | c)* d+?"'
REFUSED = {
    "^": (
        "^ is not there",
        "a match may begin at any row: ask for the first one by a condition of its first step.",
    ),
    "$": ("$ is not there", "a match may end at any row: leave it out."),
    "{-": ("{- -} is not there", "leave the brackets out: a match is one row, made of what select= names."),
    "{": ("this is no count", "counts are {3}, {3,}, {3,5} and {,5}."),
}
"""What is said of signs that SQL knows, or that are no whole count."""


@dataclass(frozen=True)
class Steps:
    """Steps that were read."""

    text: str
    """As they were written."""
    names: tuple[str, ...]
    """The steps' names, in the order in which they appear first."""
    tree: Tree
    """How they follow each other."""


def parse_steps(text: str) -> Steps:
    """Read the text of steps; DefinitionError names the place that is wrong, and the way out."""
    if not isinstance(text, str) or not text.strip():
        raise DefinitionError(f"Steps {text!r} name no step.", hint=f"{WRITE}.")
    reader = StepsReader(text)
    tree = reader.read_choice(0)
    if reader.token.text:
        reader.refuse(f"{reader.token.text!r} closes nothing", "take it out, or open a bracket before it.")
    if may_be_empty(tree):
        raise DefinitionError(
            f"Steps {text!r} match no rows at all, too, and so are found everywhere.",
            hint="require at least one row: use + instead of *, or leave a ? out.",
        )
    return Steps(text, tuple(reader.names), tree)


def list_step_names(text: str) -> tuple[str, ...]:
    """List the names of steps in the order in which they appear first; DefinitionError where the text is wrong."""
    return parse_steps(text).names


class Token(NamedTuple):
    """A name, a count or a sign."""

    kind: str
    """Which of the three; empty at the end."""
    text: str
    """As it was written; empty at the end."""
    at: int
    """Where it begins."""


END = Token("", "", -1)


class StepsReader:
    """Reads steps from left to right, a token ahead."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.names: list[str] = []
        self.tokens = self.cut()
        self.token = END
        self.go_on()

    def cut(self) -> Iterator[Token]:
        """Cut the text into tokens."""
        at = skip_space(self.text, 0)
        while at < len(self.text):
            found = TOKEN.match(self.text, at)
            if found is None:
                self.refuse_letter(at)
            yield Token(found.lastgroup or "", found[0], at)
            at = skip_space(self.text, found.end())

    def go_on(self) -> Token:
        """Return the token at hand, and take the next one."""
        before, self.token = self.token, next(self.tokens, Token("", "", len(self.text)))
        return before

    def read_choice(self, depth: int) -> Tree:
        """Read alternatives."""
        parts = [self.read_sequence(depth)]
        while self.token.text == "|":
            self.go_on()
            parts.append(self.read_sequence(depth))
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def read_sequence(self, depth: int) -> Tree:
        """Read parts up to a bracket that closes, an alternative or the end."""
        parts: list[Tree] = []
        while self.token.kind == "name" or self.token.text == "(":
            parts.append(self.read_repeats(self.read_part(depth)))
        if self.token.kind == "count" or self.token.text in REPEATS:
            self.refuse(f"{self.token.text!r} repeats nothing", "write it behind a step or a bracket.")
        if not parts:
            self.refuse("here a step is missing", 'name one: for "one or none" write ? behind it.')
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def read_part(self, depth: int) -> Tree:
        """Read a step, or what is in brackets."""
        begun = self.go_on()
        if begun.kind == "name":
            return self.number_step(begun)
        if depth == MOST_DEEP:
            self.refuse(f"brackets are more than {MOST_DEEP} deep", "take some out.", begun.at)
        tree = self.read_choice(depth + 1)
        if self.token.text != ")":
            self.refuse("this bracket is never closed", "write ) where it ends.", begun.at)
        self.go_on()
        return tree

    def number_step(self, named: Token) -> Step:
        """Find a step's number by its name."""
        if named.text.upper() == "PERMUTE":
            self.refuse("PERMUTE is not there", "write the orders out: (a b | b a).", named.at)
        if named.text not in self.names:
            if named.text.lower() in map(str.lower, self.names):
                why = f"{named.text!r} differs from another step in upper and lower case only"
                self.refuse(why, "write a step's name in one way.", named.at)
            if len(self.names) == MOST_NAMES:
                self.refuse(f"there are more than {MOST_NAMES} steps", "use fewer.", named.at)
            self.names.append(named.text)
        return Step(self.names.index(named.text))

    def read_repeats(self, part: Tree) -> Tree:
        """Read what is behind a part: a sign or a count, and ? where fewer are preferred."""
        if self.token.kind != "count" and self.token.text not in REPEATS:
            return part
        sign = self.go_on()
        least, most = REPEATS[sign.text] if sign.text in REPEATS else self.read_count(sign)
        if reluctant := self.token.text == "?":
            self.go_on()
        if self.token.kind == "count" or self.token.text in REPEATS:
            self.refuse(
                f"{self.token.text!r} repeats what is repeated", "put brackets around what it repeats."
            )
        return Repeat(part, least, most, reluctant)

    def read_count(self, token: Token) -> tuple[int, int | None]:
        """Read ``{n}``, ``{n,}``, ``{n,m}`` or ``{,m}``."""
        first, comma, second = (each.strip() for each in token.text[1:-1].partition(","))
        if not first and not second:
            self.refuse(f"{token.text} counts nothing", "write * for any number.", token.at)
        if max(len(first), len(second)) > 9:
            self.refuse(f"{token.text} is too much", "use smaller numbers.", token.at)
        least = int(first or "0")
        most = int(second) if second else None if comma else least
        if most == 0:
            self.refuse(f"{token.text} matches no row", "leave the step out.", token.at)
        if most is not None and least > most:
            self.refuse(f"{token.text} has no number within", f"write {{{most},{least}}}.", token.at)
        return least, most

    def refuse_letter(self, at: int) -> NoReturn:
        """Raise for a letter that begins nothing."""
        letter = self.text[at : at + 2] if self.text[at : at + 2] in REFUSED else self.text[at]
        unknown = (
            f"{letter!r} is unknown",
            "steps have names of letters, digits and _; signs are ? * + { , } | ( ).",
        )
        self.refuse(*REFUSED.get(letter, unknown), at)

    def refuse(self, why: str, hint: str, at: int | None = None) -> NoReturn:
        """Raise DefinitionError for a place, else for the token at hand."""
        place = (self.token.at if at is None else at) + 1
        where = "the end" if place > len(self.text) else f"letter {place}"
        raise DefinitionError(f"Steps {self.text!r}, at {where}: {why}.", hint=hint)


def skip_space(text: str, at: int) -> int:
    """Return where the next token begins."""
    found = SPACE.match(text, at)
    return found.end() if found else at
