"""Events of two services joined by token, a minute before or after each other."""

from seamline import Batch, Join, KafkaSource, Pipeline, Stream, Tumbling, View, Watermark, count, sum

LATE = Watermark(out_of_orderness="10 seconds", idle_after="1 minute")

interval_join = Pipeline(
    name="interval_join",
    source=[
        KafkaSource(
            name="gateway",
            topic="examples.gateway",
            schema="token STRING NOT NULL, route STRING NOT NULL, at TIMESTAMP NOT NULL",
            event_time="at",
            watermark=LATE,
        ),
        KafkaSource(
            name="billing",
            topic="examples.billing",
            schema="token STRING NOT NULL, charged_cents BIGINT NOT NULL, at TIMESTAMP NOT NULL",
            event_time="at",
            watermark=LATE,
        ),
    ],
    derive=[
        Join(
            "charged",
            left="gateway",
            right="billing",
            on={"token": "token"},
            before="60 seconds",
            after="60 seconds",
        ),
    ],
    views=[
        View(
            "by_route",
            of="charged",
            keys=["gateway_route"],
            window=Tumbling("1 minute"),
            measures={
                "charges": count(),
                "cents": sum("billing_charged_cents"),
                "requests": count("left"),
                "uncharged": count("unmatched"),
            },
        ),
        View(
            "pairs",
            of="charged",
            keys=["gateway_token", "billing_charged_cents"],
            window=Tumbling("1 minute"),
            measures={"n": count()},
        ),
        View(
            "events",
            of=["gateway", "billing"],
            keys=[],
            window=Tumbling("1 minute"),
            measures={"n": count()},
        ),
    ],
    stream=Stream(trigger="1 second", edge_every="10 seconds"),
    defaults="2026-11",
    batch=Batch(interval="1 hour", start="2024-01-01"),
    tags=["example"],
)
