"""Numbers in order, to see whether one of them is missing or counted twice."""

from seamline import Batch, KafkaSource, Pipeline, Stream, Tumbling, View, Watermark, count, max, sum

pulse = Pipeline(
    name="pulse",
    source=KafkaSource(
        connection="kafka_default",
        topic="pulse",
        schema="id BIGINT NOT NULL, at TIMESTAMP NOT NULL",
        event_time="at",
        watermark=Watermark(out_of_orderness="1 second", idle_after="5 seconds"),
    ),
    views=[
        View(
            "by_day",
            keys=[],
            window=Tumbling("1 day"),
            measures={"n": count(), "total": sum("id"), "highest": max("id")},
        )
    ],
    batch=Batch(interval="1 day", start="2024-01-01"),
    stream=Stream(memory="1g", edge_every="2 seconds"),
)
