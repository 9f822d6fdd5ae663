"""What the names in a query mean: whose rows it counts, and how those call their columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from seamline.model.definition.as_of import AsOf
from seamline.model.definition.changes import Changelog
from seamline.model.definition.joins import Join
from seamline.model.definition.patterns import Pattern
from seamline.model.definition.sources import Source
from seamline.model.sql.reader import Reader
from seamline.model.sql.slices import SqlText, qualify
from seamline.model.sql.tokens import SqlToken, TokenKind

Derived = Join | AsOf | Pattern | Changelog


@dataclass(frozen=True)
class DeclaredSource:
    """A source with its columns."""

    source: Source
    """The source; it has its name, also where it is the only one."""
    columns: frozenset[str]
    """The names of its columns, and of those derived in it."""


@dataclass(frozen=True)
class Scope:
    """What a query counts."""

    of: tuple[str, ...]
    """The names of the sources, or of the derived rows."""
    prefixes: Mapping[str, str]
    """What the rows have before the name of a column, by what stands before the dot in the query."""
    times: frozenset[str]
    """The names of event time; if empty, there is no one name of it."""

    def name(self, found: SqlText) -> SqlText:
        """Return an expression with the names that the rows have."""
        return qualify(found, self.prefixes)


@dataclass
class Names:
    """What the statements before have declared."""

    sources: dict[str, DeclaredSource] = field(default_factory=dict)
    """The sources by name."""
    derived: dict[str, Derived] = field(default_factory=dict)
    """The derived rows by name."""
    later: dict[str, int] = field(default_factory=dict)
    """The line on which a name is declared, for all sources and derived rows of the file."""

    def find_source(self, reader: Reader, token: SqlToken, name: str) -> DeclaredSource:
        """Find a source; DefinitionError where there is none, or only further down."""
        if name in self.sources:
            return self.sources[name]
        if name in self.derived:
            reader.fail(
                f"{name!r} names derived rows, and not a source.",
                "derive rows from sources; a view counts derived rows by FROM.",
                token,
            )
        raise self.unknown(reader, token, name)

    def unknown(self, reader: Reader, token: SqlToken, name: str) -> Exception:
        """Make the error of a name that nothing bears, or only something further down."""
        if self.later.get(name, 0) > token.line:
            return reader.error(
                f"{name!r} is declared after this, on line {self.later[name]}.",
                "move that statement up.",
                token,
            )
        known = ", ".join([*self.sources, *self.derived])
        return reader.error(f"There is no source {name!r}.", f"there are {known or 'none'}.", token)

    def scope_of(self, reader: Reader, token: SqlToken, name: str, alias: str = "") -> Scope:
        """Return the scope of the rows of one name."""
        if name in self.derived:
            return self.scope_of_derived(self.derived[name], alias)
        found = self.find_source(reader, token, name)
        # A column of the name is a STRUCT, whose part is meant.
        called = [each for each in (alias or name,) if each not in found.columns]
        return Scope((name,), dict.fromkeys(called, ""), frozenset({found.source.event_time}))

    def scope_of_union(self, reader: Reader, named: Sequence[tuple[SqlToken, str]]) -> Scope:
        """Return the scope of the rows of several sources."""
        found = [self.find_source(reader, token, name) for token, name in named]
        times = frozenset(each.source.event_time for each in found)
        return Scope(tuple(name for _, name in named), {}, times)

    def scope_of_derived(self, derived: Derived, alias: str = "") -> Scope:
        """Return the scope of derived rows."""
        own = {alias or derived.name: ""}
        if isinstance(derived, Changelog):
            return Scope((derived.name,), own, frozenset())
        if isinstance(derived, Pattern):
            return Scope((derived.name,), own, frozenset({self.sources[derived.of].source.event_time}))
        prefixes = find_prefixes(derived)
        time = self.sources[derived.left].source.event_time
        return Scope(
            (derived.name,), {**own, **prefixes}, frozenset({f"{prefixes_left(derived)}{time}", time})
        )


def prefixes_left(joined: Join | AsOf) -> str:
    """Return what the columns of left rows begin with."""
    return "left_" if joined.left == joined.right else f"{joined.left}_"


def find_prefixes(joined: Join | AsOf) -> dict[str, str]:
    """Return what columns of joined rows begin with, by the word before the dot."""
    if joined.left == joined.right:
        return {"left": "left_", "right": "right_"}
    return {joined.left: f"{joined.left}_", joined.right: f"{joined.right}_"}


def is_plain_name(found: SqlText) -> bool:
    """Return whether an expression is one name."""
    return len(found.tokens) == 1 and found.token.kind in (TokenKind.WORD, TokenKind.NAME)
