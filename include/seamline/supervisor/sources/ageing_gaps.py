"""What Kafka may delete unread soon: upkeep asks and notes it, and every look at the stream reads that."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from seamline.lake.status.marks import leave_mark, read_mark
from seamline.lake.storage.layout import Layout
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.errors import SeamlineError
from seamline.model.protocol.holes import Gap
from seamline.model.protocol.offsets import Lane, Vector
from seamline.supervisor.sources.source_losses import (
    format_ageing_gap,
    format_unknown_losses,
    list_ageing_gaps,
)

AGEING = "ageing"
"""The mark of the last look at the topics."""


def note_ageing_gaps(
    compiled: CompiledPipeline, layout: Layout, *, now: datetime, env: Mapping[str, str] = os.environ
) -> list[str]:
    """Look what Kafka may delete unread soon, note it, and describe it, or why that is not known, in a line each."""
    try:
        found = list_ageing_gaps(compiled, layout, now=now, env=env)
    except SeamlineError as error:
        return [format_unknown_losses(error)]
    rows = [[each.lane.topic_id, each.lane.partition, each.start, each.end] for each in found]
    leave_mark(layout, AGEING, now=now, gaps=rows)
    return [format_ageing_gap(each) for each in found]


def read_ageing_gaps(
    layout: Layout, read_positions: Callable[[Iterable[Lane]], Vector]
) -> tuple[str, ...] | None:
    """Describe what was noted last and is not read yet; None if nobody has looked."""
    mark = read_mark(layout, AGEING)
    if mark is None:
        return None
    gaps = [Gap(Lane(topic, partition), start, end) for topic, partition, start, end in mark[1]["gaps"]]
    held = read_positions(each.lane for each in gaps) if gaps else {}
    left = [replace(each, start=max(each.start, held.get(each.lane, each.start))) for each in gaps]
    return tuple(
        f"{each}: unread, and older than half of what the topic keeps"
        for each in left
        if each.end is None or each.start < each.end
    )
