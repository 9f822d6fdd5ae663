"""Seamline: one definition, two layers, cut by Kafka offsets.

Importing the package loads the definition language only; `seamline.read` loads its engines when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seamline.model.definition.alert_routes import AlertRoute
from seamline.model.definition.as_of import AsOf
from seamline.model.definition.asks import Ask, NoAnswer
from seamline.model.definition.changes import Changelog
from seamline.model.definition.counts import Counts
from seamline.model.definition.debezium import Debezium
from seamline.model.definition.expectations import Expect, ExpectationSuite, ExpectRows
from seamline.model.definition.formats import Avro, Csv, Json, Protobuf, Text, protobuf
from seamline.model.definition.groups import CoGroup
from seamline.model.definition.joins import Join, Open
from seamline.model.definition.layers import Batch, Stream
from seamline.model.definition.patterns import Pattern
from seamline.model.definition.pipeline import Pipeline, View
from seamline.model.definition.processes import Process
from seamline.model.definition.restarts import ExponentialDelay, FailureRate, FixedDelay, NoRestart
from seamline.model.definition.sinks.dead_letter_sink import DeadLetterSink
from seamline.model.definition.sinks.file_sink import FileSink
from seamline.model.definition.sinks.kafka_sink import KafkaSink
from seamline.model.definition.sinks.postgres_sink import PostgresSink
from seamline.model.definition.sinks.redis_sink import RedisSink
from seamline.model.definition.sources import DeltaSource, KafkaSource, Lookup, Rule
from seamline.model.definition.windows import CountWindow, Cumulating, Global, Session, Sliding, Tumbling
from seamline.model.measures import (
    avg,
    collect_distinct,
    count,
    count_true,
    distinct,
    first,
    formula,
    histogram,
    last,
    max,
    min,
    own,
    quantile,
    quantiles,
    ratio,
    stddev,
    sum,
    top,
    variance,
)
from seamline.model.protocol.watermark import Watermark

if TYPE_CHECKING:
    from seamline.model.sql.pipeline_file import pipeline_from_sql
    from seamline.serve.read import read
    from seamline.serve.side import side
    from seamline.serve.sql.asked import sql

    __version__: str

__all__ = [
    "AlertRoute",
    "AsOf",
    "Ask",
    "Avro",
    "Batch",
    "Changelog",
    "CoGroup",
    "CountWindow",
    "Counts",
    "Csv",
    "Cumulating",
    "DeadLetterSink",
    "Debezium",
    "DeltaSource",
    "Expect",
    "ExpectRows",
    "ExpectationSuite",
    "ExponentialDelay",
    "FailureRate",
    "FileSink",
    "FixedDelay",
    "Global",
    "Join",
    "Json",
    "KafkaSink",
    "KafkaSource",
    "Lookup",
    "NoAnswer",
    "NoRestart",
    "Open",
    "Pattern",
    "Pipeline",
    "PostgresSink",
    "Process",
    "Protobuf",
    "RedisSink",
    "Rule",
    "Session",
    "Sliding",
    "Stream",
    "Text",
    "Tumbling",
    "View",
    "Watermark",
    "avg",
    "collect_distinct",
    "count",
    "count_true",
    "distinct",
    "first",
    "formula",
    "histogram",
    "last",
    "max",
    "min",
    "own",
    "pipeline_from_sql",
    "protobuf",
    "quantile",
    "quantiles",
    "ratio",
    "read",
    "side",
    "sql",
    "stddev",
    "sum",
    "top",
    "variance",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from seamline.version import VERSION

        return VERSION
    if name == "pipeline_from_sql":
        from seamline.model.sql.pipeline_file import pipeline_from_sql

        return pipeline_from_sql
    if name == "read":
        from seamline.serve.read import read

        return read
    if name == "side":
        from seamline.serve.side import side

        return side
    if name == "sql":
        from seamline.serve.sql.asked import sql

        return sql
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
