"""A target in memory: transactions that may fail before or after they happen, and what a reader of it has seen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from seamline.lake.read.sinks.row_comparison import HELD
from seamline.lake.read.sinks.shown_rows import StartRange
from seamline.model.errors import Fenced, KafkaUnavailable
from seamline.model.protocol.sinks.positions import SinkPosition
from seamline.sinks.kafka_rows import encode_rows
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
    reads: list[Callable[[], object]] = field(default_factory=list)
    """What happens in the middle of the next readings."""


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

    @contextmanager
    def open_reading(self) -> Iterator[MemoryReading]:
        """Read the store beside who writes it."""
        yield MemoryReading(self.store)

    def spell_places(self, rows: pa.Table) -> pa.Array:
        """Write what tells rows apart."""
        return pa.array(encode_rows(rows.select(PLACES)), pa.string())

    def spell_values(self, rows: pa.Table) -> pa.Array:
        """Write rows."""
        return pa.array(encode_rows(rows), pa.string())

    def delete_held(self, held: pa.Table, position: SinkPosition) -> None:
        """Delete rows by their handles."""
        self.require_own()
        for handle in held["handle"].to_pylist():
            [place] = [each for each in self.store.rows if repr(each) == handle]
            self.change(dict(zip(PLACES, place, strict=True)), None)


class MemoryReading:
    """A look at a store, half of whose rows are read before anything else happens."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def find_position(self) -> SinkPosition | None:
        """Read the position."""
        return None if self.store.position is None else SinkPosition.from_json(self.store.position)

    def read_rows(self, span: StartRange) -> Iterator[pa.Table]:
        """Read rows one by one."""
        places = [*self.store.rows]
        for number, place in enumerate(places):
            if number == len(places) // 2 and self.store.reads:
                self.store.reads.pop(0)()
            if place in self.store.rows:
                yield spell_held(place, self.store.rows[place])

    def read_row(self, row: pa.Table) -> pa.Table:
        """Read one row."""
        [place] = [tuple(each.values()) for each in row.select(PLACES).to_pylist()]
        found = self.store.rows.get(place)
        return HELD.empty_table() if found is None else spell_held(place, found)


def spell_held(place: Place, row: dict[str, Any]) -> pa.Table:
    """Write one row as a reading has it."""
    names = dict(zip(PLACES, place, strict=True))
    spelled = [encode_rows(pa.Table.from_pylist([each])) for each in (names, row)]
    columns = [spelled[0], [repr(place)], [names["window_start"]], spelled[1]]
    return pa.table(
        [pa.array(each, kind.type) for each, kind in zip(columns, HELD, strict=True)], schema=HELD
    )


def unlike(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row without what says of when it is."""
    return {name: each for name, each in row.items() if name not in ("epoch", "manifest_version")}


def index_rows(rows: pa.Table) -> dict[Place, dict[str, Any]]:
    """Return rows by place, without what says of when they are."""
    return {tuple(row[name] for name in PLACES): unlike(row) for row in rows.to_pylist()}
