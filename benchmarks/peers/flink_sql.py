"""What Flink is asked to do, in SQL: count views per campaign and ten seconds, alone or beside an archive."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.ads import PER_CAMPAIGN, WINDOW

ASKED = "ad_id INT, event_type STRING, event_time TIMESTAMP_LTZ(3)"
ALL = (
    "user_id STRING, page_id STRING, ad_id INT, ad_type STRING, event_type STRING, ip_address STRING, "
    "event_time TIMESTAMP_LTZ(3)"
)
METADATA = ", `partition` INT METADATA VIRTUAL, `offset` BIGINT METADATA VIRTUAL"
ADS = """
CREATE TABLE ads ({columns}) WITH (
  'connector' = 'kafka', 'properties.bootstrap.servers' = '{brokers}', 'topic' = '{topic}',
  'format' = 'json', 'json.timestamp-format.standard' = 'ISO-8601', 'scan.startup.mode' = 'earliest-offset'{bound}
)"""
BOUND = ", 'scan.bounded.mode' = 'latest-offset'"
COUNTS = """
CREATE TABLE counts (
  campaign INT, window_start INT, `views` BIGINT, last_view TIMESTAMP_LTZ(3),
  PRIMARY KEY (campaign, window_start) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'properties.bootstrap.servers' = '{brokers}', 'topic' = '{counts}',
  'key.format' = 'json', 'value.format' = 'json'
)"""
ARCHIVE = """
CREATE TABLE archive ({columns}, `partition` INT, `offset` BIGINT) WITH (
  'connector' = 'filesystem', 'path' = '{archive}', 'format' = 'parquet',
  'parquet.compression' = 'ZSTD', 'parquet.compression.codec.zstd.level' = '1',
  'parquet.write.int64.timestamp' = 'true', 'parquet.timestamp.time.unit' = 'millis'
)"""
KEEP = "INSERT INTO archive SELECT * FROM ads;\n"
COUNT = f"""
INSERT INTO counts SELECT campaign, window_start, COUNT(*), MAX(event_time) FROM (
  SELECT
    ad_id / {PER_CAMPAIGN} AS campaign, event_time,
    TIMESTAMPDIFF(SECOND, TO_TIMESTAMP_LTZ(0, 3), event_time) / {WINDOW} * {WINDOW} AS window_start
  FROM ads WHERE event_type = 'view'
) GROUP BY campaign, window_start;
"""


@dataclass(frozen=True)
class Work:
    """One job; ``bounded`` ends it at the offsets there are when it starts.

    The counts are updated all the time in a topic whose newest value of a key holds, at least once. The archive has
    every column of a record with its partition and offset; without it only the three columns asked for are parsed.
    """

    brokers: str
    topic: str
    counts: str
    archive: Path | None = None
    bounded: bool = False

    def tables(self) -> list[str]:
        """Define what is read and what is written."""
        columns = ALL + METADATA if self.archive else ASKED
        bound = BOUND if self.bounded else ""
        made = [
            ADS.format(columns=columns, brokers=self.brokers, topic=self.topic, bound=bound),
            COUNTS.format(brokers=self.brokers, counts=self.counts),
        ]
        return [*made, ARCHIVE.format(columns=ALL, archive=self.archive.as_uri())] if self.archive else made

    def job(self) -> str:
        """Make one job of all that is written, so that the topic is read once."""
        return f"EXECUTE STATEMENT SET BEGIN {KEEP if self.archive else ''}{COUNT}END"
