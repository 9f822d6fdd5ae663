"""Which rows repeat an event id, for the dull engine: by a look at every row that came before."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pyarrow as pa

from seamline.kernel.marks import PLACE, marks_schema
from seamline.kernel.validation import REPEATED
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.record_rules import SELECTED, SOURCE

Seen = dict[tuple[Any, ...], list[datetime]]
"""The event times of each interval and event id."""


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
        at = row["_event_time"]
        source = next(each for each in pipeline.definition.sources if each.name == row.get(SOURCE, ""))
        id = (pipeline.grid.of(at).id, source.name, *(row[name] for name in source.event_id))
        if any(oldest is None or each >= oldest for each in seen.get(id, [])):
            places.append({name: row[name] for name in PLACE.names})
        else:
            seen.setdefault(id, []).append(at)
    marks = pa.Table.from_pylist(places, PLACE).append_column(REPEATED, pa.array([True] * len(places)))
    schema = marks_schema(pipeline)
    for own in list(schema)[len(marks.column_names) :]:
        marks = marks.append_column(own, pa.nulls(len(places), own.type))
    return marks
