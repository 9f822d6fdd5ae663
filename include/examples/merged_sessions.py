"""Visits of people who go from the web to the app and back: both sources' rows of a visitor in one call."""

from seamline import Batch, CoGroup, KafkaSource, Pipeline, Stream, Tumbling, View, Watermark, avg, count, sum

MARK = Watermark(out_of_orderness="1 minute", idle_after="30 seconds")

merged_sessions = Pipeline(
    name="merged_sessions",
    source=[
        KafkaSource(
            name="web",
            topic="examples.web_pages",
            schema="visitor STRING NOT NULL, page STRING NOT NULL, at TIMESTAMP NOT NULL",
            event_time="at",
            watermark=MARK,
        ),
        KafkaSource(
            name="app",
            topic="examples.app_screens",
            schema="user STRING NOT NULL, screen STRING NOT NULL, seen_at TIMESTAMP NOT NULL",
            event_time="seen_at",
            watermark=MARK,
        ),
    ],
    derive=[
        CoGroup(
            "visits",
            left="web",
            right="app",
            on={"visitor": "user"},
            window=Tumbling("1 hour"),
            by="seamline.local.visits:Visits",
            left_columns=["at"],
            right_columns=["seen_at"],
        ),
    ],
    views=[
        View(
            "by_kind",
            of="visits",
            keys=["kind"],
            window=Tumbling("1 hour"),
            measures={"visits": count(), "views": sum("views"), "mean_seconds": avg("seconds")},
        ),
        View(
            "moves",
            of="visits",
            keys=["visitor"],
            window=Tumbling("1 hour"),
            where="kind = 'both'",
            measures={"visits": count(), "moves": sum("moves")},
        ),
        View("pages", of="web", keys=["page"], window=Tumbling("1 hour"), measures={"views": count()}),
    ],
    stream=Stream(trigger="1 second", edge_every="10 seconds"),
    defaults="2026-11",
    batch=Batch(interval="1 hour", start="2024-01-01"),
    tags=["example"],
)
