"""Alarms of machines that are too hot, and machines that have fallen silent: hysteresis, timers and a side output."""

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

sensor_alarms = Pipeline(
    name="sensor_alarms",
    source=[
        KafkaSource(
            name="readings",
            topic="examples.machine_readings",
            schema="""
                machine STRING NOT NULL, hall STRING NOT NULL, celsius DECIMAL(5,1) NOT NULL, at TIMESTAMP NOT NULL
            """,
            event_time="at",
            rules=[Rule("plausible", "celsius BETWEEN -60 AND 400")],
            watermark=Watermark(out_of_orderness="30 seconds", idle_after="30 seconds"),
        ),
    ],
    derive=[
        Process(
            "alarms",
            of="readings",
            by="seamline.local.alarms:Alarms",
            keys=["hall", "machine"],
            columns=["celsius"],
            begin="1 day",
        ),
    ],
    views=[
        View(
            "by_hall",
            of="alarms",
            keys=["hall", "ended"],
            window=Tumbling("1 hour"),
            measures={"alarms": count(), "seconds": sum("seconds"), "peak": avg("peak")},
        ),
        View(
            "silent",
            of="alarms.silent",
            keys=["hall", "machine"],
            window=Tumbling("1 hour"),
            measures={"times": count()},
        ),
    ],
    stream=Stream(trigger="1 second", edge_every="10 seconds"),
    defaults="2026-11",
    batch=Batch(interval="1 day", start="2024-01-01"),
    tags=["example"],
)
