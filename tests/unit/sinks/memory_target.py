"""A target in memory: transactions that may fail before or after they happen, and what a reader of it has seen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from seamline.model.errors import Fenced, KafkaUnavailable
from seamline.model.protocol.sinks.positions import SinkPosition
from seamline.sinks.target import ChangeBatch

PLACES = ("customer", "window_start", "window_end")
Place = tuple[Any, ...]


@dataclass
class Store:
    """What the other system has."""

    rows: dict[Place, dict[str, Any]] = field(default_factory=dict)
    position: str | None = None
    token: int = 0
    seen: list[tuple[Place, dict[str, Any] | None]] = field(default_factory=list)
    """Each change of a row, in order."""
    fails: list[str] = field(default_factory=list)
    """What becomes of the next writes: "before", "after" or "" for nothing."""
    transactions: int = 0


class MemoryTarget:
    """One writer of a store."""

    def __init__(self, store: Store) -> None:
        self.store, self.token = store, -1

    def take_over(self) -> SinkPosition | None:
        """Fence all others."""
        self.store.token += 1
        self.token = self.store.token
        return None if self.store.position is None else SinkPosition.from_json(self.store.position)

    def write(self, batches: Iterable[ChangeBatch], position: SinkPosition) -> None:
        """Write in one step, or fail as told."""
        given = [*batches]
        self.require_own()
        fate = self.store.fails.pop(0) if self.store.fails else ""
        if fate == "before":
            raise KafkaUnavailable("no reply, and nothing is written")
        for batch in given:
            for row in batch.upserts.to_pylist():
                self.change(row, row)
            for row in batch.deletions.to_pylist():
                self.change(row, None)
        self.store.position = position.to_json()
        self.store.transactions += 1
        if fate == "after":
            raise KafkaUnavailable("no reply, and it is written")

    def change(self, place: dict[str, Any], row: dict[str, Any] | None) -> None:
        """Put a row in the place of another, or nothing."""
        key = tuple(place[name] for name in PLACES)
        self.store.seen.append((key, row))
        if row is None:
            self.store.rows.pop(key, None)
        else:
            self.store.rows[key] = row

    def clear(self) -> None:
        """Forget everything."""
        self.require_own()
        self.store.rows.clear()
        self.store.position = None

    def require_own(self) -> None:
        """Raise Fenced if another has taken over."""
        if self.token != self.store.token:
            raise Fenced("another writes")

    def close(self) -> None:
        """Do nothing."""


def unlike(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row without what says of when it is."""
    return {name: each for name, each in row.items() if name not in ("epoch", "manifest_version")}


def index_rows(rows: pa.Table) -> dict[Place, dict[str, Any]]:
    """Return rows by place, without what says of when they are."""
    return {tuple(row[name] for name in PLACES): unlike(row) for row in rows.to_pylist()}
