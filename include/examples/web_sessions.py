"""Visits to a web site and its errors, from the lines of its server's log."""

from seamline import (
    Batch,
    Expect,
    KafkaSource,
    Pipeline,
    Session,
    Stream,
    Text,
    Tumbling,
    View,
    Watermark,
    count,
    count_true,
    distinct,
    ratio,
    sum,
    top,
)

# nginx's `combined` format, with $time_iso8601 in the place of $time_local.
LINE = (
    r"(?P<host>\S+) - (?:(?P<user>[^ -]\S*)|-) \[(?P<at>[^\]]+)\] "
    r'"(?P<method>[A-Z]+) (?P<path>[^" ?]+)(?:\?[^" ]*)? HTTP/[0-9.]+" '
    r'(?P<status>\d{3}) (?P<bytes>\d+) "[^"]*" "(?P<agent>[^"]*)"'
)
FAILED = "status >= 500"

web_sessions = Pipeline(
    name="web_sessions",
    source=KafkaSource(
        topic="examples.access_log",
        format=Text(pattern=LINE),
        schema="""
            host STRING NOT NULL, user STRING, at TIMESTAMP NOT NULL, method STRING, path STRING NOT NULL,
            status INT NOT NULL, bytes BIGINT, agent STRING
        """,
        event_time="at",
        watermark=Watermark(out_of_orderness="1 minute", idle_after="1 minute"),
    ),
    side={"robots": "agent LIKE '%bot%'"},
    views=[
        View(
            "sessions",
            keys=["host"],
            window=Session("30 minutes"),
            measures={"hits": count(), "errors": count_true(FAILED), "bytes": sum("bytes")},
        ),
        View(
            "pages",
            keys=["path"],
            window=Tumbling("1 hour"),
            measures={
                "hits": count(),
                "hosts": distinct("host"),
                "errors": count_true(FAILED),
                "error_rate": ratio("errors", "hits"),
            },
            expect=[Expect("error_rate", at_least=0, at_most=1)],
        ),
        View("top_pages", keys=[], window=Tumbling("1 day"), measures={"pages": top("path", 3)}),
    ],
    stream=Stream(trigger="1 second", edge_every="10 seconds"),
    defaults="2026-11",
    batch=Batch(interval="1 day", start="2024-01-01"),
    tags=["example"],
)
