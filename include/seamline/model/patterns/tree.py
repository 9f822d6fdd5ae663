"""Steps that were read: how rows follow each other."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """A row for which a step's condition holds."""

    number: int
    """The step's place among the names."""


@dataclass(frozen=True)
class Sequence:
    """Parts that follow each other."""

    parts: tuple[Tree, ...]
    """At least one."""


@dataclass(frozen=True)
class Choice:
    """Alternatives, the preferred one first."""

    parts: tuple[Tree, ...]
    """At least two."""


@dataclass(frozen=True)
class Repeat:
    """A part that is repeated."""

    part: Tree
    """The part."""
    least: int
    """How often at least."""
    most: int | None
    """How often at most; None for any number."""
    reluctant: bool
    """Whether fewer are preferred to more."""


Tree = Step | Sequence | Choice | Repeat


def may_be_empty(tree: Tree) -> bool:
    """Return whether a tree matches no rows, too."""
    match tree:
        case Sequence(parts):
            return all(map(may_be_empty, parts))
        case Choice(parts):
            return any(map(may_be_empty, parts))
        case Repeat(part, least):
            return least == 0 or may_be_empty(part)
    return False
