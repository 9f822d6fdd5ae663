"""Decision of an epoch: which keys are in so many of its rows that people should know of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

FEWEST_ROWS = 1_000
"""Rows of an epoch of which shares say something."""
HOT = 0.1
"""The share of an epoch's rows from which a key is hot."""


@dataclass(frozen=True)
class HotKey:
    """A key, and how many rows of an epoch have it."""

    key: str
    """Its values, as people write them: "shop=north, gate=3"."""
    rows: int
    """Rows of the epoch that a view counts for it."""


@dataclass(frozen=True)
class KeyShare:
    """A hot key, and its share of an epoch's rows."""

    key: str
    """Its values, as people write them."""
    share: float
    """Above 1 where the view makes several rows of a record."""


def add_hot_keys(one: HotKey, other: HotKey) -> HotKey:
    """Return the hotter of two parts' keys; panes of one key are in several parts, whose rows are added up."""
    if one.key == other.key:
        return HotKey(one.key, one.rows + other.rows)
    return max(one, other, key=lambda each: each.rows)


def list_hot_keys(
    before: Mapping[str, KeyShare], found: Mapping[str, HotKey], rows: int
) -> Mapping[str, KeyShare]:
    """List the hot keys by view id after an epoch of so many accepted rows; one of few changes nothing."""
    if rows < FEWEST_ROWS:
        return before
    shares = {view: KeyShare(each.key, each.rows / rows) for view, each in found.items()}
    return {view: each for view, each in shares.items() if each.share >= HOT}
