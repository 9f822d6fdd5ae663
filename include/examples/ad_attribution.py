"""Clicks put down to the impressions they follow within an hour, and impressions that nobody clicked."""

from seamline import (
    Batch,
    Expect,
    Join,
    KafkaSource,
    Pipeline,
    Rule,
    Stream,
    Tumbling,
    View,
    Watermark,
    count,
    ratio,
    sum,
)

ad_attribution = Pipeline(
    name="ad_attribution",
    source=[
        KafkaSource(
            name="shown",
            topic="examples.impressions",
            schema="""
                impression STRING NOT NULL, site STRING NOT NULL, campaign INT, cost_micros BIGINT NOT NULL,
                shown_at TIMESTAMP NOT NULL
            """,
            event_time="shown_at",
            rules=[Rule("no negative cost", "cost_micros >= 0")],
            watermark=Watermark(out_of_orderness="10 seconds", idle_after="30 seconds"),
        ),
        KafkaSource(
            name="clicked",
            topic="examples.clicks",
            schema="impression STRING NOT NULL, clicked_at TIMESTAMP NOT NULL",
            event_time="clicked_at",
            watermark=Watermark(out_of_orderness="10 seconds", idle_after="30 seconds"),
        ),
    ],
    derive=[
        Join("attributed", left="shown", right="clicked", on={"impression": "impression"}, after="1 hour"),
    ],
    views=[
        View(
            "by_site",
            of="attributed",
            keys=["shown_site"],
            window=Tumbling("1 minute"),
            measures={
                "clicks": count(),
                "shown": count("left"),
                "clicked": count("matched"),
                "never_clicked": count("unmatched"),
                "rate": ratio("clicked", "shown"),
            },
            expect=[Expect("rate", at_most=1)],
        ),
        View(
            "cost_by_campaign",
            of="shown",
            keys=["campaign"],
            window=Tumbling("1 hour"),
            measures={"cost_micros": sum("cost_micros"), "shown": count()},
        ),
    ],
    stream=Stream(trigger="1 second", edge_every="10 seconds"),
    defaults="2026-11",
    batch=Batch(interval="1 hour", start="2024-01-01"),
    tags=["example"],
)
