"""The oracle: which rows of a list count, and what they present, window by window."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import duckdb

from seamline.lake.engine.windowing import format_grouping_set
from seamline.model.compile.compiled_pipeline import GROUPING, NUMBER, CompiledView
from seamline.model.measures import Place
from seamline.model.protocol.seam import NOTHING, Side, windows_over
from seamline.model.time.intervals import EPOCH
from seamline.model.time.zone_clock import MICROSECOND
from seamline.testing.folding import present_measures


@dataclass(frozen=True)
class Row:
    """One row of a view's input: a record, or an item of it."""

    epoch: int
    """The epoch that read the record."""
    place: Place
    """The event time, partition, offset, and the item's position."""
    topic: str
    """The topic's name."""
    interval: str
    """The interval's id."""
    id: tuple[Any, ...]
    """The values of the event id; empty if none is declared."""
    keys: Mapping[str, Any]
    """Values by key column."""
    values: tuple[Any, ...]
    """The inputs of the measures, in their order."""
    counts: bool
    """Whether the view selects it."""
    sign: int = 1
    """-1 for a row that withdraws an equal one."""


def filter_counted_rows(
    view: CompiledView,
    rows: Iterable[Row],
    cuts: Mapping[str, int],
    until: int,
    side: Side,
    *,
    unique: bool,
) -> list[Row]:
    """Keep the rows that count up to an epoch, ``cuts`` by interval: below the cut the first of each event id.

    Above it all do; ``unique`` says if there is an event id.
    """
    found: list[Row] = []
    seen: set[tuple[Any, ...]] = set()
    records: set[tuple[Any, ...]] = set()
    for row in sorted(rows, key=lambda each: (each.epoch, *each.place[1:3], each.topic, each.place[3])):
        below = row.epoch <= cuts.get(row.interval, NOTHING) and side is not Side.SPEED
        if row.epoch > until or (side is Side.BATCH and not below):
            continue
        if view.counts and not below and row.interval in cuts and side is not Side.SPEED:
            continue
        if below and unique:
            name, record = (row.interval, *row.id), (row.epoch, *row.place[1:3], row.topic)
            if name in seen and record not in records:
                continue
            seen.add(name)
            records.add(record)
        if row.counts:
            found.append(row)
    return assign_count_windows(view, found) if view.counts else found


def present_oracle_rows(
    con: duckdb.DuckDBPyConnection,
    view: CompiledView,
    rows: Sequence[Row],
    cuts: Mapping[str, int],
    side: Side = Side.MERGED,
) -> list[dict[str, Any]]:
    """Fold the rows of every grouping set, key and window, and present the measures."""
    found = []
    for names in view.sets:
        groups: dict[tuple[Any, ...], list[Row]] = {}
        for row in rows:
            groups.setdefault(tuple(row.keys[name] for name in names), []).append(row)
        for key, mine in groups.items():
            instants = [(row.place[0] - EPOCH) // MICROSECOND for row in mine]
            for (start, end), places in windows_over(view.windows, instants).items():
                inside = [mine[place] for place in places]
                batch = sum(
                    row.sign
                    for row in inside
                    if row.epoch <= cuts.get(row.interval, NOTHING) and side is not Side.SPEED
                )
                counted = sum(row.sign for row in inside)
                if not counted:
                    continue
                found.append(
                    {
                        **({GROUPING: format_grouping_set(names)} if view.grouped else {}),
                        **{each.name: None for each in view.keys},
                        **dict(zip(names, key, strict=True)),
                        "window_start": EPOCH + start * MICROSECOND,
                        "window_end": None if end is None else EPOCH + end * MICROSECOND,
                        **present_measures(con, view, [(row.place, row.values, row.sign) for row in inside]),
                        "batch_part": batch,
                        "speed_part": counted - batch,
                    }
                )
    return found


def assign_count_windows(view: CompiledView, rows: Iterable[Row]) -> list[Row]:
    """Assign each row, in the order in which they came, the number of its count window."""
    found, seen = [], Counter[tuple[Any, ...]]()
    for row in rows:
        key = (row.interval, *row.keys.values())
        found.append(replace(row, keys={**row.keys, NUMBER: seen[key] // view.counts + 1}))
        seen[key] += 1
    return found


def to_nearest_double(view: CompiledView, row: Mapping[str, Any], column: str) -> Any:
    """Return a presented value; of a DECIMAL the nearest double, as of a total that no DECIMAL holds."""
    texts = [row[name] for name, source in view.beyond.items() if source.name == column]
    value = Decimal(texts[0]) if any(texts) else row[column]
    return float(value) if isinstance(value, Decimal) else value
