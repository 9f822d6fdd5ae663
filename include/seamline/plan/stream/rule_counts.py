"""How many rules of a topic are in force, and how many there is no room for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RuleCount:
    """The rules of a version, by whether records meet them."""

    in_force: int
    """Rules that records meet."""
    waiting: int
    """Rules beyond the bounds of a table of rules: the newest of all, until there is room."""


def describe_waiting_rules(name: str, count: int) -> str:
    """Say that rules of a look-up wait for room."""
    said = "1 rule is" if count == 1 else f"{count:,} rules are"
    return (
        f"{said} not in force in look-up {name}: there are more than 10,000 of a key, 1,000 without one, or 1,000 "
        "different conditions. Tombstones make room."
    )
