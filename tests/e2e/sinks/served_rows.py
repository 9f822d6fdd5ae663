"""Rows of a serving table as a sink is given them, made up by seed, with all that is ugly in them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from seamline import (
    Batch,
    Global,
    KafkaSource,
    Pipeline,
    Tumbling,
    View,
    avg,
    collect_distinct,
    count,
    first,
    max,
    quantiles,
    sum,
    top,
)
from seamline.lake.read.serving_table import serving_schema
from seamline.model.compile.compiled_pipeline import CompiledView, compile_pipeline
from seamline.model.definition.windows import Window
from seamline.model.measures import Measure
from seamline.model.protocol.sinks.positions import SinkPosition
from seamline.sinks.target import ChangeBatch

START = datetime(2026, 11, 30, tzinfo=UTC)
SCHEMA = (
    "shop STRING, day DATE, till INT, amount DECIMAL(12,2), weight DOUBLE, note STRING, picture BINARY, "
    "sold_at TIMESTAMP NOT NULL"
)
KEYS = ("shop", "day", "till")
MEASURES: dict[str, Measure] = {
    "n": count(),
    "total": sum("amount"),
    "mean": avg("weight"),
    "latest": max("sold_at"),
    "note": first("note"),
    "levels": quantiles("weight", [0.5, 0.9]),
    "notes": top("note", 3),
    "tills": collect_distinct("till"),
}
TEXTS = (
    "",
    "a",
    'say "so"',
    "two\nlines",
    "back\\slash",
    "a:b%c",
    "nul\0byte",
    "\N{SYMBOL FOR NULL}0",
    "{tag}",
    "ü",
    "\\.",
)
HOURS = Tumbling("1 hour")
NUMBERS = (0.0, -0.0, 1.5, 1e300, float("nan"), float("inf"), float("-inf"), None)


def make_view(
    keys: Sequence[str] = KEYS,
    measures: dict[str, Measure] = MEASURES,
    window: Window = HOURS,
    grouping_sets: Sequence[Sequence[str]] = (),
    schema: str = SCHEMA,
) -> CompiledView:
    """Declare a view of a shop, and compile it."""
    made = Pipeline(
        name="shop",
        source=KafkaSource(topic="sales", schema=schema, event_time="sold_at"),
        views=[View("by_till", keys=keys, window=window, measures=measures, grouping_sets=grouping_sets)],
        batch=Batch(interval="1 day", start="2026-01-01"),
    )
    return compile_pipeline(made).views[0]


class ServedRows:
    """What a serving table shows: rows by what tells them apart, each version made of the one before."""

    def __init__(self, view: CompiledView, seed: int, rows: int) -> None:
        self.view, self.random = view, random.Random(seed)
        self.schema = serving_schema(view)
        self.version, self.rows = 0, {}
        self.add(rows)

    def add(self, rows: int) -> None:
        """Add rows that there were not."""
        wanted = len(self.rows) + rows
        while len(self.rows) < wanted:
            row = self.make_row()
            self.rows.setdefault(self.identify(row), row)

    def make_row(self) -> dict[str, Any]:
        """Make up a row."""
        pick = self.random
        start = START + timedelta(hours=pick.randrange(48))
        endless = isinstance(self.view.window, Global)
        known: dict[str, Any] = {
            "grouping": pick.choice(["shop", "shop, day, till"]),
            "shop": pick.choice([*TEXTS, None, f"shop {pick.randrange(10**6)}"]),
            "day": pick.choice([None, START.date(), START.date() - timedelta(days=pick.randrange(99))]),
            "till": pick.choice([None, pick.randrange(-5, 10**6)]),
            "window_start": start,
            "window_end": None if endless else start + timedelta(hours=1),
            "interval": start.strftime("%Y-%m-%dT00:00:00Z"),
            **self.make_numbers(),
        }
        return {field.name: known.get(field.name) for field in self.schema}

    def make_numbers(self) -> dict[str, Any]:
        """Make up what changes."""
        pick = self.random
        texts = pick.sample(TEXTS, 2)
        return {
            "n": pick.randrange(10**12),
            "total": pick.choice([None, Decimal(pick.randrange(-(10**14), 10**14)).scaleb(-2)]),
            "mean": pick.choice(NUMBERS),
            "latest": pick.choice([None, START + timedelta(microseconds=pick.randrange(10**9))]),
            "note": pick.choice([None, *TEXTS]),
            "levels": pick.choice([None, [], [1.5, pick.choice(NUMBERS)]]),
            "notes": [{"value": text, "count": pick.randrange(9), "error": 0} for text in texts],
            "tills": {"values": [1, None, pick.randrange(99)], "truncated": False},
            "batch_part": pick.randrange(9),
            "speed_part": pick.randrange(9),
            "epoch": self.version,
            "manifest_version": self.version,
            "certified": pick.random() < 0.5,
            "complete": pick.random() < 0.5,
            "phase": pick.choice(["early", "complete", "late"]),
        }

    def identify(self, row: dict[str, Any]) -> tuple[Any, ...]:
        """Return what tells a row from others."""
        names = [each for each in ("grouping", *KEYS, "window_start", "window_end") if each in row]
        return tuple(row[name] for name in names)

    def change(self, upserts: int, deletions: int, added: int = 0) -> ChangeBatch:
        """Show another version, and return in what it differs."""
        self.version += 1
        chosen = self.random.sample(sorted(self.rows, key=repr), upserts + deletions)
        gone = [self.rows.pop(each) for each in chosen[:deletions]]
        for each in chosen[deletions:]:
            self.rows[each] = {**self.rows[each], **self.make_numbers()}
        before = set(self.rows)
        self.add(added)
        news = [self.rows[each] for each in [*chosen[deletions:], *(self.rows.keys() - before)]]
        return ChangeBatch(self.as_table(news), self.as_deletions(gone), None)

    def as_table(self, rows: Iterable[dict[str, Any]] | None = None) -> pa.Table:
        """Return rows as they are in the serving table; all of them, unless some are given."""
        return pa.Table.from_pylist(list(self.rows.values() if rows is None else rows), schema=self.schema)

    def as_deletions(self, rows: Iterable[dict[str, Any]]) -> pa.Table:
        """Return what tells rows apart, as a sink is told that they are gone."""
        names = ("grouping", *(key.name for key in self.view.keys), "window_start", "window_end")
        kept = [name for name in names if name in self.schema.names]
        table = self.as_table(rows).select(kept)
        return table.rename_columns(["_grouping" if name == "grouping" else name for name in kept])

    def whole(self, size: int = 10**9) -> list[ChangeBatch]:
        """Return all rows as the difference from nothing, so many in a batch."""
        table = self.as_table()
        none = self.as_deletions([])
        return [ChangeBatch(table.slice(at, size), none, None) for at in range(0, table.num_rows, size)]

    @property
    def position(self) -> SinkPosition:
        """Where a target stands that shows this version."""
        return SinkPosition(self.view.fingerprint, self.version)

    def on_the_way(self, rows: int) -> SinkPosition:
        """Where a target stands that has so many rows of the first version."""
        return SinkPosition(self.view.fingerprint, -1, self.version, rows)


def with_fingerprint(view: CompiledView, fingerprint: str) -> CompiledView:
    """Return another version of a view."""
    return replace(view, fingerprint=fingerprint)
