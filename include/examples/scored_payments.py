"""Payments whose risk another system is asked for: what it answers, and where it does not."""

from seamline import (
    Ask,
    Batch,
    Expect,
    KafkaSource,
    Pipeline,
    Rule,
    Stream,
    Tumbling,
    View,
    Watermark,
    count,
    count_true,
    max,
    quantile,
    sum,
)

scored_payments = Pipeline(
    name="scored_payments",
    source=[
        KafkaSource(
            name="payments",
            topic="examples.scored_payments",
            schema="""
                user STRING NOT NULL, country STRING NOT NULL, amount DECIMAL(10,2) NOT NULL,
                paid_at TIMESTAMP NOT NULL
            """,
            event_time="paid_at",
            rules=[Rule("positive amount", "amount > 0")],
            watermark=Watermark(out_of_orderness="1 minute", idle_after="30 seconds"),
        ),
    ],
    derive=[
        Ask(
            "scored",
            of="payments",
            by="seamline.local.scores:ask",
            request={"user": "user", "amount": "amount"},
            columns=["risk DOUBLE"],
            when="amount > 100",
            timeout="2 seconds",
            at_once=64,
            retries=2,
            side={"unscored": "scored_error IS NOT NULL"},
        ),
    ],
    views=[
        View(
            "by_risk",
            of="scored",
            keys=["payments_country"],
            window=Tumbling("1 hour"),
            measures={
                "scored": count(),
                "risky": count_true("scored_risk >= 0.8"),
                "highest": max("scored_risk"),
                "asked": count("left"),
                "unanswered": count("unmatched"),
            },
            expect=[Expect("highest", at_least=0, at_most=1)],
        ),
        View(
            "by_country",
            of="payments",
            keys=["country"],
            window=Tumbling("1 hour"),
            measures={"payments": count(), "amount": sum("amount")},
        ),
        View(
            "asks",
            of="scored_answers",
            keys=[],
            window=Tumbling("1 hour"),
            measures={
                "answers": count(),
                "tries": max("scored_tries"),
                "seconds": quantile("scored_seconds", 0.95),
            },
        ),
    ],
    stream=Stream(trigger="1 second", edge_every="10 seconds"),
    defaults="2026-11",
    batch=Batch(interval="1 day", start="2024-01-01"),
    tags=["example"],
)
