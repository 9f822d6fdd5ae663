"""Views of ads per campaign and ten seconds, in Redis a second later: the whole of the Yahoo streaming benchmark."""

from seamline import (
    Batch,
    KafkaSource,
    Lookup,
    Pipeline,
    RedisSink,
    Rule,
    Stream,
    Tumbling,
    View,
    Watermark,
    count,
    max,
)

live_campaigns = Pipeline(
    name="live_campaigns",
    source=KafkaSource(
        topic="examples.live_ad_events",
        schema="""
            user_id STRING NOT NULL, page_id STRING, ad_id INT NOT NULL, ad_type STRING, event_type STRING NOT NULL,
            event_time TIMESTAMP NOT NULL, ip_address STRING
        """,
        event_time="event_time",
        watermark=Watermark(out_of_orderness="10 seconds", idle_after="30 seconds"),
    ),
    lookups=[
        Lookup(
            "ads",
            "seamline.local.generators.ad_campaigns:ads",
            on={"ad_id": "ad_id"},
            columns=["campaign INT"],
        )
    ],
    select={"campaign": "ads_campaign"},
    rules=[Rule("known ad", "campaign IS NOT NULL")],
    where="event_type = 'view'",
    views=[
        View(
            "by_campaign",
            keys=["campaign"],
            window=Tumbling("10 seconds"),
            measures={"views": count(), "last_view": max("event_time")},
        )
    ],
    sinks=[RedisSink("by_campaign", prefix="ads:", expire="1 day")],
    stream=Stream(trigger="500 milliseconds", serve_every="1 second", edge_every="10 seconds"),
    defaults="2026-11",
    batch=Batch(interval="1 hour", start="2024-01-01"),
    tags=["example"],
)
