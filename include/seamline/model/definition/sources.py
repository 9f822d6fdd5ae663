"""What a pipeline reads: topics of Kafka and Delta tables, how their records become rows, and what is joined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from seamline.model.definition.counts import Counts
from seamline.model.definition.format_base import Format
from seamline.model.definition.origin import Origin, declare_origin_field
from seamline.model.protocol.watermark import Watermark

DIGITS, EXACT, ROUNDED = "digits", "exact", "rounded"
"""How a number becomes a DECIMAL: by its own digits; by them in JSON, CSV and text alone; as earlier releases did."""

DELTA = "delta:"
"""What the name begins with by which the records of a Delta table are known; no topic's name has a colon."""


@dataclass(frozen=True)
class KafkaSource:
    """A topic, or several that are read as one, how records are read, and what their event time is.

    ``max_record_bytes``, ``max_record_parts`` and ``max_stray_intervals`` bound what one record, and one epoch of
    records with wrong event times, may cost.
    """

    topic: str | Sequence[str]
    """The topic's name, or the names of several."""
    schema: str
    """The columns as Spark DDL; ``NOT NULL`` refuses a record without one. Event time and event id are NOT
    NULL."""
    event_time: str
    """The TIMESTAMP column of event time, ``_kafka_timestamp``, or ``processing_time()``."""
    event_id: Sequence[str] = ()
    """The columns that identify an event; records with the ids of an earlier one are duplicates. None if
    empty."""
    connection: str = "kafka_default"
    """The id of the Airflow connection to Kafka."""
    format: str | Format = "json"
    """How the bytes of a record are read: "json", "csv", or a format with options."""
    watermark: Watermark = Watermark()
    """How far behind the newest event the watermark stays, and when a silent partition counts as idle."""
    max_future: str = "1 day"
    """How far event time may be ahead of the Kafka timestamp, as a duration."""
    max_past: str | None = None
    """How far it may be behind; "" for no bound, None for that of the pipeline's ``defaults``."""
    very_late: str = "1 day"
    """An accepted event further behind the watermark than this duration is counted as very late."""
    added: Sequence[str] = ()
    """Columns that the topic got later, as ``name TYPE`` each, in the order they came; none is NOT NULL."""
    dedup_within: str = ""
    """For how long, in event time, the stream removes duplicates of one interval by itself; "": builds alone
    do."""
    max_record_bytes: int = 64_000_000
    """Bytes of key and value, decompressed, beyond which a record is refused unread."""
    max_record_parts: int = 500_000
    """Members and items of a JSON record beyond which it is refused unread."""
    max_stray_intervals: int = 1_000
    """Intervals further than ``very_late`` from Kafka's time that one task may open in an epoch."""
    decimals: str = DIGITS
    """How numbers become DECIMALs; only definitions that were stored by earlier releases have another word
    here."""
    name: str = ""
    """The source's name, where a pipeline has several: the word of ``View(of=)`` and of the column
    ``_source``."""
    rules: Sequence[Rule] = ()
    """As ``Pipeline.rules``, of one of several sources; so are the next four."""
    select: Mapping[str, str] = field(default_factory=dict)
    """Derived columns."""
    where: str = ""
    """Which records are in views."""
    side: Mapping[str, str] = field(default_factory=dict)
    """Named sides."""
    lookups: Sequence[Lookup] = ()
    """Tables that are joined to its records."""
    key: Sequence[str] = ()
    """Where records are changes of a table's rows: the columns that say which row each is about; none if empty."""
    order: str = ""
    """The column whose greater value is the newer change of a row; "" for the order in which records were read."""
    deleted: str = ""
    """A condition on the columns: with this record its row was deleted; "" where none ever is."""
    counts: Counts | None = None
    """The topic in which producers say how many records they have sent; None for none."""
    origin: Origin = declare_origin_field()

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics by name; every epoch is over all of them."""
        return (self.topic,) if isinstance(self.topic, str) else tuple(self.topic)


@dataclass(frozen=True)
class DeltaSource:
    """A Delta table that others append to: each of its versions is read once, from the newest whole one on.

    A row becomes a record: its bytes are the row as JSON, its partition is 0, and its offset tells the version and the
    row's number in it. A version that rewrites or deletes rows stops the stream; compaction does not.
    """

    table: str
    """The folder of the table, absolute or the URL of one in a bucket."""
    schema: str
    """As ``KafkaSource.schema``; the table may have more columns."""
    event_time: str
    """The TIMESTAMP column of event time, or ``_kafka_timestamp`` for when a row's version was committed."""
    event_id: Sequence[str] = ()
    """As ``KafkaSource.event_id``."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """What is in a column of another name: a field, or ``_key``, ``_value`` or ``_kafka_timestamp`` of the record."""
    watermark: Watermark = Watermark()
    """How far behind the newest event the watermark stays, and when a table that nobody appends to counts as idle."""
    max_future: str = "1 day"
    """How far event time may be ahead of the record's timestamp, as a duration."""
    max_past: str | None = None
    """As ``KafkaSource.max_past``."""
    very_late: str = "1 day"
    """As ``KafkaSource.very_late``."""
    dedup_within: str = ""
    """As ``KafkaSource.dedup_within``."""
    max_stray_intervals: int = 1_000
    """As ``KafkaSource.max_stray_intervals``."""
    name: str = ""
    """As ``KafkaSource.name``; so are the next five."""
    rules: Sequence[Rule] = ()
    """Conditions that a record must meet."""
    select: Mapping[str, str] = field(default_factory=dict)
    """Derived columns."""
    where: str = ""
    """Which records are in views."""
    side: Mapping[str, str] = field(default_factory=dict)
    """Named sides."""
    lookups: Sequence[Lookup] = ()
    """Tables that are joined to its records."""
    origin: Origin = declare_origin_field()

    connection: ClassVar[str] = ""
    """It needs no Kafka."""
    format: ClassVar[str] = "json"
    """Rows are written as JSON."""
    added: ClassVar[Sequence[str]] = ()
    """A column that the table got later is declared in the schema."""
    decimals: ClassVar[str] = DIGITS
    """Numbers keep their digits."""
    key: ClassVar[Sequence[str]] = ()
    """Its rows are no changes of another table's rows."""
    order: ClassVar[str] = ""
    """As ``key``."""
    deleted: ClassVar[str] = ""
    """As ``key``."""
    counts: ClassVar[None] = None
    """Nobody says how many rows there should be."""
    max_record_bytes: ClassVar[int] = KafkaSource.max_record_bytes
    """As ``KafkaSource.max_record_bytes``."""
    max_record_parts: ClassVar[int] = KafkaSource.max_record_parts
    """As ``KafkaSource.max_record_parts``."""

    @property
    def topics(self) -> tuple[str, ...]:
        """The name by which its records are known, as those of a topic are by the topic's."""
        return (f"{DELTA}{self.table}",)


