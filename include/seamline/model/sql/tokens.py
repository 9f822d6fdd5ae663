"""SQL text cut into tokens that know where they stand; it needs no SQL library, since DAG files read definitions.

Words, texts and comments end where Spark's do, so that an expression is read as it was cut.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from seamline.model.errors import DefinitionError

TOKEN = re.compile(
    r"""
    (?P<gap>\s+|--[^\n]*)
    | (?P<raw>[rR](?:'[^']*'|"[^"]*"))
    | (?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    | (?P<name>`(?:[^`]|``)+`)
    | (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?\w*)
    | (?P<word>[^\W\d]\w*)
    | (?P<symbol><=>|<=|>=|<>|!=|=>|->|\|\||::|[-()\[\]{},;.=<>+*/%?|&^~!:@])
    """,
    re.VERBOSE | re.DOTALL,
)
COMMENT_END = re.compile(r"/\*|\*/")
UNCLOSED = {"'": "A text", '"': "A text", "`": "A quoted name"}
OPENING, CLOSING = "([{", ")]}"


class TokenKind(Enum):
    """What a token is."""

    WORD = "word"
    """A name or a keyword."""
    NAME = "name"
    """A name in backticks."""
    TEXT = "text"
    """A text in single or double quotes."""
    RAW = "raw"
    """A text with r before it, in which a backslash is itself."""
    NUMBER = "number"
    """A number, with what stands behind it."""
    SYMBOL = "symbol"
    """An operator, a bracket or punctuation."""
    END = "end"
    """The end of the file."""


@dataclass(frozen=True)
class SqlToken:
    """A piece of SQL text."""

    kind: TokenKind
    """What it is."""
    text: str
    """The text as it stands in the file."""
    line: int
    """Its line, from 1."""
    column: int
    """Its column, from 1."""
    apart: bool
    """Whether anything stands between it and the token before."""

    @property
    def word(self) -> str:
        """A word in capitals; empty for what is none."""
        return self.text.upper() if self.kind is TokenKind.WORD else ""

    @property
    def symbol(self) -> str:
        """A symbol; empty for what is none."""
        return self.text if self.kind is TokenKind.SYMBOL else ""

    @property
    def shown(self) -> str:
        """What a message calls it."""
        if self.kind is TokenKind.END:
            return "the end of the file"
        return repr(self.text if len(self.text) <= 40 else f"{self.text[:37]}...")


def build_statement_error(
    message: str, hint: str, *, file: str, line: int, column: int, clause: str = ""
) -> DefinitionError:
    """Make the error of a place in a SQL file."""
    error = DefinitionError(message, hint=hint, field=clause, file=file, line=line)
    error.column = column
    return error


def tokenize_sql(text: str, file: str) -> list[SqlToken]:
    """Cut SQL text into tokens, without gaps and comments, the end of the file last; DefinitionError."""
    lines = [0, *(each.end() for each in re.finditer("\n", text))]

    def place(at: int) -> tuple[int, int]:
        line = bisect_right(lines, at)
        return line, at - lines[line - 1] + 1

    found, end = [], 0
    for kind, part, at in cut_tokens(text, file, place):
        found.append(SqlToken(kind, part, *place(at), apart=at > end))
        end = at + len(part)
    return [*found, SqlToken(TokenKind.END, "", *place(len(text)), apart=True)]


Place = Callable[[int], tuple[int, int]]
"""What tells line and column by a place in a text."""


def cut_tokens(text: str, file: str, place: Place) -> Iterator[tuple[TokenKind, str, int]]:
    """Cut text into tokens: kind, text, and where each begins."""
    at = 0
    while at < len(text):
        if text.startswith("/*", at):
            end = find_comment_end(text, at)
            if end is None:
                line, column = place(at)
                raise build_statement_error(
                    "A comment does not end.", "close it: */.", file=file, line=line, column=column
                )
            at = end
            continue
        match = TOKEN.match(text, at)
        if match is None:
            line, column = place(at)
            raise build_letter_error(text[at], file, line, column)
        if match.lastgroup != "gap":
            yield TokenKind(match.lastgroup), match[0], at
        at = match.end()


def find_comment_end(text: str, start: int) -> int | None:
    """Find where a comment in ``/* */`` ends, which may contain others; None where it does not."""
    depth = 0
    for match in COMMENT_END.finditer(text, start):
        depth += 1 if match[0] == "/*" else -1
        if depth == 0:
            return match.end()
    return None


def build_letter_error(letter: str, file: str, line: int, column: int) -> DefinitionError:
    """Make the error of a letter with which nothing begins."""
    if letter in UNCLOSED:
        message, hint = f"{UNCLOSED[letter]} does not end.", f"close it: {letter}."
    else:
        message, hint = f"{letter!r} (U+{ord(letter):04X}) has no meaning in SQL.", "delete it."
    return build_statement_error(message, hint, file=file, line=line, column=column)


def join_tokens(tokens: Sequence[SqlToken]) -> str:
    """Write tokens as they stand in the file, with one space for whatever stands between two.

    So neither a line break nor a comment changes what a definition says.
    """
    made = (f" {token.text}" if number and token.apart else token.text for number, token in enumerate(tokens))
    return "".join(made)
