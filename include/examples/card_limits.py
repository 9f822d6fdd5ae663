"""Card payments against limits that come from a topic and change while the stream runs."""

from seamline import (
    Batch,
    Expect,
    KafkaSource,
    Lookup,
    Pipeline,
    Stream,
    Tumbling,
    View,
    Watermark,
    count,
    sum,
)

card_limits = Pipeline(
    name="card_limits",
    source=[
        KafkaSource(
            name="payments",
            topic="examples.card_payments",
            schema="""
                card STRING NOT NULL, country STRING NOT NULL, channel STRING NOT NULL,
                amount DECIMAL(10,2) NOT NULL, paid_at TIMESTAMP NOT NULL
            """,
            event_time="paid_at",
            watermark=Watermark(out_of_orderness="1 minute", idle_after="30 seconds"),
            lookups=[
                Lookup(
                    "limits",
                    of="limits",
                    on={"country": "country"},
                    columns=["name", "above DECIMAL(10,2)"],
                    where="amount > limits_above",
                    condition="when",
                    every="exceeded",
                )
            ],
        ),
        KafkaSource(
            name="limits",
            topic="examples.card_limits",
            schema="""
                country STRING NOT NULL, name STRING NOT NULL, above DECIMAL(10,2) NOT NULL, when STRING NOT NULL,
                active BOOLEAN
            """,
            event_time="_kafka_timestamp",
            watermark=Watermark(out_of_orderness="1 minute", idle_after="30 seconds"),
            where="active IS NOT FALSE",
        ),
    ],
    views=[
        View(
            "by_limit",
            of="payments",
            keys=["country", "limit"],
            window=Tumbling("1 hour"),
            explode={"limit": "exceeded"},
            measures={"payments": count(), "amount": sum("amount")},
            expect=[Expect("payments", at_least=1)],
        ),
        View(
            "by_country",
            of="payments",
            keys=["country"],
            window=Tumbling("1 hour"),
            measures={
                "payments": count(),
                "within": count(where="size(exceeded) = 0"),
                "amount": sum("amount"),
            },
        ),
    ],
    stream=Stream(trigger="1 second", edge_every="10 seconds"),
    defaults="2026-11",
    batch=Batch(interval="1 day", start="2024-01-01"),
    tags=["example"],
)
