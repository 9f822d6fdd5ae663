"""The shipped pipeline `live_campaigns`, with keys and values of Redis computed by hand."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from tests.unit.examples import declared

from seamline.lake.read.serving_table import serving_schema
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.sinks.redis.row_texts import RowTexts
from seamline.sinks.row_shape import RowShape

LIVE = declared("live_campaigns")
HEAD = "ads:{live_campaigns.by_campaign_redis}"


def event(ad: int, at: str, kind: str = "view") -> dict[str, Any]:
    """Make an event of an ad."""
    return {"user_id": "u1", "ad_id": ad, "event_type": kind, "event_time": f"2026-03-01T{at}Z"}


def test_counts_are_found_by_keys_that_a_reader_can_write(scenario: Any) -> None:
    """Ads 40 to 49 are campaign 4's; a reader of Redis knows a campaign and a time, and no more."""
    # ad        40v    49v   41c        45v
    # second    0.0----9.99--5.0---|----10.0
    story = scenario(LIVE, now="2026-03-01T09:01Z")
    story.send(
        event(40, "09:00:00"),
        event(49, "09:00:09.990"),
        event(41, "09:00:05", "click"),
        event(45, "09:00:10"),
    )
    story.epoch()
    view = compile_pipeline(LIVE).views[0]
    answers = [dict(row) for row in story.answer()]
    rows = pa.Table.from_pylist(
        [{field.name: row.get(field.name) for field in serving_schema(view)} for row in answers],
        schema=serving_schema(view),
    )
    texts = RowTexts(HEAD, RowShape.of(view), ends=False)
    keys, values = texts.spell_keys(rows).to_pylist(), texts.spell_values(rows).to_pylist()
    assert {key: json.loads(value)["views"] for key, value in zip(keys, values, strict=True)} == {
        f"{HEAD}:4:2026-03-01T09:00:00Z": 2,
        f"{HEAD}:4:2026-03-01T09:00:10Z": 1,
    }
