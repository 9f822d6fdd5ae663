"""How many changes belong in a number of a table, from which side, and the changes themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.joins.original_changes import read_change_rows
from seamline.lake.read.answer_ways import IntervalAnswer
from seamline.lake.storage.layout import Layout
from seamline.model.compile.changes.compiled_changelog import SIGN
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.time.intervals import parse_moment


def count_change_rows(
    pipeline: CompiledPipeline,
    view: CompiledView,
    layout: Layout,
    sought: pa.Table,
    key: Mapping[str, Any],
    intervals: Mapping[str, IntervalAnswer],
) -> tuple[dict[str, tuple[int, int]], pa.Table]:
    """Count, per interval, what changes up to its cut come to, and those above it; return these with the changes."""
    until = max((way.complete_to for way in intervals.values()), default=-1)
    rows = read_change_rows(pipeline, view, layout, sought, key, until)
    counted, kept = {}, []
    for id, way in intervals.items():
        own = pc.equal(rows["_interval"], pa.scalar(parse_moment(id), rows["_interval"].type))
        mine = rows.filter(pc.and_(own, pc.less_equal(rows["_epoch"], way.complete_to)))
        signs, below = mine[SIGN], pc.less_equal(mine["_epoch"], way.cut)
        batch, speed = (pc.sum(signs.filter(part)).as_py() or 0 for part in (below, pc.invert(below)))
        counted[id] = batch, speed
        kept.append(mine)
    return counted, pa.concat_tables(kept) if kept else rows.slice(0, 0)
