"""Orders and their shipments, which may come days later: what is shipped, and what still waits."""

from seamline import Batch, Join, KafkaSource, Pipeline, Rule, Stream, Tumbling, View, Watermark, count, sum

LATE = Watermark(out_of_orderness="1 hour", idle_after="1 minute")

orders_shipped = Pipeline(
    name="orders_shipped",
    source=[
        KafkaSource(
            name="orders",
            topic="examples.shop_orders",
            schema="""
                order_id STRING NOT NULL, shop STRING NOT NULL, amount DECIMAL(10,2) NOT NULL,
                ordered_at TIMESTAMP NOT NULL
            """,
            event_time="ordered_at",
            rules=[Rule("positive amount", "amount > 0")],
            watermark=LATE,
        ),
        KafkaSource(
            name="shipments",
            topic="examples.shipments",
            schema="order_id STRING NOT NULL, carrier STRING, shipped_at TIMESTAMP NOT NULL",
            event_time="shipped_at",
            watermark=LATE,
        ),
    ],
    derive=[
        Join("shipped", left="orders", right="shipments", on={"order_id": "order_id"}, after="14 days"),
    ],
    views=[
        View(
            "by_shop",
            of="shipped",
            keys=["orders_shop"],
            window=Tumbling("1 day"),
            measures={
                "orders": count("left"),
                "shipped": count("matched"),
                "waiting": count("unmatched"),
                "parcels": count(),
                "by_rail": count("shipments_carrier", where="shipments_carrier = 'rail'"),
            },
        ),
        View(
            "turnover",
            of="orders",
            keys=["shop"],
            window=Tumbling("1 day"),
            measures={"amount": sum("amount"), "orders": count()},
        ),
    ],
    stream=Stream(trigger="1 second", edge_every="10 seconds"),
    defaults="2026-11",
    batch=Batch(interval="1 day", start="2024-01-01"),
    tags=["example"],
)
