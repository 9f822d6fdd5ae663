"""Amounts per merchant and currency, exact to the cent, each payment once."""

from seamline import (
    Batch,
    Expect,
    ExpectationSuite,
    ExpectRows,
    KafkaSource,
    Pipeline,
    Rule,
    Stream,
    Tumbling,
    View,
    Watermark,
    count,
    max,
    sum,
)

payments = Pipeline(
    name="payments",
    source=KafkaSource(
        topic="examples.payments",
        schema="""
            payment_id STRING NOT NULL, merchant STRING NOT NULL, currency STRING NOT NULL,
            amount DECIMAL(12,2) NOT NULL, paid_at TIMESTAMP NOT NULL
        """,
        event_time="paid_at",
        event_id=["payment_id"],
        watermark=Watermark(out_of_orderness="1 minute", idle_after="1 minute"),
    ),
    rules=[Rule("known currency", "currency IN ('EUR', 'JPY', 'USD')")],
    views=[
        View(
            "by_merchant",
            keys=["merchant", "currency"],
            window=Tumbling("1 hour"),
            measures={"payments": count(), "amount": sum("amount"), "largest": max("amount")},
            expect=[
                Expect("payments", at_least=1),
                Expect("amount", not_null=True),
                Expect("currency", in_set=["EUR", "JPY", "USD"]),
                ExpectRows(max_change=0.5),
                ExpectationSuite(
                    [
                        {
                            "type": "expect_column_pair_values_a_to_be_greater_than_b",
                            "kwargs": {"column_A": "amount", "column_B": "largest", "or_equal": True},
                        },
                    ]
                ),
            ],
        )
    ],
    stream=Stream(trigger="1 second", edge_every="10 seconds"),
    defaults="2026-11",
    batch=Batch(interval="1 day", start="2024-01-01"),
    tags=["example"],
)
