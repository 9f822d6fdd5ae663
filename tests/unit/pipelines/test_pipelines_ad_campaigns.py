"""The shipped pipeline `ad_campaigns`, with answers computed by hand."""

from __future__ import annotations

import pytest
from tests.unit.examples import declared

CAMPAIGNS = declared("ad_campaigns")


def event(ad, at, kind="view", **more):
    return {"user_id": "u1", "ad_id": ad, "event_type": kind, "event_time": f"2026-03-01T{at}Z", **more}


def seen(story, side="merged"):
    return [
        (row["campaign"], f"{row['window_start']:%H:%M:%S}", row["views"], f"{row['last_view']:%S.%f}"[:5])
        for row in story.answer(side=side)
    ]


def test_views_are_counted_per_campaign_and_ten_seconds(scenario):
    """Ads 40 to 49 are campaign 4's; clicks are kept, and in no view."""
    # ad        40v    49v   50v   41c        45v
    # second    0.0----9.99--9.99--5.0---|----10.0
    story = scenario(CAMPAIGNS, now="2026-03-01T09:01Z")
    story.send(
        event(40, "09:00:00"),
        event(49, "09:00:09.990"),
        event(50, "09:00:09.990"),
        event(41, "09:00:05", "click"),
        event(45, "09:00:10"),
    )
    held = story.epoch()
    assert dict(held.accepted) == {"2026-03-01T09:00:00Z": 5}
    assert seen(story) == [
        (4, "09:00:00", 2, "09.99"),
        (5, "09:00:00", 1, "09.99"),
        (4, "09:00:10", 1, "10.00"),
    ]


def test_a_late_view_counts_at_once_and_in_batch_when_it_is_dirty(scenario):
    """The hour was certified without it; nobody waits for the next run to see it."""
    story = scenario(CAMPAIGNS, now="2026-03-01T10:05Z")
    story.send(event(40, "09:59:59"), event(40, "10:00:10"))
    story.epoch()
    assert f"{story.watermark:%H:%M:%S}" == "10:00:00"
    assert story.batch("2026-03-01T09:00Z") == ["2026-03-01T09:00:00Z"]

    story.send(event(41, "09:59:51"))
    assert dict(story.epoch().late) == {"2026-03-01T09:00:00Z": 1}
    assert seen(story)[0] == (4, "09:59:50", 2, "59.00")
    assert seen(story, "batch") == [(4, "09:59:50", 1, "59.00")]
    assert story.batch() == ["2026-03-01T09:00:00Z"]
    assert seen(story, "batch") == [(4, "09:59:50", 2, "59.00")]


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (event(None, "09:00:00"), "missing field ad_id"),
        (event("forty", "09:00:00"), "mistyped field ad_id"),
        (event(1000, "09:00:00"), "rule known ad"),
        (event(40, "09:00:00") | {"event_time": "2026-03-09T09:00Z"}, "event time in the future"),
        ('{"user_id": "u1", "ad_', "malformed json"),
    ],
)
def test_what_is_no_ad_event_is_refused(scenario, record, reason):
    """It is kept raw, with the reason, and the events beside it count."""
    story = scenario(CAMPAIGNS, now="2026-03-01T09:01Z")
    story.send(record, event(40, "09:00:00"))
    story.epoch()
    assert [each.reason for each in story.quarantine()] == [reason]
    assert seen(story) == [(4, "09:00:00", 1, "00.00")]
