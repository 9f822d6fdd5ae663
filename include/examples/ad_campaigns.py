"""Views of ads per campaign and ten seconds: the question of the Yahoo streaming benchmark."""

from seamline import (
    Batch,
    Expect,
    KafkaSource,
    Lookup,
    Pipeline,
    Rule,
    Stream,
    Tumbling,
    View,
    Watermark,
    count,
    max,
)

ad_campaigns = Pipeline(
    name="ad_campaigns",
    source=KafkaSource(
        topic="examples.ad_events",
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
            "views_by_campaign",
            keys=["campaign"],
            window=Tumbling("10 seconds"),
            measures={"views": count(), "last_view": max("event_time")},
            expect=[Expect("views", at_least=1)],
        )
    ],
    stream=Stream(trigger="1 second", edge_every="10 seconds"),
    defaults="2026-11",
    batch=Batch(interval="1 hour", start="2024-01-01"),
    tags=["example"],
)