Source = KafkaSource | DeltaSource
"""What a pipeline may read."""


@dataclass(frozen=True)
class Rule:
    """A named condition that every record must meet; one that does not is quarantined with the name."""

    name: str
    """What the quarantine calls a record that does not meet it."""
    condition: str
    """A Spark SQL condition on the columns; NULL does not meet it."""
    origin: Origin = declare_origin_field()


@dataclass(frozen=True)
class Lookup:
    """A table that is joined to records, or to answers, by key; or, with ``every``, a table of rules for records."""

    name: str
    """The look-up's name."""
    table: str = ""
    """A csv or Parquet file or the folder of a Delta table, absolute or below the folder of definitions; or
    ``module:function`` of a function that returns an Arrow or pandas table."""
    on: Mapping[str, str] = field(default_factory=dict)
    """The expression that each key column of the table must equal, by the column's name; with ``every`` it may be
    empty."""
    columns: Sequence[str] = ()
    """The columns to join: ``name`` for text, else ``name TYPE``."""
    prefix: str = ""
    """What stands before their names in a row; by default the look-up's name and an underscore."""
    every: str = ""
    """The name of an array that a record gets instead of the columns: the values of the first of them in all rows
    that match, in ascending order. The columns themselves are there for ``where`` alone."""
    where: str = ""
    """A condition on a record and a row of the table, which then matches where it is true; it needs ``every``."""
    condition: str = ""
    """A column of the table that has a condition on the record in each row, which then matches where that is true;
    it needs ``every``."""
    of: str = ""
    """Another source of the pipeline, in place of ``table``: the newest record of each Kafka key is a row, which a
    tombstone removes. An epoch's own rules apply to all its records. It needs ``every``."""
    origin: Origin = declare_origin_field()
