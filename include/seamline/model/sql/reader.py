"""Reads the tokens of a file one after the other, and refuses what does not belong where it stands."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NoReturn, TypeVar

from seamline.model.definition.origin import Origin
from seamline.model.errors import DefinitionError
from seamline.model.sql.slices import SqlText
from seamline.model.sql.tokens import (
    CLOSING,
    OPENING,
    SqlToken,
    TokenKind,
    build_statement_error,
    join_tokens,
    tokenize_sql,
)
from seamline.model.sql.words import RESERVED

T = TypeVar("T")
ASCII_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
ESCAPES = {"\\": "\\", "'": "'", '"': '"', "n": "\n", "r": "\r", "t": "\t"}


@dataclass
class Reader:
    """The tokens of a file, and how far they have been read."""

    text: str
    """The text of the file."""
    file: str
    """The path of the file."""
    tokens: list[SqlToken] = field(default_factory=list)
    """Its tokens, the end of the file last."""
    at: int = 0
    """The number of the next token."""
    clause: str = ""
    """What is being read, for messages: "VIEW by_shop, WHERE"."""

    @classmethod
    def of(cls, text: str, file: str) -> Reader:
        """Cut a text into tokens and begin."""
        return cls(text, file, tokenize_sql(text, file))

    @property
    def next(self) -> SqlToken:
        """The next token."""
        return self.tokens[self.at]

    def peek(self, more: int = 1) -> SqlToken:
        """Look at a token behind the next one."""
        return self.tokens[min(self.at + more, len(self.tokens) - 1)]

    def take(self) -> SqlToken:
        """Return the next token and go on."""
        token = self.next
        self.at = min(self.at + 1, len(self.tokens) - 1)
        return token

    @contextmanager
    def within(self, clause: str) -> Iterator[None]:
        """Name what is being read."""
        before = self.clause
        self.clause = f"{before}, {clause}" if before else clause
        yield
        self.clause = before

    def origin(self, token: SqlToken) -> Origin:
        """Say where a part of the definition stands."""
        return Origin(self.file, token.line)

    def fail(self, message: str, hint: str, token: SqlToken | None = None) -> NoReturn:
        """Raise DefinitionError about a token, the next one unless another is given."""
        raise self.error(message, hint, token)

    def error(self, message: str, hint: str, token: SqlToken | None = None) -> DefinitionError:
        """Make the error of a token, the next one unless another is given."""
        token = token or self.next
        return build_statement_error(
            message, hint, file=self.file, line=token.line, column=token.column, clause=self.clause
        )

    def attempt(self, token: SqlToken, make: Callable[[], T]) -> T:
        """Return what is made; DefinitionError with the place of a token where it cannot be."""
        try:
            return make()
        except DefinitionError as error:
            raise self.error(error.message, error.hint, token) from None

    def is_words(self, *words: str) -> bool:
        """Return whether the next tokens are these words."""
        return all(self.peek(number).word == word for number, word in enumerate(words))

    def accept(self, *words: str) -> bool:
        """Go on where the next tokens are these words."""
        found = self.is_words(*words)
        if found:
            self.at += len(words)
        return found

    def expect(self, *words: str, hint: str) -> SqlToken:
        """Go on over words; DefinitionError where others stand."""
        token = self.next
        if not self.accept(*words):
            self.fail(f"{' '.join(words)} is missing before {self.next.shown}.", hint)
        return token

    def accept_symbol(self, symbol: str) -> bool:
        """Go on where the next token is a symbol."""
        found = self.next.symbol == symbol
        if found:
            self.at += 1
        return found

    def expect_symbol(self, symbol: str, hint: str) -> SqlToken:
        """Go on over a symbol; DefinitionError where another token stands."""
        token = self.next
        if not self.accept_symbol(symbol):
            self.fail(f"{symbol!r} is missing before {self.next.shown}.", hint)
        return token

    def list_items(self, read: Callable[[], T], hint: str) -> list[T]:
        """Read what stands between brackets, with commas between; DefinitionError for a comma too many."""
        self.expect_symbol("(", hint)
        found: list[T] = []
        while not self.accept_symbol(")"):
            if found:
                self.expect_symbol(",", hint)
                self.refuse_comma()
            found.append(read())
        return found

    def refuse_comma(self, stops: Collection[str] = ()) -> None:
        """Refuse a comma behind which nothing comes; ``stops`` are words that begin the next clause."""
        is_end = self.next.symbol in (")", ",", ";") or self.next.kind is TokenKind.END
        if is_end or self.stands_word(stops):
            self.fail("A comma has nothing behind it.", "delete the comma.", self.tokens[self.at - 1])

    def name(self, what: str) -> SqlToken:
        """Read a name: a word that is not reserved, or what stands in backticks."""
        token = self.next
        if token.kind is TokenKind.TEXT:
            self.fail(
                f"{token.shown} is a text, and not {what}.",
                f"quotes are around texts; write a name without, or in backticks: `{token.text[1:-1]}`.",
            )
        if token.word in RESERVED:
            self.fail(
                f"{token.shown} is a reserved word, and not {what}.",
                f"to use it as a name, quote it: `{token.text}`.",
            )
        if token.kind not in (TokenKind.WORD, TokenKind.NAME):
            self.fail(f"{token.shown} is not {what}.", "write a name.")
        if token.kind is TokenKind.WORD and not ASCII_NAME.fullmatch(token.text):
            self.fail(
                f"{token.shown} has letters that are not in names.",
                "use letters of ASCII, digits and underscores.",
            )
        return self.take()

    def string(self, what: str) -> str:
        """Read a text in quotes and return what it says."""
        token = self.next
        if token.kind is TokenKind.RAW:
            return self.take().text[2:-1]
        if token.kind is not TokenKind.TEXT:
            self.fail(f"{token.shown} is not {what}.", "write a text in single quotes.")
        self.take()
        if self.next.kind is TokenKind.TEXT and not self.next.apart:
            self.fail(
                "A quote in a text is not doubled.",
                r"write \' for a quote, or double quotes around the text.",
            )
        return re.sub(r"\\(.)", lambda each: self.unescape(each[1], token), token.text[1:-1], flags=re.DOTALL)

    def unescape(self, letter: str, token: SqlToken) -> str:
        """Return what a letter behind a backslash stands for."""
        if letter not in ESCAPES:
            self.fail(
                f"\\{letter} means nothing in a text.",
                "write r before a text with backslashes: r'...'.",
                token,
            )
        return ESCAPES[letter]

    def expression(self, what: str, stops: Collection[str] = (), symbols: str = ",;") -> SqlText:
        """Read up to a comma, a bracket that closes, or a word of ``stops``, in no brackets of its own."""
        begin, open_ = self.at, list[SqlToken]()
        while self.next.kind is not TokenKind.END:
            token = self.next
            if not open_ and (token.symbol in (*symbols, *CLOSING) or self.stands_word(stops)):
                break
            if token.symbol and token.symbol in OPENING:
                open_.append(token)
            elif token.symbol and token.symbol in CLOSING:
                self.close(open_)
            elif token.symbol == ";":
                break
            self.at += 1
        if open_:
            self.fail(f"{open_[-1].text!r} is not closed.", "close the bracket.", open_[-1])
        if self.at == begin:
            self.fail(f"{what} is missing before {self.next.shown}.", "write a Spark SQL expression.")
        return self.slice(begin, self.at)

    def stands_word(self, words: Collection[str]) -> bool:
        """Return whether the next token is one of some words, and no name with a dot before or behind it."""
        before = self.tokens[self.at - 1].symbol if self.at else ""
        return self.next.word in words and "." not in (before, self.peek().symbol)

    def close(self, open_: list[SqlToken]) -> None:
        """Take the bracket that the next token closes off the open ones."""
        opened = open_.pop()
        if OPENING.index(opened.text) != CLOSING.index(self.next.text):
            self.fail(f"{self.next.text!r} does not close {opened.text!r}.", "close brackets in their order.")

    def slice(self, begin: int, end: int) -> SqlText:
        """Return the tokens from a number up to another, which is out."""
        tokens = tuple(self.tokens[begin:end])
        return SqlText(join_tokens(tokens), tokens)

    def bracketed(self, what: str) -> SqlText:
        """Read an expression in brackets and return what is in them."""
        opened = self.expect_symbol("(", f"put brackets around {what}.")
        found = self.expression(what, symbols=";")
        if not self.accept_symbol(")"):
            self.fail("'(' is not closed.", "close the bracket.", opened)
        return found
