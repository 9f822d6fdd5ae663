"""Orders with the prices that were valid when they were placed, however late a price is reported."""

from seamline import (
    AsOf,
    Batch,
    KafkaSource,
    Pipeline,
    Rule,
    Stream,
    Tumbling,
    View,
    Watermark,
    avg,
    count,
    sum,
)

LATE = Watermark(out_of_orderness="10 seconds", idle_after="1 minute")

priced_orders = Pipeline(
    name="priced_orders",
    source=[
        KafkaSource(
            name="orders",
            topic="examples.counter_orders",
            schema="sku STRING NOT NULL, shop STRING NOT NULL, ordered_at TIMESTAMP NOT NULL",
            event_time="ordered_at",
            watermark=LATE,
        ),
        KafkaSource(
            name="prices",
            topic="examples.counter_prices",
            schema="sku STRING NOT NULL, price DECIMAL(10,2) NOT NULL, valid_from TIMESTAMP NOT NULL",
            event_time="valid_from",
            rules=[Rule("positive price", "price > 0")],
            watermark=LATE,
        ),
    ],
    derive=[AsOf("priced", left="orders", versions="prices", on={"sku": "sku"}, at_most="1 day")],
    views=[
        View(
            "by_shop",
            of="priced",
            keys=["orders_shop"],
            window=Tumbling("1 hour"),
            measures={
                "orders": count(),
                "worth": sum("prices_price"),
                "mean_price": avg("prices_price"),
                "without_a_price": count(where="prices_sku IS NULL"),
            },
        ),
        View(
            "by_price",
            of="priced",
            keys=["orders_sku", "prices_price"],
            window=Tumbling("1 hour"),
            measures={"orders": count()},
        ),
        View("orders", of="orders", keys=["shop"], window=Tumbling("1 hour"), measures={"orders": count()}),
    ],
    stream=Stream(trigger="1 second", edge_every="10 seconds"),
    defaults="2026-11",
    batch=Batch(interval="1 hour", start="2024-01-01"),
    tags=["example"],
)
