"""What the accounts of a bank hold, by country: a table of PostgreSQL, read from its change events."""

from seamline import (
    Batch,
    Changelog,
    Debezium,
    Global,
    KafkaSource,
    Pipeline,
    Stream,
    Tumbling,
    View,
    Watermark,
    count,
    sum,
)

account_balances = Pipeline(
    name="account_balances",
    source=[
        KafkaSource(
            name="changes",
            topic="bank.public.accounts",
            format=Debezium(decimals="string"),
            schema="id BIGINT NOT NULL, country STRING NOT NULL, balance DECIMAL(12,2) NOT NULL, opened DATE, "
            "__op STRING, __deleted BOOLEAN, __source_lsn BIGINT",
            key=["id"],
            order="__source_lsn",
            event_time="_kafka_timestamp",
            watermark=Watermark(out_of_orderness="10 seconds", idle_after="5 seconds"),
            select={"change": "coalesce(__op, 'tombstone')"},
        )
    ],
    derive=[Changelog("accounts", of="changes")],
    views=[
        View(
            "by_country",
            of="accounts",
            keys=["country"],
            window=Global(),
            measures={"accounts": count(), "balance": sum("balance")},
        ),
        View("by_change", of="changes", keys=["change"], window=Tumbling("1 hour"), measures={"n": count()}),
    ],
    stream=Stream(trigger="200 milliseconds"),
    defaults="2026-11",
    batch=Batch(interval="1 day", start="2026-01-01"),
)
