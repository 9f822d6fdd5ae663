"""Carts that were bought, and those that were left for half an hour: a function with a state and a timer."""

from seamline import (
    Batch,
    KafkaSource,
    Pipeline,
    Process,
    Rule,
    Stream,
    Tumbling,
    View,
    Watermark,
    avg,
    count,
    sum,
)

abandoned_carts = Pipeline(
    name="abandoned_carts",
    source=[
        KafkaSource(
            name="clicks",
            topic="examples.cart_clicks",
            schema="""
                visitor STRING NOT NULL, shop STRING NOT NULL, total DECIMAL(10,2) NOT NULL, bought BOOLEAN NOT NULL,
                at TIMESTAMP NOT NULL
            """,
            event_time="at",
            rules=[Rule("no negative total", "total >= 0")],
            watermark=Watermark(out_of_orderness="1 minute", idle_after="30 seconds"),
        ),
    ],
    derive=[
        Process(
            "carts", of="clicks", by="seamline.local.carts:Carts", keys=["shop", "visitor"], begin="1 day"
        ),
    ],
    views=[
        View(
            "by_shop",
            of="carts",
            keys=["shop", "kind"],
            window=Tumbling("1 hour"),
            measures={"carts": count(), "worth": sum("total"), "clicks": avg("clicks")},
        ),
        View(
            "hesitant",
            of="carts.hesitant",
            keys=["shop"],
            window=Tumbling("1 hour"),
            measures={"carts": count()},
        ),
        View("clicks", of="clicks", keys=["shop"], window=Tumbling("1 hour"), measures={"clicks": count()}),
    ],
    stream=Stream(trigger="1 second", edge_every="10 seconds"),
    defaults="2026-11",
    batch=Batch(interval="1 day", start="2024-01-01"),
    tags=["example"],
)
