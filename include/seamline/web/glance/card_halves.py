"""What is said of a pipeline on one line, in two halves: what its stream does, and what its answers are worth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from seamline.lake.log.epoch_log import newest_epochs
from seamline.lake.publish.derived_changes import find_reach_ahead
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.audits_table import audits_of
from seamline.lake.tables.builds_table import read_newest_build
from seamline.lake.tables.comparisons_table import list_unexplained
from seamline.lake.tables.view_versions import find_served_version, find_view
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.errors import SeamlineError, TooSlow
from seamline.plan.spelling import format_quantity
from seamline.plan.wording.observation_text import FINE
from seamline.serve.completeness import list_completeness
from seamline.serve.trust.interval_shades import Shade, find_certified_end, shade_cells
from seamline.supervisor.observe import observe
from seamline.web.glance.table_versions import TableVersions
from seamline.web.requested_pipeline import open_requested_pipeline

EPOCHS = 60
"""Epochs of the line of rows."""
OWING = (Shade.DIRTY, Shade.NEVER)
STREAM, ANSWERS = "stream", "answers"
DUE: Mapping[str, float] = {STREAM: 4.0, ANSWERS: 20.0}
"""After how many seconds each half of a card is read again."""
Key = tuple[str, str, str]
"""A half of a card, the place of the pipeline's definition and tables, and its name."""


@dataclass(frozen=True)
class StreamHalf:
    """What a pipeline's stream does; None means unknown."""

    actual: str = "unknown"
    """A word for people."""
    desired: str = "unknown"
    """What it should do: a word for people."""
    fine: bool = False
    """Whether it is in order."""
    lag: int | None = None
    """Records not read at the driver's last heartbeat."""
    rate: float | None = None
    """Rows accepted in a second, over the last minute."""
    rows: tuple[int, ...] = ()
    """Rows of the newest epochs, oldest first."""
    epoch: int | None = None
    """The newest committed epoch."""
    committed: datetime | None = None
    """When it was committed."""
    watermark: datetime | None = None
    """The stream's, at its newest epoch."""
    alarms: tuple[str, ...] = ()
    """Sentences."""


@dataclass(frozen=True)
class AnswersHalf:
    """What a pipeline's published answers are worth; None means unknown."""

    through: datetime | None = None
    """The instant up to which every served view is certified."""
    shades: Mapping[Shade, int] | None = None
    """Intervals of served views by what they are."""
    debts: int = 0
    """How many intervals are dirty or were never built."""
    built: datetime | None = None
    """When the newest attempt to build intervals ended."""
    cost: float | None = None
    """How many seconds that took."""
    alarms: tuple[str, ...] = ()
    """Sentences."""
    seen: TableVersions | None = None
    """What it was read of; None where that failed."""


def load_half(key: Key, before: StreamHalf | AnswersHalf | None) -> StreamHalf | AnswersHalf:
    """Load half of a card, unless what it was read of is as before; what cannot be read is an alarm."""
    half, _, name = key
    try:
        return read_stream(name) if half == STREAM else read_new_answers(name, before)
    except TooSlow:
        # It is the request that had no more time.
        raise
    except SeamlineError as error:
        return StreamHalf(alarms=(str(error),)) if half == STREAM else AnswersHalf(alarms=(str(error),))
    except Exception as error:  # noqa: BLE001 - one pipeline's trouble is not the others'
        said = f"{type(error).__name__}: {error}"
        return StreamHalf(alarms=(said,)) if half == STREAM else AnswersHalf(alarms=(said,))


def read_stream(name: str) -> StreamHalf:
    """Read what a pipeline's stream and its alerts say."""
    pipeline, layout = open_requested_pipeline(name)
    seen = observe(name, layout, pipeline, broker=False)
    return StreamHalf(
        actual=seen.actual.value,
        desired=str(seen.desired),
        fine=seen.actual in FINE,
        lag=seen.lag.records,
        rate=seen.rows_per_second,
        rows=tuple(each.rows for each in newest_epochs(layout, EPOCHS)),
        epoch=seen.epoch,
        committed=seen.committed_at,
        watermark=seen.watermark,
        alarms=(
            *(f"{each.kind}: {each.subject}: {each.message}" for each in seen.alerts),
            *(f"hole, not decided: {hole}" for hole in seen.holes or ()),
            *(f"sink {each.name}: {each.found_wrong}" for each in seen.sinks or () if each.wrong),
        ),
    )


def read_new_answers(name: str, before: StreamHalf | AnswersHalf | None) -> AnswersHalf:
    """Read what a pipeline's tables say of its answers, if they say anything new."""
    pipeline, layout = open_requested_pipeline(name)
    if isinstance(before, AnswersHalf) and before.seen is not None and before.seen.are_still(pipeline):
        return before
    # Asked for before the tables are read: what comes meanwhile is read the next time.
    seen = TableVersions.of(pipeline, layout)
    return replace(read_answers(pipeline, layout), seen=seen)


def read_answers(pipeline: CompiledPipeline, layout: Layout) -> AnswersHalf:
    """Read what a pipeline's tables say of its answers."""
    epochs = newest_epochs(layout, 1)
    known = shade_cells(
        list_completeness(pipeline, layout),
        pipeline.grid,
        pipeline.timed.watermark_at(epochs[-1]) if epochs else None,
        find_reach_ahead(pipeline, layout),
    )
    # A version that is built beside the served one answers nobody yet.
    answering = [
        find_served_version(pipeline, layout, find_view(pipeline, layout, view.name))[1]
        for view in pipeline.views
    ]
    served = {view.id: [each for each in known if each.cell.is_of(view)] for view in answering}
    ends = [find_certified_end(some, pipeline.grid) for some in served.values()]
    alarms = [
        f"{view.name} {interval}: {alarm}"
        for view in answering
        for interval, alarm in list_unexplained(layout, view.id).items()
    ]
    for audit in audits_of(layout, 1):
        alarms += [f"audit: {finding}" for finding in audit.findings]
    if failed := sum(each.shade is Shade.FAILED for each in known):
        alarms.append(f"{format_quantity(failed, 'interval')} with a certificate that did not pass")
    build = read_newest_build(layout)
    return AnswersHalf(
        through=min((end for end in ends if end), default=None) if all(ends) else None,
        shades=Counter(each.shade for some in served.values() for each in some),
        debts=len({each.cell.interval for each in known if each.shade in OWING}),
        built=build.at if build else None,
        cost=build.seconds if build else None,
        alarms=tuple(alarms),
    )
