"""Every pipeline on one line: its stream, how far it is certified, what is owed and what is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from seamline.lake.publish.derived_changes import find_reach_ahead
from seamline.lake.tables.audits_table import audits_of
from seamline.lake.tables.comparisons_table import comparisons_of
from seamline.lake.tables.view_versions import find_served_version, find_view
from seamline.model.errors import SeamlineError
from seamline.plan.wording.observation_text import FINE
from seamline.serve.completeness import list_completeness
from seamline.serve.trust.interval_shades import Shade, find_certified_end, shade_cells
from seamline.supervisor.observe import observe
from seamline.web.access import open_requested_pipeline


@dataclass(frozen=True)
class Card:
    """A pipeline at a glance; None means unknown."""

    name: str
    """The pipeline's."""
    actual: str
    """What the stream does: a word for people."""
    desired: str
    """What the stream should do: a word for people."""
    fine: bool
    """Whether the stream is in order."""
    lag: int | None
    """Records not read at the driver's last heartbeat."""
    epoch: int | None
    """The newest committed epoch."""
    committed: datetime | None
    """When it was committed."""
    watermark: datetime | None
    """The stream's, at its newest epoch."""
    through: datetime | None
    """The instant up to which every served view is certified."""
    debts: int
    """How many intervals are dirty or were never built."""
    alarms: tuple[str, ...]
    """Sentences."""


def load_pipeline_cards(names: Sequence[str]) -> list[Card]:
    """Load the cards of pipelines; Kafka is not asked, so that a broker that is down keeps nobody waiting."""
    return [load_card_or_alarm(name) for name in names]


def load_card_or_alarm(name: str) -> Card:
    """Load a pipeline's card; what cannot be read is an alarm."""
    try:
        return build_pipeline_card(name)
    except SeamlineError as error:
        return Card(name, "unknown", "unknown", False, None, None, None, None, None, 0, (str(error),))


def build_pipeline_card(name: str) -> Card:
    """Build a card from what the pipeline's tables, stream and alarms say."""
    pipeline, layout = open_requested_pipeline(name)
    seen = observe(name, layout, pipeline, broker=False)
    known = shade_cells(
        list_completeness(pipeline, layout),
        pipeline.grid,
        seen.watermark,
        find_reach_ahead(pipeline, layout),
    )
    # A version that is built beside the served one answers nobody yet.
    answering = [
        find_served_version(pipeline, layout, find_view(pipeline, layout, view.name))[1]
        for view in pipeline.views
    ]
    ends = [
        find_certified_end([each for each in known if each.cell.is_of(view)], pipeline.grid)
        for view in answering
    ]
    alarms = [f"{each.kind}: {each.subject}: {each.message}" for each in seen.alerts]
    alarms += [f"hole, not decided: {hole}" for hole in seen.holes or ()]
    for view in answering:
        newest = {each.interval: each for each in comparisons_of(layout, view.id)}
        alarms += [f"{view.name} {each.interval}: {each.alarm}" for each in newest.values() if each.alarm]
    for audit in audits_of(layout, 1):
        alarms += [f"audit: {finding}" for finding in audit.findings]
    failed = sum(each.shade is Shade.FAILED for each in known)
    if failed:
        alarms.append(f"{failed} intervals have a certificate that did not pass")
    owed = {each.cell.interval for each in known if each.shade in (Shade.DIRTY, Shade.NEVER)}
    return Card(
        name=name,
        actual=seen.actual.value,
        desired=str(seen.desired),
        fine=seen.actual in FINE,
        lag=seen.lag.records,
        epoch=seen.epoch,
        committed=seen.committed_at,
        watermark=seen.watermark,
        through=min((end for end in ends if end), default=None) if all(ends) else None,
        debts=len(owed),
        alarms=tuple(alarms),
    )
