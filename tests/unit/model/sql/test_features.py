"""Each thing that a definition in SQL can say, beside the same in Python: one object, one version."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, get_args, get_type_hints

import pytest

from seamline import (
    Ask,
    AsOf,
    Batch,
    Changelog,
    CoGroup,
    Counts,
    CountWindow,
    Csv,
    Cumulating,
    DeadLetterSink,
    DeltaSource,
    Expect,
    ExpectRows,
    FileSink,
    FixedDelay,
    Global,
    Join,
    KafkaSink,
    KafkaSource,
    Lookup,
    Open,
    Pattern,
    Pipeline,
    PostgresSink,
    Process,
    RedisSink,
    Rule,
    Session,
    Sliding,
    Stream,
    Text,
    Tumbling,
    View,
    Watermark,
    avg,
    collect_distinct,
    count,
    count_true,
    distinct,
    first,
    formula,
    histogram,
    last,
    own,
    quantile,
    quantiles,
    ratio,
    stddev,
    sum,
    top,
    variance,
)
from seamline import max as largest
from seamline import min as smallest
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.compile.stored_definition import to_json
from seamline.model.definition.restarts import RESTARTS
from seamline.model.definition.sinks.kinds import SINKS
from seamline.model.definition.windows import WINDOWS
from seamline.model.measures import MEASURES
from seamline.model.sql.options import list_settings
from seamline.model.sql.pipeline_file import read_pipeline_text

HEAD = (
    "CREATE PIPELINE shop WITH (batch.interval = '1 day', batch.start = '2026-01-01', defaults = '2026-11');"
)
SCHEMA = "id STRING NOT NULL, shop STRING, city STRING, amount DOUBLE, n INT, at TIMESTAMP"
ORDERS = f"CREATE SOURCE orders ({SCHEMA}, WATERMARK FOR at) WITH (connector = 'kafka', topic = 'orders');"
REFUNDS = (
    "CREATE SOURCE refunds (id STRING, paid BOOLEAN, at TIMESTAMP, WATERMARK FOR at) "
    "WITH (connector = 'kafka', topic = 'refunds');"
)
BY_SHOP = "CREATE VIEW by_shop AS SELECT shop, count(*) AS n FROM orders GROUP BY shop, TUMBLE(at, INTERVAL '1 hour');"
HOURLY = Tumbling("1 hour")
WORDS = "transform = 'tests.unit.steps:words', transform_schema = 'words INT', defaults"


def orders(**more: Any) -> KafkaSource:
    return KafkaSource(**{"topic": "orders", "schema": SCHEMA, "event_time": "at", **more})


def refunds(**more: Any) -> KafkaSource:
    schema = "id STRING, paid BOOLEAN, at TIMESTAMP"
    return KafkaSource(topic="refunds", schema=schema, event_time="at", name="refunds", **more)


def by_shop(**more: Any) -> View:
    return View(**{"name": "by_shop", "keys": ["shop"], "window": HOURLY, "measures": {"n": count()}, **more})


def pipeline(**more: Any) -> Pipeline:
    said = {
        "source": orders(),
        "views": [by_shop()],
        "batch": Batch("1 day", "2026-01-01"),
        "defaults": "2026-11",
    }
    return Pipeline(name="shop", **{**said, **more})


def both(**more: Any) -> Pipeline:
    return pipeline(source=[orders(name="orders"), refunds()], **more)


def view(query: str) -> str:
    return f"{HEAD} {ORDERS} CREATE VIEW by_shop AS {query};"


def pairs(
    derived: str, query: str = "SELECT orders_shop, count(*) AS n FROM pairs GROUP BY orders_shop"
) -> str:
    return f"{HEAD} {ORDERS} {REFUNDS} CREATE DERIVED pairs AS {derived}; CREATE VIEW v AS {query};"


def of_pairs(**more: Any) -> View:
    said = {
        "name": "v",
        "keys": ["orders_shop"],
        "window": Global(),
        "measures": {"n": count()},
        "of": "pairs",
    }
    return View(**{**said, **more})


def source(elements: str, more: str = "", where: str = "") -> str:
    options = f"WITH (connector = 'kafka', topic = 'orders'{more})"
    return f"{HEAD} CREATE SOURCE orders ({elements}) {where} {options}; {BY_SHOP}"


JOINED = "SELECT * FROM orders JOIN refunds ON orders.id = refunds.id AND"

FEATURES: dict[str, tuple[str, Pipeline]] = {
    "least": (f"{HEAD} {ORDERS} {BY_SHOP}", pipeline()),
    "comments, breaks and letters of any case": (
        (
            f"-- a file\n{HEAD} {ORDERS}\n/* two; /* nested */ 'views' */create view by_shop as\r\n"
            "select shop,count( * ) as n -- what\n from orders where amount\n  >  1.5 /* ; */ and shop <> "
            "';--' "
            "group by shop , tumble(at, interval '1' hour);"
        ),
        pipeline(views=[by_shop(where="amount > 1.5 and shop <> ';--'")]),
    ),
    "settings of the pipeline and its layers": (
        (
            "CREATE PIPELINE shop WITH (batch.interval = '6 hours', batch.start = '2026-01-01', "
            "batch.max_dirty = 10, batch.approve_change = 0.05, "
            "batch.provisional = TRUE, 'stream.trigger' = INTERVAL '2' SECOND, stream.edge_epochs = 5, "
            "stream.restart = 'FixedDelay', stream.restart.delay = '5 seconds', stream.restart.failures = 3, "
            "owner = 'shop-data', tags = ('sales', 'eu'), retries = 4, on_alert = 'alerts.page', "
            f"description = 'Orders, by shop\\'s hour', defaults = '2026-11'); {ORDERS} {BY_SHOP}"
        ),
        pipeline(
            batch=Batch("6 hours", "2026-01-01", max_dirty=10, approve_change=0.05, provisional=True),
            stream=Stream(trigger="2 seconds", edge_epochs=5, restart=FixedDelay("5 seconds", failures=3)),
            owner="shop-data",
            tags=["sales", "eu"],
            retries=4,
            on_alert="alerts.page",
            description="Orders, by shop's hour",
        ),
    ),
    "columns of every kind": (
        source(
            "id STRING NOT NULL, shop STRING, `order` INT, price DECIMAL(10,2), tags ARRAY<STRING>, "
            "lines ARRAY<STRUCT<sku: STRING, n: INT>>, extra MAP<STRING, STRING>, at TIMESTAMP NOT NULL, "
            "WATERMARK FOR at"
        ),
        pipeline(
            source=orders(
                schema="id STRING NOT NULL, shop STRING, order INT, price DECIMAL(10,2), tags ARRAY<STRING>, "
                "lines ARRAY<STRUCT<sku: STRING, n: INT>>, extra MAP<STRING, STRING>, at TIMESTAMP NOT NULL"
            )
        ),
    ),
    "event time, lateness and silence": (
        source(
            "id STRING, shop STRING, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '5 seconds'",
            ", idle_after = '1 minute', max_future = '1 hour', max_past = '', very_late = '2 hours'",
        ),
        pipeline(
            source=orders(
                schema="id STRING, shop STRING, at TIMESTAMP",
                watermark=Watermark("5 seconds", "1 minute"),
                max_future="1 hour",
                max_past="",
                very_late="2 hours",
            )
        ),
    ),
    "Kafka's time": (
        (
            f"{HEAD} CREATE SOURCE orders (shop STRING, WATERMARK FOR _kafka_timestamp AS _kafka_timestamp - "
            f"INTERVAL 2 DAYS) "
            "WITH ('connector' = 'kafka', 'topic' = 'orders'); CREATE VIEW by_shop AS SELECT shop, count(*) "
            "AS n "
            "FROM orders GROUP BY shop, TUMBLE(_kafka_timestamp, INTERVAL 1 HOUR);"
        ),
        pipeline(
            source=orders(schema="shop STRING", event_time="_kafka_timestamp", watermark=Watermark("2 days"))
        ),
    ),
    "identities, several topics, a format, bounds": (
        source(
            f"{SCHEMA}, WATERMARK FOR at, UNIQUE (id, shop)",
            ", format = 'csv', csv.delimiter = ';', dedup_within = '1 hour', max_record_bytes = 1000",
        ).replace("'orders',", "('orders', 'returns'),"),
        pipeline(
            source=orders(
                topic=["orders", "returns"],
                event_id=["id", "shop"],
                format=Csv(";"),
                dedup_within="1 hour",
                max_record_bytes=1000,
            )
        ),
    ),
    "a function of Arrow tables, by its name": (
        (
            f"{HEAD.replace('defaults', WORDS)} CREATE SOURCE notes (text STRING NOT NULL, at TIMESTAMP, "
            "WATERMARK FOR at, CONSTRAINT few CHECK (words < 5)) WITH (connector = 'kafka', topic = 'notes'); "
            "CREATE VIEW v AS SELECT sum(words) AS n FROM notes GROUP BY TUMBLE(at, INTERVAL '1 hour');"
        ),
        pipeline(
            source=KafkaSource("notes", "text STRING NOT NULL, at TIMESTAMP", "at"),
            transform="tests.unit.steps:words",
            transform_schema="words INT",
            rules=[Rule("few", "words < 5")],
            views=[View("v", [], HOURLY, {"n": sum("words")})],
        ),
    ),
    "a raw text": (
        source(
            "shop STRING, at TIMESTAMP, WATERMARK FOR at",
            r", format = 'text', text.pattern = r'(?P<shop>\w+) (?P<at>.*)'",
        ),
        pipeline(source=orders(schema="shop STRING, at TIMESTAMP", format=Text(r"(?P<shop>\w+) (?P<at>.*)"))),
    ),
    "rules, derived columns, sides and a condition": (
        source(
            f"{SCHEMA}, day AS CAST(at AS DATE), late AS amount > 10 AND n IS NOT NULL, WATERMARK FOR at, "
            "CONSTRAINT `known shop` CHECK (shop IN ('a', 'b')), CONSTRAINT positive CHECK (amount > 0), "
            "SIDE dear AS amount > 100",
            where="WHERE n > 0 OR (n = -1)",
        ),
        pipeline(
            rules=[Rule("known shop", "shop IN ('a', 'b')"), Rule("positive", "amount > 0")],
            select={"day": "CAST(at AS DATE)", "late": "amount > 10 AND n IS NOT NULL"},
            side={"dear": "amount > 100"},
            where="n > 0 OR (n = -1)",
        ),
    ),
    "added columns": (
        source(f"{SCHEMA}, channel STRING ADDED, WATERMARK FOR at"),
        pipeline(source=orders(added=["channel STRING"])),
    ),
    "counts of producers": (
        source(
            f"{SCHEMA}, WATERMARK FOR at",
            ", counts.topic = 'said', counts.producer = 'shop', counts.producers = ('eu', 'us'), "
            "counts.required = TRUE",
        ),
        pipeline(source=orders(counts=Counts("said", "shop", ["eu", "us"], required=True))),
    ),
    "a Delta table": (
        (
            f"{HEAD} CREATE SOURCE orders ({SCHEMA}, WATERMARK FOR at) WITH (connector = 'delta', table = "
            f"'/lake/orders'); "
            f"{BY_SHOP}"
        ),
        pipeline(source=DeltaSource("/lake/orders", SCHEMA, "at")),
    ),
    "a look-up": (
        source(f"{SCHEMA}, region AS shops_region, WATERMARK FOR at").replace(
            "CREATE VIEW",
            "CREATE LOOKUP shops (region, seats INT) ON shop = upper(shop) AND day = CAST(at AS DATE) "
            "WITH (table = 'tables/shops.csv'); CREATE VIEW",
        ),
        pipeline(
            select={"region": "shops_region"},
            lookups=[
                Lookup(
                    "shops",
                    "tables/shops.csv",
                    on={"shop": "upper(shop)", "day": "CAST(at AS DATE)"},
                    columns=["region", "seats INT"],
                )
            ],
        ),
    ),
    "a look-up of one of two sources": (
        (
            f"{HEAD} {ORDERS.replace('WATERMARK', 'region AS shops_region, WATERMARK')} {REFUNDS} CREATE "
            f"LOOKUP shops (region) "
            "FOR orders ON shop = shop WITH (table = 'shops.csv', prefix = 'shops_'); CREATE LOOKUP towns "
            "(name) "
            f"ON shop = shop WITH (table = 'towns.csv'); {BY_SHOP}"
        ),
        pipeline(
            source=[
                orders(
                    name="orders",
                    select={"region": "shops_region"},
                    lookups=[Lookup("shops", "shops.csv", {"shop": "shop"}, ["region"], prefix="shops_")],
                ),
                refunds(),
            ],
            lookups=[Lookup("towns", "towns.csv", {"shop": "shop"}, ["name"])],
            views=[by_shop(of="orders")],
        ),
    ),
    "a table of rules": (
        source(f"{SCHEMA}, WATERMARK FOR at")
        .replace(
            "CREATE VIEW",
            "CREATE LOOKUP limits (name, above DOUBLE) ON shop = shop WITH (table = 'limits.csv', every = "
            "'over', "
            "where = 'amount > limits_above'); CREATE VIEW",
        )
        .replace("FROM orders GROUP", "FROM orders WHERE size(over) > 0 GROUP"),
        pipeline(
            views=[by_shop(where="size(over) > 0")],
            lookups=[
                Lookup(
                    "limits",
                    "limits.csv",
                    {"shop": "shop"},
                    ["name", "above DOUBLE"],
                    every="over",
                    where="amount > limits_above",
                )
            ],
        ),
    ),
    "windows that slide": (
        view(
            "SELECT shop, count(*) AS n FROM orders GROUP BY shop, HOP(at, INTERVAL '10' MINUTE, INTERVAL "
            "'1' HOUR)"
        ),
        pipeline(views=[by_shop(window=Sliding("1 hour", "10 minutes"))]),
    ),
    "windows that grow, in a zone": (
        view(
            "SELECT shop, window_start, window_end, count(*) AS n FROM orders "
            "GROUP BY shop, CUMULATE(at, INTERVAL '1 hour', INTERVAL '1 day', zone => 'Europe/Berlin')"
        ),
        pipeline(views=[by_shop(window=Cumulating("1 day", "1 hour", zone="Europe/Berlin"))]),
    ),
    "windows with an offset": (
        view(
            "SELECT shop, count(*) AS n FROM orders GROUP BY TUMBLE(at, INTERVAL '1 day', INTERVAL '6 "
            "hours'), shop"
        ),
        pipeline(views=[by_shop(window=Tumbling("1 day", offset="6 hours"))]),
    ),
    "sessions": (
        view("SELECT shop, count(*) AS n FROM orders GROUP BY shop, SESSION(at, INTERVAL '30 minutes')"),
        pipeline(views=[by_shop(window=Session("30 minutes"))]),
    ),
    "no window": (
        view("SELECT shop, count(*) AS n FROM orders GROUP BY shop"),
        pipeline(views=[by_shop(window=Global())]),
    ),
    "neither keys nor a window": (
        view("SELECT count(*) AS n FROM orders"),
        pipeline(views=[by_shop(keys=[], window=Global())]),
    ),
    "count windows": (
        view("SELECT shop, count(*) AS n FROM orders GROUP BY shop, COUNT_WINDOW(100)"),
        pipeline(views=[by_shop(window=CountWindow(100))]),
    ),
    "grouping sets": (
        view(
            "SELECT shop, city, count(*) AS n FROM orders "
            "GROUP BY GROUPING SETS ((shop), (city), ()), TUMBLE(at, INTERVAL '1 hour')"
        ),
        pipeline(views=[by_shop(keys=["shop", "city"], grouping_sets=[["shop"], ["city"], []])]),
    ),
    "a roll-up": (
        view(
            "SELECT shop, city, count(*) AS n FROM orders GROUP BY ROLLUP (shop, city), TUMBLE(at, INTERVAL "
            "'1 hour')"
        ),
        pipeline(views=[by_shop(keys=["shop", "city"], grouping_sets=[["shop", "city"], ["shop"], []])]),
    ),
    "a cube": (
        view(
            "SELECT shop, city, count(*) AS n FROM orders GROUP BY CUBE (shop, city), TUMBLE(at, INTERVAL "
            "'1 hour')"
        ),
        pipeline(
            views=[by_shop(keys=["shop", "city"], grouping_sets=[["shop", "city"], ["shop"], ["city"], []])]
        ),
    ),
    "measures": (
        view(
            "SELECT count(*) AS n, count(city) AS cities, count_if(amount > 10) AS dear, sum(amount * n) AS "
            "total, "
            "avg(amount) AS mean, min(amount) AS least, max(amount) AS most, first(city) AS begun, "
            "last_value(city) AS ended, "
            "variance(amount) AS spread, var_pop(amount) AS all_spread, stddev_samp(amount) AS width, "
            "stddev_pop(amount) AS all_width, approx_count_distinct(city) AS towns, quantile(amount, 0.95) "
            "AS p95, "
            "quantiles(amount, 0.5, 0.95) AS ps, top(city, 3) AS often, histogram(amount, -1, 0, 1.5) AS "
            "bars, "
            "collect_distinct(city) AS named, collect_distinct(city, 5) AS few FROM orders"
        ),
        pipeline(
            views=[
                by_shop(
                    keys=[],
                    window=Global(),
                    measures={
                        "n": count(),
                        "cities": count("city"),
                        "dear": count_true("amount > 10"),
                        "total": sum("amount * n"),
                        "mean": avg("amount"),
                        "least": smallest("amount"),
                        "most": largest("amount"),
                        "begun": first("city"),
                        "ended": last("city"),
                        "spread": variance("amount"),
                        "all_spread": variance("amount", ddof=0),
                        "width": stddev("amount"),
                        "all_width": stddev("amount", ddof=0),
                        "towns": distinct("city"),
                        "p95": quantile("amount", 0.95),
                        "ps": quantiles("amount", [0.5, 0.95]),
                        "often": top("city", 3),
                        "bars": histogram("amount", [-1, 0, 1.5]),
                        "named": collect_distinct("city"),
                        "few": collect_distinct("city", limit=5),
                    },
                )
            ]
        ),
    ),
    "measures of some rows": (
        view(
            "SELECT sum(amount) FILTER (WHERE n > 0 AND city = 'x') AS some, count(*) FILTER (WHERE n = 1) "
            "AS ones FROM orders"
        ),
        pipeline(
            views=[
                by_shop(
                    keys=[],
                    window=Global(),
                    measures={
                        "some": sum("amount", where="n > 0 AND city = 'x'"),
                        "ones": count(where="n = 1"),
                    },
                )
            ]
        ),
    ),
    "measures of measures": (
        view(
            "SELECT count(*) AS n, count_if(amount > 1) AS dear, ratio(dear, n) AS share, "
            "formula('try_divide(total, weight)', total => sum(amount * n), weight => sum(n * 1D) FILTER "
            "(WHERE n > 0)) "
            "FILTER (WHERE city = 'x') AS mean FROM orders"
        ),
        pipeline(
            views=[
                by_shop(
                    keys=[],
                    window=Global(),
                    measures={
                        "n": count(),
                        "dear": count_true("amount > 1"),
                        "share": ratio("dear", "n"),
                        "mean": formula(
                            "try_divide(total, weight)",
                            where="city = 'x'",
                            total=sum("amount * n"),
                            weight=sum("n * 1D", where="n > 0"),
                        ),
                    },
                )
            ]
        ),
    ),
    "a measure of one's own": (
        view(
            "SELECT own(amount, 'tests.unit.own_measures:GeometricMean', version => '2') AS typical FROM "
            "orders"
        ),
        pipeline(
            views=[
                by_shop(
                    keys=[],
                    window=Global(),
                    measures={"typical": own("amount", "tests.unit.own_measures:GeometricMean", version="2")},
                )
            ]
        ),
    ),
    "a condition, and names with the source's before them": (
        view(
            "SELECT orders.shop, sum(orders.amount) AS n FROM orders WHERE orders.n IN (1, 2) AND city LIKE "
            "'x%' "
            "GROUP BY orders.shop, TUMBLE(orders.at, INTERVAL '1 hour')"
        ),
        pipeline(views=[by_shop(measures={"n": sum("amount")}, where="n IN (1, 2) AND city LIKE 'x%'")]),
    ),
    "items of an array": (
        source(
            "shop STRING, lines ARRAY<STRUCT<sku: STRING, n: INT>>, at TIMESTAMP, WATERMARK FOR at"
        ).replace(
            BY_SHOP,
            "CREATE VIEW by_shop AS SELECT shop, sum(line.n) AS n FROM orders CROSS JOIN UNNEST(lines) AS "
            "line "
            "WHERE line.n > 0 GROUP BY shop, TUMBLE(at, INTERVAL '1 hour');",
        ),
        pipeline(
            source=orders(schema="shop STRING, lines ARRAY<STRUCT<sku: STRING, n: INT>>, at TIMESTAMP"),
            views=[by_shop(explode={"line": "lines"}, measures={"n": sum("line.n")}, where="line.n > 0")],
        ),
    ),
    "expectations": (
        view(
            "SELECT shop, count(*) AS n FROM orders GROUP BY shop, TUMBLE(at, INTERVAL '1 hour') EXPECT n "
            ">= 1 AND n <= 500, "
            "n BETWEEN 0 AND 9.5, shop IS NOT NULL AND shop RLIKE '[a-z]+', shop IS UNIQUE, shop IN ('a', "
            "'b'), "
            "ROWS >= 1 AND ROWS CHANGE <= 0.5"
        ),
        pipeline(
            views=[
                by_shop(
                    expect=[
                        Expect("n", at_least=1, at_most=500),
                        Expect("n", at_least=0, at_most=9.5),
                        Expect("shop", not_null=True, regex="[a-z]+"),
                        Expect("shop", unique=True),
                        Expect("shop", in_set=["a", "b"]),
                        ExpectRows(at_least=1, max_change=0.5),
                    ]
                )
            ]
        ),
    ),
    "rows of two sources": (
        (
            f"{HEAD} {ORDERS} {REFUNDS} CREATE VIEW v AS SELECT id, count(*) AS n "
            "FROM (TABLE orders UNION ALL TABLE refunds) GROUP BY id, TUMBLE(at, INTERVAL '1 hour');"
        ),
        both(
            views=[View("v", keys=["id"], window=HOURLY, measures={"n": count()}, of=["orders", "refunds"])]
        ),
    ),
    "a join within a time": (
        pairs(
            f"{JOINED} refunds.at BETWEEN orders.at - INTERVAL '5 minutes' AND orders.at + INTERVAL '1 day' "
            f""
            "WHERE refunds.paid AND orders.amount > 0",
            "SELECT orders.shop, sum(orders.amount) AS n, count(unmatched) AS open FROM pairs "
            "WHERE orders.n > 0 GROUP BY orders.shop, TUMBLE(orders.at, INTERVAL '1 hour')",
        ),
        both(
            derive=[
                Join(
                    "pairs",
                    "orders",
                    "refunds",
                    {"id": "id"},
                    before="5 minutes",
                    after="1 day",
                    where="refunds_paid AND orders_amount > 0",
                )
            ],
            views=[
                of_pairs(
                    window=HOURLY,
                    measures={"n": sum("orders_amount"), "open": count("unmatched")},
                    where="orders_n > 0",
                )
            ],
        ),
    ),
    "a join with bounds that are out": (
        pairs(f"{JOINED} refunds.at > orders.at - INTERVAL '5' MINUTE AND refunds.at <= orders.at"),
        both(
            derive=[Join("pairs", "orders", "refunds", {"id": "id"}, before=Open("5 minutes"))],
            views=[of_pairs()],
        ),
    ),
    "a join in a window, of keys that may be NULL": (
        pairs(
            "SELECT * FROM orders AS o JOIN refunds AS r ON o.id <=> r.id "
            "AND TUMBLE(o.at, INTERVAL '1 hour') = TUMBLE(r.at, INTERVAL '1 hour')"
        ),
        both(
            derive=[Join("pairs", "orders", "refunds", {"id": "id"}, same=HOURLY, null_safe=["id"])],
            views=[of_pairs()],
        ),
    ),
    "a source joined with itself": (
        (
            f"{HEAD} {ORDERS} CREATE DERIVED pairs AS SELECT * FROM orders a JOIN orders b ON a.id = b.id "
            "AND b.at BETWEEN a.at AND a.at + INTERVAL '1 hour' WHERE b.amount > a.amount; "
            "CREATE VIEW v AS SELECT left.shop, count(*) AS n FROM pairs WHERE right.n > 0 GROUP BY left.shop;"
        ),
        pipeline(
            source=[orders(name="orders")],
            derive=[
                Join(
                    "pairs",
                    "orders",
                    "orders",
                    {"id": "id"},
                    after="1 hour",
                    where="right_amount > left_amount",
                )
            ],
            views=[of_pairs(keys=["left_shop"], where="right_n > 0")],
        ),
    ),
    "a join in the view itself": (
        (
            f"{HEAD} {ORDERS} {REFUNDS} CREATE VIEW v AS SELECT o.shop, sum(o.amount) FILTER (WHERE r.paid) "
            f"AS n "
            "FROM orders AS o JOIN refunds AS r ON o.id = r.id AND r.at BETWEEN o.at AND o.at + INTERVAL '1 "
            "day' "
            "GROUP BY o.shop, TUMBLE(o.at, INTERVAL '1 hour');"
        ),
        both(
            derive=[Join("v_rows", "orders", "refunds", {"id": "id"}, after="1 day")],
            views=[
                of_pairs(
                    of="v_rows", window=HOURLY, measures={"n": sum("orders_amount", where="refunds_paid")}
                )
            ],
        ),
    ),
    "a join as of a time": (
        pairs(
            "SELECT * FROM orders LEFT JOIN refunds FOR SYSTEM_TIME AS OF orders.at ON orders.id = "
            "refunds.id "
            "WITH (at_most = '7 days', left_where = 'amount > 0')"
        ),
        both(
            derive=[
                AsOf("pairs", "orders", "refunds", {"id": "id"}, at_most="7 days", left_where="amount > 0")
            ],
            views=[of_pairs()],
        ),
    ),
    "a changelog": (
        source(
            "id STRING NOT NULL, shop STRING, v BIGINT, gone BOOLEAN, at TIMESTAMP, WATERMARK FOR at, "
            "PRIMARY KEY (id) NOT ENFORCED",
            ", order = 'v', deleted = 'gone'",
        ).replace(
            BY_SHOP,
            "CREATE DERIVED open AS CHANGELOG OF orders; CREATE VIEW by_shop AS SELECT shop, count(*) AS n "
            "FROM open "
            "GROUP BY shop;",
        ),
        pipeline(
            source=[
                orders(
                    name="orders",
                    schema="id STRING NOT NULL, shop STRING, v BIGINT, gone BOOLEAN, at TIMESTAMP",
                    key=["id"],
                    order="v",
                    deleted="gone",
                )
            ],
            derive=[Changelog("open", "orders")],
            views=[by_shop(of="open", window=Global())],
        ),
    ),
    "a pattern": (
        (
            f"{HEAD} {ORDERS} CREATE DERIVED rising AS SELECT * FROM orders MATCH_RECOGNIZE (PARTITION BY "
            f"shop, city "
            "ORDER BY at MEASURES count(low) AS lows, high.amount AS most ONE ROW PER MATCH AFTER MATCH "
            "SKIP TO NEXT ROW "
            "PATTERN (low{2,} high | high+?) WITHIN INTERVAL '10 minutes' DEFINE low AS amount < 1, high AS "
            "amount > 9) "
            "WITH (where = 'n > 0', begin = '1 day'); "
            "CREATE VIEW v AS SELECT shop, sum(lows) AS n FROM rising GROUP BY shop, TUMBLE(at, INTERVAL '1 "
            "hour');"
        ),
        pipeline(
            source=[orders(name="orders")],
            derive=[
                Pattern(
                    "rising",
                    "orders",
                    ["shop", "city"],
                    "low{2,} high | high+?",
                    "10 minutes",
                    {"low": "amount < 1", "high": "amount > 9"},
                    {"lows": "count(low)", "most": "high.amount"},
                    begin="1 day",
                    where="n > 0",
                    skip="to next row",
                )
            ],
            views=[of_pairs(of="rising", keys=["shop"], window=HOURLY, measures={"n": sum("lows")})],
        ),
    ),
    "sinks": (
        (
            f"{HEAD} {ORDERS} {BY_SHOP} "
            "CREATE SINK shops FROM by_shop WITH (connector = 'kafka', topic = 'shops', changes = TRUE); "
            "CREATE SINK FROM by_shop WITH (connector = 'postgres', table = 'shops', schema = 'sales', when "
            "= 'complete'); "
            "CREATE SINK FROM by_shop WITH (connector = 'redis', prefix = 's:', expire = INTERVAL '7' DAY); "
            "CREATE SINK FROM rejected WITH (connector = 'dead_letters', topic = 'refused'); "
            "CREATE SINK FROM by_shop WITH (connector = 'files', path = '/lake/shops', buckets = ('1 day', 'shop'));"
        ),
        pipeline(
            sinks=[
                KafkaSink("by_shop", "shops", changes=True, name="shops"),
                PostgresSink("by_shop", "shops", schema="sales", when="complete"),
                RedisSink("by_shop", prefix="s:", expire="7 days"),
                DeadLetterSink("rejected", "refused"),
                FileSink("by_shop", "/lake/shops", buckets=["1 day", "shop"]),
            ]
        ),
    ),
}


@pytest.mark.parametrize("name", FEATURES)
def test_sql_makes_the_object_that_python_makes(name: str) -> None:
    """Who rewrites a pipeline keeps its tables: the version is of the definition, and not of the language."""
    text, written = FEATURES[name]
    read = read_pipeline_text(text, "shop.sql")
    assert read == written
    assert to_json(read) == to_json(written)
    ours, theirs = compile_pipeline(read), compile_pipeline(written)
    assert ours.record_version == theirs.record_version
    assert [view.id for view in ours.views] == [view.id for view in theirs.views]


HANDLED: dict[type, set[str]] = {
    # alerts= is Python's.
    Pipeline: {
        *("source", "views", "batch", "rules", "select", "side", "lookups", "stream", "derive", "sinks"),
        "alerts",
    },
    Batch: set(),
    Stream: {"restart"},
    KafkaSource: {"format", "watermark", "rules", "select", "side", "lookups", "counts"},
    # columns= is Python's.
    DeltaSource: {"watermark", "rules", "select", "side", "lookups", "columns"},
    Counts: set(),
    Lookup: {"on"},
    View: {"window", "measures", "explode", "expect", "grouping_sets"},
    Join: {"on", "before", "after", "same"},
    AsOf: {"on"},
    Pattern: {"define", "select"},
    Changelog: set(),
    **{each: set() for each in (*SINKS, *RESTARTS)},
}
"""Fields of which an option cannot be the value, each with a clause of its own."""


@pytest.mark.parametrize("kind", HANDLED, ids=lambda kind: kind.__name__)
def test_no_field_is_forgotten(kind: type) -> None:
    """A field that somebody adds is an option of SQL by its name, or else needs a clause."""
    assert {each.name for each in fields(kind)} - {*list_settings(kind)} - {"origin"} == HANDLED[kind]


def test_no_kind_is_forgotten() -> None:
    """A window, a measure or derived rows that SQL has not are known by name."""
    written = [each for _, each in FEATURES.values()]
    views = [each for one in written for each in one.views]
    assert {type(each.window) for each in views} == {*WINDOWS}
    assert {type(measure) for each in views for measure in each.measures.values()} == {*MEASURES}
    assert {type(each) for one in written for each in one.sinks} == {*SINKS}
    derived = {type(each) for one in written for each in one.derive}
    assert derived == {*get_args(get_type_hints(Pipeline)["derive"].__args__[0])} - {Ask, Process, CoGroup}


def test_another_meaning_is_another_version() -> None:
    """The comparison above would not be worth much if everything had one fingerprint."""
    versions = {
        compile_pipeline(written).views[0].fingerprint
        for name, (_, written) in FEATURES.items()
        if name not in ("sinks", "expectations", "least", "settings of the pipeline and its layers")
    }
    assert len(versions) > 30
