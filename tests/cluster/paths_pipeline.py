"""The numbers again, in every way Spark takes: in parts by id, in windows of events, joined with themselves."""

from seamline import (
    Batch,
    CountWindow,
    Join,
    KafkaSource,
    Pipeline,
    Stream,
    Tumbling,
    View,
    Watermark,
    count,
    sum,
)

paths = Pipeline(
    name="paths",
    source=[
        KafkaSource(
            name="numbers",
            connection="kafka_default",
            topic="pulse",
            schema="id BIGINT NOT NULL, at TIMESTAMP NOT NULL",
            event_time="at",
            event_id=["id"],
            dedup_within="3 days",
            select={"worth": "id * 2"},
            watermark=Watermark(out_of_orderness="1 second", idle_after="5 seconds"),
        ),
    ],
    derive=[Join("twins", left="numbers", right="numbers", on={"id": "id"}, before="1 hour", after="1 hour")],
    views=[
        View(
            "by_day",
            of="numbers",
            keys=[],
            window=Tumbling("1 day"),
            measures={"n": count(), "worth": sum("worth")},
        ),
        View("by_id", of="numbers", keys=["id"], window=Tumbling("1 day"), measures={"n": count()}),
        View("tens", of="numbers", keys=[], window=CountWindow(10), measures={"n": count()}),
        View("twins_by_day", of="twins", keys=[], window=Tumbling("1 day"), measures={"n": count("matched")}),
    ],
    batch=Batch(interval="1 day", start="2024-01-01"),
    stream=Stream(memory="1g", edge_every="2 seconds", parts=2),
)
