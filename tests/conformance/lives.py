"""What happens in any life that is lived on both engines: broken records, crashes, restarts and builds."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from seamline import Pipeline

START = datetime(2026, 1, 5, tzinfo=UTC)
Step = tuple[str, Any]
"""What is done, and with what."""


def spoil(dice: random.Random, records: Sequence[object]) -> list[object]:
    """Return records, sometimes with one behind them that is no JSON."""
    return [*records, *dice.choices([b"{bad"], k=dice.randint(0, 1))]


def happen(dice: random.Random) -> Iterator[Step]:
    """Yield an epoch or a crash, sometimes a restart, and sometimes a build of what is dirty."""
    yield dice.choice(
        [("epoch", True), ("epoch", True), ("epoch", False), ("crash", "master"), ("crash", "ledger")]
    )
    if dice.random() < 0.3:
        yield "restart", None
    if dice.random() < 0.4:
        yield "dirty", None


def end(topics: Iterable[str], **columns: object) -> Iterator[Step]:
    """Yield a record of the next day to each topic, an epoch, and a build of what is dirty."""
    for topic in topics:
        yield "send", (topic, [{**columns, "at": (START + timedelta(days=1)).isoformat()}])
    yield "epoch", True
    yield "dirty", None


def with_ids(pipeline: Pipeline) -> Pipeline:
    """Return a pipeline whose records have event ids that are known for a day."""
    sources = [
        replace(each, schema=f"id INT, {each.schema}", event_id=["id"], dedup_within="1 day")
        for each in pipeline.sources
    ]
    return replace(pipeline, source=sources)
