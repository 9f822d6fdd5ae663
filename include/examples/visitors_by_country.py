"""How many people were here in the last five minutes, per country and in all."""

from seamline import Batch, Expect, KafkaSource, Pipeline, Sliding, Stream, View, Watermark, count, distinct

visitors_by_country = Pipeline(
    name="visitors_by_country",
    source=KafkaSource(
        topic="examples.page_views",
        schema="visitor STRING NOT NULL, geo STRING, path STRING, at TIMESTAMP NOT NULL",
        event_time="at",
        watermark=Watermark(out_of_orderness="1 minute", idle_after="1 minute"),
    ),
    select={"country": "coalesce(geo, '??')"},
    views=[
        View(
            "last_5_minutes",
            keys=["country"],
            grouping_sets=[["country"], []],
            window=Sliding("5 minutes", "1 minute"),
            measures={"visitors": distinct("visitor"), "views": count()},
            expect=[Expect("visitors", at_least=1)],
        )
    ],
    stream=Stream(trigger="1 second", edge_every="10 seconds"),
    defaults="2026-11",
    batch=Batch(interval="1 day", start="2024-01-01"),
    tags=["example"],
)
