"""Which rows repeat an event id, for the dull engine: by a look at every row that came before."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import pyarrow as pa

from seamline.kernel.marks import PLACE, marks_schema
from seamline.kernel.validation import REPEATED
from seamline.lake.engine.accepted_rows import READ_ORDER
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.processes.compiled_process import Derived
from seamline.model.compile.record_rules import SELECTED, SOURCE
from seamline.model.time.intervals import Interval

Record = dict[str, Any]
Seen = dict[tuple[Any, ...], list[datetime]]
"""The event times of each interval and event id."""


def identify_row(pipeline: CompiledPipeline, row: Record) -> tuple[Any, ...]:
    """Return the interval and the event id of a row."""
    source = next(each for each in pipeline.definition.sources if each.name == row.get(SOURCE, ""))
    interval = pipeline.grid.of(row["_event_time"]).id
    return (interval, source.name, *(row[name] for name in source.event_id))


def note_rows(pipeline: CompiledPipeline, accepted: pa.Table, seen: Seen) -> None:
    """Note the rows that count in ``seen``."""
    for row in accepted.to_pylist():
        if row[SELECTED]:
            seen.setdefault(identify_row(pipeline, row), []).append(row["_event_time"])


def count_joined_copies(
    pipeline: CompiledPipeline, derived: Derived, accepted: Iterable[pa.Table], reach: Interval
) -> int | None:
    """Count the rows in reach that are joined and repeat an earlier id of their interval; None without ids."""
    if not pipeline.event_id:
        return None
    rows = [row for table in accepted for row in table.to_pylist() if row[SELECTED]]
    rows.sort(key=lambda row: [row[name] for name in READ_ORDER])
    ids = [identify_row(pipeline, row) for row in rows]
    return sum(
        row["_event_time"] in reach and id in ids[:at]
        for at, (row, id) in enumerate(zip(rows, ids, strict=True))
        if row[SOURCE] in [side.source for side in derived.sides]
    )


def mark_repeated_rows(
    pipeline: CompiledPipeline, accepted: pa.Table, seen: Seen, mark: datetime | None
) -> pa.Table:
    """Mark the rows whose id an earlier one of their interval has, not further than the horizon behind ``mark``.

    Those that are the first of their id are noted in ``seen``.
    """
    within = pipeline.dedup_within
    oldest = mark - within if mark and within is not None else None
    places = []
    order = [(name, "ascending") for name in ("_partition", "_offset", "_topic")]
    for row in accepted.sort_by(order).to_pylist():
        if not row[SELECTED]:
            continue
        at, id = row["_event_time"], identify_row(pipeline, row)
        if any(oldest is None or each >= oldest for each in seen.get(id, [])):
            places.append({name: row[name] for name in PLACE.names})
        else:
            seen.setdefault(id, []).append(at)
    marks = pa.Table.from_pylist(places, PLACE).append_column(REPEATED, pa.array([True] * len(places)))
    schema = marks_schema(pipeline)
    for own in list(schema)[len(marks.column_names) :]:
        marks = marks.append_column(own, pa.nulls(len(places), own.type))
    return marks
