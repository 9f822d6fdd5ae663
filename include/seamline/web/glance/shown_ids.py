"""What an open page shows, as an id: another one means that something else is to be seen. Clocks are no part of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b

from seamline.lake.storage.layout import Layout
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.errors import TooSlow
from seamline.supervisor.observe import observe
from seamline.web.glance.overview import Card
from seamline.web.glance.table_versions import TABLES, read_version
from seamline.web.requested_pipeline import open_requested_pipeline


def identify_cards(cards: Sequence[Card]) -> str:
    """Identify what the page of all pipelines shows."""
    return digest(
        *((each.name, each.stream, each.answers and replace(each.answers, seen=None)) for each in cards)
    )


def identify_requested_pipeline(name: str) -> str:
    """Identify what the pages of a pipeline show; what keeps them from showing it is as good as anything."""
    try:
        return identify_pipeline(*open_requested_pipeline(name))
    except TooSlow:
        # It is the look that had no more time.
        raise
    except Exception as error:  # noqa: BLE001 - the page says it
        return digest(type(error), str(error))


def identify_pipeline(pipeline: CompiledPipeline, layout: Layout) -> str:
    """Identify what its graph, stream and sinks are at, by its tables and by what its processes said last.

    Kafka is not asked: of the lag it is what the driver said.
    """
    slices = [layout.slices(view) for view in pipeline.views if view.derived]
    versions = [read_version(root) for root in (*map(layout.table, TABLES), *slices)]
    seen = observe(pipeline.name, layout, pipeline, broker=False)
    sinks = [replace(each, behind_seconds=None) for each in seen.sinks or ()]
    said = (seen.desired, seen.actor, seen.reason, seen.actual, seen.restarts, seen.strikes, seen.last_error)
    told = (seen.lag.records, seen.behind, seen.holes, seen.silenced, seen.unread, seen.alerts, seen.asks)
    return digest(pipeline.definition, versions, said, told, sinks, seen.hot, seen.indexed, seen.refusal)


def digest(*parts: object) -> str:
    """Make an id."""
    return blake2b(repr(parts).encode(), digest_size=8).hexdigest()
