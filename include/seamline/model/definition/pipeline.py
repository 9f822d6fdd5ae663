"""What a user declares: one frozen Pipeline, from which both layers follow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from seamline.model.definition.asks import ROW, TOLD, Ask
from seamline.model.definition.expectations import Expectation
from seamline.model.definition.folds import Folded
from seamline.model.definition.formats import Format
from seamline.model.definition.joins import Join
from seamline.model.definition.layers import Batch, Stream
from seamline.model.definition.origin import Origin, declare_origin_field
from seamline.model.definition.windows import Window
from seamline.model.measures import Measure
from seamline.model.protocol.watermark import Watermark
from seamline.model.user_code import name_of

DIGITS, EXACT, ROUNDED = "digits", "exact", "rounded"
"""How a number becomes a DECIMAL: by its own digits; by them in JSON, CSV and text alone; as earlier releases did."""


ANY_NUMBER, EVER = 10**9, "100000 days"
"""No bounds: an answer has the time of its row, which was within some."""


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
    origin: Origin = declare_origin_field()

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics by name; every epoch is over all of them."""
        return (self.topic,) if isinstance(self.topic, str) else tuple(self.topic)


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


@dataclass(frozen=True)
class View:
    """Keyed, windowed measures over the master."""

    name: str
    """The view's name, unique in its pipeline."""
    keys: Sequence[str]
    """The columns to group by; none for one row a window."""
    window: Window
    """How time is cut."""
    measures: Mapping[str, Measure]
    """The measures by the names of their columns."""
    where: str = ""
    """A condition on the rows that count; all of them if empty."""
    explode: Mapping[str, str] = field(default_factory=dict)
    """``{"item": "array"}`` makes a row of each item of an array; keys, measures and ``where`` may use
    ``item``."""
    expect: Expectation | Sequence[Expectation] = ()
    """What each interval of a certified generation must meet."""
    grouping_sets: Sequence[Sequence[str]] = ()
    """Sets of the keys, as in SQL's GROUPING SETS: a row per window for each of them, from the same slices.
    If empty, the one set of all keys."""
    of: str | Sequence[str] = ""
    """The source whose rows it counts, where a pipeline has several; or several sources, whose common
    columns it then sees; or the name of derived rows."""
    origin: Origin = declare_origin_field()


@dataclass(frozen=True)
class Pipeline:
    """Sources, their rules and views over their rows: declared once, run by both layers.

    A pipeline of several sources names each, and each has its own ``rules``, ``select``, ``where`` and ``side``.

    The functions ``on_failure``, ``on_late`` and ``on_alert`` are named as ``module.function``; "" for none.
    """

    name: str
    """The pipeline's name, unique among the definitions."""
    source: KafkaSource | Sequence[KafkaSource]
    """Where records come from; several sources share one master and its epochs."""
    views: Sequence[View]
    """The views, one or more."""
    batch: Batch
    """How the batch layer runs."""
    rules: Sequence[Rule] = ()
    """Conditions that a record must meet to be accepted."""
    select: Mapping[str, str] = field(default_factory=dict)
    """Derived columns: the expression by name, which may use those before it."""
    where: str = ""
    """A record for which this condition is not true is accepted, and in no view."""
    side: Mapping[str, str] = field(default_factory=dict)
    """Named sides: the condition by name, which routes records to a side output."""
    transform: str | Callable[..., Any] = ""
    """A function of Arrow tables, or its name ``module:function``, which is what is stored."""
    transform_schema: str = ""
    """The columns that ``transform`` adds, as Spark DDL."""
    transform_rows: str = ""
    """The column, an ARRAY, for the rows that ``transform`` gives for a record, where it may give any number of
    them: views count these. "" where it gives one at most."""
    transform_version: str = ""
    """Any text; another one says that ``transform`` means something else from now on."""
    lookups: Sequence[Lookup] = ()
    """Tables that are joined to records or answers."""
    stream: Stream = Stream()
    """How the speed layer runs."""
    owner: str = "airflow"
    """The owner of the DAGs."""
    tags: Sequence[str] = ()
    """Tags of the DAGs."""
    retries: int = 1
    """How often Airflow retries a failed task."""
    on_failure: str = ""
    """Called with the context of a task that has failed, which has the pipeline's name as ``pipeline`` too."""
    on_late: str = ""
    """Called with ``pipeline=`` and ``interval=``, once for each interval that is overdue."""
    on_alert: str = ""
    """Called with ``pipeline=``, ``alert=``, ``state="raised"`` or ``"cleared"``, and ``message=``, once for
    each change."""
    derive: Sequence[Join | Ask | Folded] = ()
    """Rows derived from those of sources, which ``View(of=)`` names."""
    description: str = ""
    """A sentence for the DAGs and pages."""
    defaults: str = ""
    """The month, as "2026-11", whose defaults apply to what is not set; "" for those of before 2026-11."""
    origin: Origin = declare_origin_field()

    def __post_init__(self) -> None:
        object.__setattr__(self, "transform", name_of(self.transform))

    @property
    def sources(self) -> tuple[KafkaSource, ...]:
        """The sources, in order; those of answers are last."""
        if isinstance(self.source, KafkaSource):
            return (self.source,)
        return (*self.source, *(declare_answers(self, ask) for ask in self.asks))

    @property
    def asks(self) -> tuple[Ask, ...]:
        """The questions that are asked of other systems."""
        return tuple(each for each in self.derive if isinstance(each, Ask))

    @property
    def only_source(self) -> KafkaSource:
        """The source of a pipeline that has one; TypeError where there are several."""
        if isinstance(self.source, KafkaSource):
            return self.source
        raise TypeError(f"{self.name} has {len(self.source)} sources")

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics of all sources, by name."""
        return tuple(topic for source in self.sources for topic in source.topics)

    @property
    def connection(self) -> str:
        """The id of the Airflow connection to Kafka, which all sources share."""
        return self.sources[0].connection


def declare_answers(pipeline: Pipeline, ask: Ask) -> KafkaSource:
    """Declare the source of the answers to a question: their topic, and the columns of their records.

    An answer has the event time of its row, however late it comes.
    """
    named = (each.split(maxsplit=1) for each in ask.columns if each.strip())
    columns = {name: type[0] if type else "STRING" for name, *type in named}
    asked = next((each for each in pipeline.source if each.name == ask.of), None)  # type: ignore[union-attr]
    like = asked or KafkaSource(topic=ask.of, schema="", event_time="")
    declared = KafkaSource(
        topic=ask.topic or f"{pipeline.name}.{ask.name}.answers",
        schema=", ".join(f"{ask.named(name)} {type}" for name, type in {**ROW, **columns, **TOLD}.items()),
        event_time=ask.named("at"),
        connection=like.connection,
        watermark=like.watermark,
        max_future=EVER,
        max_past="",
        very_late=like.very_late,
        max_stray_intervals=ANY_NUMBER,
        name=ask.right,
        side=ask.side,
        origin=ask.origin,
    )
    if not like.event_id:
        return declared
    place = ask.named("place")
    made = {place: "concat_ws('/', _topic, CAST(_partition AS STRING), CAST(_offset AS STRING))"}
    return replace(declared, event_id=(place,), select=made, dedup_within=like.dedup_within)
