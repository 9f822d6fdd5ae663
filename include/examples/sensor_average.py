"""Average per sensor and minute, with sensors that fall silent and sensors that report late."""

from seamline import (
    Batch,
    Expect,
    KafkaSource,
    Pipeline,
    Rule,
    Stream,
    Tumbling,
    View,
    Watermark,
    avg,
    count,
    max,
    min,
)

sensor_average = Pipeline(
    name="sensor_average",
    source=KafkaSource(
        topic="examples.sensor_readings",
        schema="sensor STRING NOT NULL, at TIMESTAMP NOT NULL, celsius DOUBLE",
        event_time="at",
        watermark=Watermark(out_of_orderness="30 seconds", idle_after="2 minutes"),
        very_late="1 hour",
    ),
    rules=[Rule("plausible", "celsius IS NULL OR celsius BETWEEN -60D AND 60D")],
    views=[
        View(
            "by_minute",
            keys=["sensor"],
            window=Tumbling("1 minute"),
            measures={
                "reports": count(),
                "readings": count("celsius"),
                "mean": avg("celsius"),
                "least": min("celsius"),
                "most": max("celsius"),
            },
            expect=[Expect("mean", at_least=-60, at_most=60)],
        )
    ],
    stream=Stream(trigger="1 second", edge_every="10 seconds"),
    defaults="2026-11",
    batch=Batch(interval="1 hour", start="2024-01-01"),
    tags=["example"],
)
