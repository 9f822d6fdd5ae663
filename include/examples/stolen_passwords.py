"""Accounts that somebody got into after several wrong passwords: a pattern over the rows of each account."""

from seamline import (
    Batch,
    KafkaSource,
    Pattern,
    Pipeline,
    Stream,
    Tumbling,
    View,
    Watermark,
    count,
    count_true,
    sum,
)

stolen_passwords = Pipeline(
    name="stolen_passwords",
    source=[
        KafkaSource(
            name="logins",
            topic="examples.logins",
            schema="account STRING NOT NULL, country STRING NOT NULL, ok BOOLEAN NOT NULL, at TIMESTAMP NOT NULL",
            event_time="at",
            watermark=Watermark(out_of_orderness="1 minute", idle_after="30 seconds"),
        ),
    ],
    derive=[
        Pattern(
            "stolen",
            of="logins",
            keys=["account"],
            steps="wrong{3,} right",
            within="10 minutes",
            define={"wrong": "NOT ok", "right": "ok"},
            select={"country": "right.country", "tries": "count(wrong)", "since": "first(wrong.at)"},
        ),
    ],
    views=[
        View(
            "by_country",
            of="stolen",
            keys=["country"],
            window=Tumbling("1 hour"),
            measures={"accounts": count(), "tries": sum("tries")},
        ),
        View(
            "accounts",
            of="stolen",
            keys=["account", "since", "tries"],
            window=Tumbling("1 hour"),
            measures={"n": count()},
        ),
        View(
            "logins",
            of="logins",
            keys=["country"],
            window=Tumbling("1 hour"),
            measures={"logins": count(), "right": count_true("ok")},
        ),
    ],
    stream=Stream(trigger="1 second", edge_every="10 seconds"),
    defaults="2026-11",
    batch=Batch(interval="1 hour", start="2024-01-01"),
    tags=["example"],
)
