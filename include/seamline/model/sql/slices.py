"""Parts of a file that a definition has as texts: expressions, and the names in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from seamline.model.sql.tokens import SqlToken, TokenKind, join_tokens


@dataclass(frozen=True)
class SqlText:
    """A part of the file: an expression, as a definition has it."""

    text: str
    """Its text; whatever stands between two tokens is one space."""
    tokens: tuple[SqlToken, ...]
    """Its tokens, one or more."""

    @property
    def token(self) -> SqlToken:
        """The first token."""
        return self.tokens[0]


def unquote(token: SqlToken) -> str:
    """Return the name that a token is."""
    return token.text[1:-1].replace("``", "`") if token.kind is TokenKind.NAME else token.text


def qualify(found: SqlText, prefixes: Mapping[str, str]) -> SqlText:
    """Write ``orders.shop`` as the rows call it: with what stands for ``orders`` in ``prefixes`` before the name."""
    made: list[SqlToken] = []
    tokens = [*found.tokens]
    at = 0
    while at < len(tokens):
        token = tokens[at]
        behind = [each.symbol for each in tokens[at + 1 : at + 2]]
        if (at and tokens[at - 1].symbol == ".") or behind != ["."] or unquote(token) not in prefixes:
            made.append(token)
            at += 1
            continue
        column = tokens[at + 2] if at + 2 < len(tokens) else token
        name = prefixes[unquote(token)] + unquote(column)
        quote = "`" if column.kind is TokenKind.NAME else ""
        made.append(replace(token, text=f"{quote}{name}{quote}", kind=column.kind))
        at += 3
    return replace(found, text=join_tokens(made), tokens=tuple(made)) if made != tokens else found
