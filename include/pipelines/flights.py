"""Departures from New York's airports in 2013: the pipeline of the demo."""

from seamline import (
    Batch,
    Expect,
    ExpectationSuite,
    ExpectRows,
    KafkaSource,
    Lookup,
    Pipeline,
    Rule,
    Stream,
    Tumbling,
    View,
    Watermark,
    avg,
    count,
    distinct,
    max,
    min,
    quantile,
    sum,
)

flights = Pipeline(
    name="flights",
    source=KafkaSource(
        connection="kafka_default",
        topic="flights.departures",
        schema="""
            carrier STRING NOT NULL, flight INT NOT NULL, origin STRING NOT NULL, dest STRING, tailnum STRING,
            sched_dep TIMESTAMP NOT NULL, dep_delay DOUBLE, distance DOUBLE
        """,
        event_time="sched_dep",
        event_id=["carrier", "flight", "origin", "sched_dep"],
        watermark=Watermark(out_of_orderness="10 minutes", idle_after="30 seconds"),
        max_future="1 day",
    ),
    lookups=[
        Lookup("airlines", "seamline.local.dimensions:airlines", on={"carrier": "carrier"}, columns=["name"]),
        Lookup("airports", "seamline.local.dimensions:airports", on={"faa": "origin"}, columns=["name"]),
    ],
    rules=[Rule("known origin", "origin IN ('EWR', 'JFK', 'LGA')")],
    views=[
        View(
            "delay_by_carrier",
            keys=["carrier"],
            window=Tumbling("1 hour"),
            measures={
                "flights": count(),
                "departed": count("dep_delay"),
                "delay": sum("dep_delay"),
                "mean_delay": avg("dep_delay"),
                "least_delay": min("dep_delay"),
                "worst_delay": max("dep_delay"),
                "p95_delay": quantile("dep_delay", 0.95),
                "planes": distinct("tailnum"),
            },
            expect=[
                Expect("flights", at_least=1),
                Expect("carrier", not_null=True, regex="[0-9A-Z]{2}"),
                ExpectRows(max_change=0.5),
                # What Great Expectations has and a plain expectation does not.
                ExpectationSuite(
                    [
                        {
                            "type": "expect_column_pair_values_a_to_be_greater_than_b",
                            "kwargs": {"column_A": "flights", "column_B": "departed", "or_equal": True},
                        },
                        {
                            "type": "expect_column_median_to_be_between",
                            "kwargs": {"column": "mean_delay", "min_value": -60, "max_value": 300},
                            "severity": "warning",
                        },
                    ]
                ),
            ],
        ),
        View(
            "delay_by_airport",
            keys=["origin"],
            window=Tumbling("1 day"),
            measures={"flights": count(), "mean_delay": avg("dep_delay")},
        ),
    ],
    stream=Stream(trigger="1 second", edge_every="10 seconds"),
    defaults="2026-11",
    batch=Batch(interval="1 day", start="2013-01-01"),
    owner="data-platform",
    tags=["demo"],
)
