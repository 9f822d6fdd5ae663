"""What an open page shows, as an id: another one means that something else is to be seen. Clocks are no part of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any

from seamline.asking.positions import read_position
from seamline.lake.imports.import_plans import load_hindrances
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import read_cached_table
from seamline.lake.tables.claims_table import Claims
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.errors import TooSlow
from seamline.plan.stream.ask_counts import describe_silence
from seamline.plan.stream.observation import Observation
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
    """Identify what its parts are at, by its tables and by what its processes said last.

    Kafka is not asked: of the lag it is what the driver said.
    """
    slices = [layout.slices(view) for view in pipeline.views if view.derived]
    versions = [read_version(root) for root in (*map(layout.table, TABLES), *slices)]
    seen = observe(pipeline.name, layout, pipeline, broker=False)
    sinks = [replace(each, behind_seconds=None) for each in seen.sinks or ()]
    said = (seen.desired, seen.actor, seen.reason, seen.actual, seen.restarts, seen.strikes, seen.last_error)
    told = (seen.lag.records, seen.behind, seen.holes, seen.silenced, seen.unread, seen.alerts)
    waiting = (list_questions(pipeline, layout, seen), load_hindrances(layout), list_claimed(layout))
    return digest(
        pipeline.definition, versions, said, told, waiting, sinks, seen.hot, seen.indexed, seen.refusal
    )


def tell_page(pipeline: CompiledPipeline, layout: Layout, every: int = 5) -> Mapping[str, Any]:
    """Tell a page's template where the page hears of changes, and the id of what it is about to be written from."""
    return {
        "live": every,
        "changes": f"/pipelines/{pipeline.name}/changes",
        "seen": identify_pipeline(pipeline, layout),
    }


def list_questions(pipeline: CompiledPipeline, layout: Layout, seen: Observation) -> list[object]:
    """List how far questions are, and how that goes; the process that asks says so every second."""
    counts = [
        (
            name,
            replace(each, at="", oldest=0.0, away=float(each.away > 0)),
            bool(describe_silence(each, seen.at)),
        )
        for name, each in (seen.asks or {}).items()
    ]
    return [counts, [read_position(layout, each.id) for each in pipeline.asks]]


def list_claimed(layout: Layout) -> object:
    """List which runs have claimed which intervals; that they still hold them is no news."""
    return read_cached_table(
        layout.table("claims"),
        "held",
        lambda table: [(each.run, each.process, each.spans) for each in Claims(table).read()],
    )


def digest(*parts: object) -> str:
    """Make an id."""
    return blake2b(repr(parts).encode(), digest_size=8).hexdigest()
