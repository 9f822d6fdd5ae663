"""What Flink is asked to do, in SQL: count views, or join impressions with clicks, alone or beside an archive."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from benchmarks.ads import PER_CAMPAIGN, WINDOW

ASKED = "ad_id INT, event_type STRING, event_time {time}"
ALL = (
    "user_id STRING, page_id STRING, ad_id INT, ad_type STRING, event_type STRING, ip_address STRING, "
    "event_time {time}"
)
METADATA = ", `partition` INT METADATA VIRTUAL, `offset` BIGINT METADATA VIRTUAL"
# Of the clients' hundreds of metrics none is asked for, and Flink would collect them at each look.
ADS = """
CREATE TABLE ads ({columns}) WITH (
  'connector' = 'kafka', 'properties.bootstrap.servers' = '{brokers}', 'topic' = '{topic}',
  'format' = 'json', 'json.timestamp-format.standard' = 'ISO-8601', 'scan.startup.mode' = 'earliest-offset',
  'properties.register.consumer.metrics' = 'false'{bound}
)"""
BOUND = ", 'scan.bounded.mode' = 'latest-offset'"
COUNTS = """
CREATE TABLE counts (
  campaign INT, window_start {window}, `views` BIGINT, last_view {time},
  PRIMARY KEY (campaign, window_start) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'properties.bootstrap.servers' = '{brokers}', 'topic' = '{counts}',
  'key.format' = 'json', 'value.format' = 'json', 'properties.register.producer.metrics' = 'false'
)"""
ARCHIVE = """
CREATE TABLE archive ({columns}, `partition` INT, `offset` BIGINT) WITH (
  'connector' = 'filesystem', 'path' = '{archive}', 'format' = 'parquet',
  'parquet.compression' = 'ZSTD', 'parquet.compression.codec.zstd.level' = '1',
  'parquet.write.int64.timestamp' = 'true', 'parquet.timestamp.time.unit' = 'millis'
)"""
KEEP = "INSERT INTO archive SELECT * FROM ads;\n"
COUNT = """
INSERT INTO counts SELECT campaign, window_start, COUNT(*), MAX(event_time) FROM (
  SELECT ad_id / {ads} AS campaign, {begin} AS window_start, event_time FROM ads WHERE event_type = 'view'
) GROUP BY campaign, window_start;
"""


EVENTS = """
CREATE TABLE {name} ({columns}{metadata}, WATERMARK FOR `at` AS `at` - INTERVAL '1' MINUTE) WITH (
  'connector' = 'kafka', 'properties.bootstrap.servers' = '{brokers}', 'topic' = '{topic}.{name}',
  'format' = 'json', 'json.timestamp-format.standard' = 'ISO-8601', 'scan.startup.mode' = 'earliest-offset',
  'properties.register.consumer.metrics' = 'false', 'scan.bounded.mode' = 'latest-offset'
)"""
PAIR_COUNTS = """
CREATE TABLE counts (
  campaign INT, window_start STRING, `views` BIGINT, cost BIGINT, PRIMARY KEY (window_start) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'properties.bootstrap.servers' = '{brokers}', 'topic' = '{counts}',
  'key.format' = 'json', 'value.format' = 'json', 'properties.register.producer.metrics' = 'false'
)"""
SIDES = {
    "shown": "ad STRING, cost INT, `at` TIMESTAMP_LTZ(3)",
    "clicked": "ad STRING, `at` TIMESTAMP_LTZ(3)",
}
PAIRS = """
INSERT INTO counts SELECT 0, `minute`, COUNT(*), SUM(cost) FROM (
  SELECT DATE_FORMAT(s.`at`, 'yyyy-MM-dd HH:mm') AS `minute`, s.cost FROM shown s JOIN clicked c
  ON s.ad = c.ad AND c.`at` BETWEEN s.`at` AND s.`at` + INTERVAL '1' HOUR
) GROUP BY `minute`;
"""


class Asked(Protocol):
    """A job in SQL."""

    def tables(self) -> list[str]:
        """Define what is read and what is written."""

    def job(self) -> str:
        """Make one job of all that is written."""


@dataclass(frozen=True)
class Clock:
    """How event time is read: its type, and where its window of ten seconds begins, with the type of that."""

    time: str
    window: str
    begin: str


PARSED = Clock(
    "TIMESTAMP_LTZ(3)",
    "INT",
    f"TIMESTAMPDIFF(SECOND, TO_TIMESTAMP_LTZ(0, 3), event_time) / {WINDOW} * {WINDOW}",
)
TEXT = Clock("STRING", "STRING", "SUBSTRING(event_time, 1, 18) || '0Z'")
"""A third of Flink's time goes into parsing time; ten seconds can be told by the first digits."""


@dataclass(frozen=True)
class Work:
    """One job; ``bounded`` ends it at the offsets there are when it starts.

    The counts are updated all the time in a topic whose newest value of a key holds, at least once. The archive has
    every column of a record with its partition and offset. Without it Flink is spared what it can be: only the three
    columns asked for are parsed, and the time of none.
    """

    brokers: str
    topic: str
    counts: str
    archive: Path | None = None
    bounded: bool = False

    @property
    def clock(self) -> Clock:
        return PARSED if self.archive else TEXT

    def tables(self) -> list[str]:
        """Define what is read and what is written."""
        columns = (ALL if self.archive else ASKED).format(time=self.clock.time)
        read = columns + METADATA if self.archive else columns
        bound = BOUND if self.bounded else ""
        made = [
            ADS.format(columns=read, brokers=self.brokers, topic=self.topic, bound=bound),
            COUNTS.format(
                brokers=self.brokers, counts=self.counts, time=self.clock.time, window=self.clock.window
            ),
        ]
        return (
            [*made, ARCHIVE.format(columns=columns, archive=self.archive.as_uri())] if self.archive else made
        )

    def job(self) -> str:
        """Make one job of all that is written, so that the topic is read once."""
        count = COUNT.format(ads=PER_CAMPAIGN, begin=self.clock.begin)
        return f"EXECUTE STATEMENT SET BEGIN {KEEP if self.archive else ''}{count}END"


@dataclass(frozen=True)
class JoinWork:
    """One job that ends at the offsets there are when it starts: Flink's interval join, pairs counted by minute."""

    brokers: str
    topic: str
    counts: str
    archive: Path | None = None

    def tables(self) -> list[str]:
        """Define both topics, the counts, and an archive for each topic."""
        given = {"brokers": self.brokers, "topic": self.topic, "metadata": METADATA if self.archive else ""}
        made = [EVENTS.format(name=name, columns=columns, **given) for name, columns in SIDES.items()]
        made.append(PAIR_COUNTS.format(brokers=self.brokers, counts=self.counts))
        if self.archive:
            for name, columns in SIDES.items():
                text = ARCHIVE.format(columns=columns, archive=(self.archive / name).as_uri())
                made.append(text.replace("TABLE archive", f"TABLE archive_{name}"))
        return made

    def job(self) -> str:
        """Make one job of all that is written, so that each topic is read once."""
        kept = [f"INSERT INTO archive_{name} SELECT * FROM {name};" for name in SIDES if self.archive]
        return f"EXECUTE STATEMENT SET BEGIN {' '.join(kept)}{PAIRS}END"
