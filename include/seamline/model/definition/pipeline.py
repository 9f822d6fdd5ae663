"""What a user declares: one frozen Pipeline, from which both layers follow."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seamline.model.definition.formats import Format
from seamline.model.definition.windows import Window
from seamline.model.measures import Measure
from seamline.model.protocol.watermark import Watermark
from seamline.model.user_code import name_of

PACKAGE = str(Path(__file__).resolve().parents[2])


@dataclass(frozen=True)
class Origin:
    """Where the author wrote it."""

    file: str
    line: int


def find_caller_origin() -> Origin:
    """Find the nearest caller outside this package (and outside generated dataclass code)."""
    frame = sys._getframe(1)
    while frame.f_back and frame.f_code.co_filename.startswith((PACKAGE, "<")):
        frame = frame.f_back
    return Origin(frame.f_code.co_filename, frame.f_lineno)


def declare_origin_field() -> Origin:
    """Declare the field that keeps the author's line; it takes no part in equality or fingerprints."""
    return field(default_factory=find_caller_origin, compare=False, repr=False, kw_only=True)


DIGITS, EXACT, ROUNDED = "digits", "exact", "rounded"
"""How a number becomes a DECIMAL: by its own digits; by them in JSON, CSV and text alone; as earlier releases did."""


@dataclass(frozen=True)
class KafkaSource:
    """A topic, or several that are read as one, how records are read, and what their event time is.

    ``schema`` is Spark DDL; a column that must be there is ``NOT NULL``, as are the event time and the
    columns of ``event_id`` without saying so. ``max_future`` and ``max_past`` ("" for no bound; unsaid, the
    pipeline's ``defaults`` decide) bound event time against the Kafka timestamp. ``event_time`` is a column,
    ``_kafka_timestamp``, or ``processing_time()``. An event more than ``very_late`` behind the watermark is counted
    as very late. ``added`` lists columns that the topic got later, one each, in the order they came; none is NOT NULL.
    With ``dedup_within`` the stream too takes out a record whose ``event_id`` the same interval has: as long as
    the first one's event time is not further than that behind the watermark.

    A record of more than ``max_record_bytes`` (value and key, as they are once decompressed), or a JSON object of more
    than ``max_record_parts`` members and items, is refused before anything is made of it. A task's part of an epoch
    opens at most ``max_stray_intervals`` further than ``very_late`` from Kafka's timestamps.
    ``decimals`` is ``digits``; ``exact`` and ``rounded`` are in what earlier releases stored, which read others, or
    all, through a double.
    """

    topic: str | Sequence[str]
    schema: str
    event_time: str
    event_id: Sequence[str] = ()
    connection: str = "kafka_default"
    format: str | Format = "json"
    watermark: Watermark = Watermark()
    max_future: str = "1 day"
    max_past: str | None = None
    very_late: str = "1 day"
    added: Sequence[str] = ()
    dedup_within: str = ""
    max_record_bytes: int = 64_000_000
    max_record_parts: int = 500_000
    max_stray_intervals: int = 1_000
    decimals: str = DIGITS
    origin: Origin = declare_origin_field()

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics by name; every epoch is over all of them."""
        return (self.topic,) if isinstance(self.topic, str) else tuple(self.topic)


@dataclass(frozen=True)
class Rule:
    """A named condition that every record must meet; one that does not is quarantined with the name."""

    name: str
    condition: str
    origin: Origin = declare_origin_field()


@dataclass(frozen=True)
class Lookup:
    """A table that is joined to records, or to answers, by key: ``on`` is {column of the table: expression}.

    ``table`` is a csv or Parquet file or the folder of a Delta table (a path in the folder of definitions, or an
    absolute one), or ``module:function`` of a function that gives an Arrow or pandas table. ``columns`` are
    ``name`` for text, else ``name TYPE``; a row has them by ``prefix`` (the look-up's name and an underscore) and
    name.
    """

    name: str
    table: str
    on: Mapping[str, str]
    columns: Sequence[str]
    prefix: str = ""
    origin: Origin = declare_origin_field()


@dataclass(frozen=True)
class Expect:
    """What a certified generation's presented column must look like, checked with Great Expectations."""

    column: str
    at_least: float | None = None
    at_most: float | None = None
    not_null: bool = False
    origin: Origin = declare_origin_field()


@dataclass(frozen=True)
class View:
    """Keyed, windowed measures over the master; ``where`` keeps the rows that count.

    ``explode`` (``{"item": "array"}``) makes a row of each item; keys, measures and ``where`` may use ``item``.

    ``grouping_sets`` lists sets of the keys: the view has a row per window for each of them, as SQL's GROUPING
    SETS; all come from the same slices. Without any there is one set, of all keys.
    """

    name: str
    keys: Sequence[str]
    window: Window
    measures: Mapping[str, Measure]
    where: str = ""
    explode: Mapping[str, str] = field(default_factory=dict)
    expect: Sequence[Expect] = ()
    grouping_sets: Sequence[Sequence[str]] = ()
    origin: Origin = declare_origin_field()


DURABILITY = ("replay", "fsync")
"""What a power cut may do to a stream's newest epochs, the weaker first."""


@dataclass(frozen=True)
class Stream:
    """How the speed layer runs: trigger, epoch size, how often cuts may fall, how fresh serving is kept.

    An epoch begins ``trigger`` after the one before; with "0 seconds" as soon as there is something to read.
    An epoch reads at most ``max_offsets_per_epoch``, and fewer where it would take much longer than
    ``epoch_target``. A stream that has something to read and holds no epoch for ``stuck_after`` is started anew.
    ``master`` is Spark's, ``memory`` its driver's heap; a Python worker that wants more than ``worker_memory`` fails,
    and the record that made it is found; a build's fails its build. ``durability`` says what a power cut may do to the
    newest epochs: with ``replay`` those of the last seconds may be lost, and are read from Kafka again; with ``fsync``
    each is on disk before it counts.
    """

    trigger: str = "1 second"
    max_offsets_per_epoch: int = 1_000_000
    epoch_target: str = "10 seconds"
    stuck_after: str = "2 minutes"
    master: str = "local[2]"
    memory: str = "2g"
    worker_memory: str = "4g"
    edge_epochs: int = 30
    edge_every: str = "1 minute"
    serve_every: str = "10 seconds"
    durability: str = DURABILITY[0]


@dataclass(frozen=True)
class Batch:
    """How the batch layer runs: the interval of work and the first instant the pipeline knows.

    A run takes at most ``max_dirty`` intervals that nobody asked for by name: by turns the
    oldest debt, the one of most rows and the newest interval. A run that is
    asked for more than ``approve_above`` intervals waits until a person approves its plan; 0 is never. With
    ``fresh_within`` an interval is overdue when it is not published so long after its end, by the clock. With
    ``provisional`` intervals are built and published before they close, and once more when they have. Upkeep
    deletes generations but the published ones and the last ``keep_generations`` that were published before; 0
    keeps all.
    """

    interval: str
    start: str
    max_dirty: int = 30
    approve_above: int = 0
    fresh_within: str = ""
    provisional: bool = False
    keep_generations: int = 0


@dataclass(frozen=True)
class Pipeline:
    """One source, its rules and its views: declared once, run by both layers.

    ``select`` derives columns (name: expression, which may use those before it). A record for which ``where``
    is not true is accepted and in no view. ``side`` routes records to a named side (name: condition).
    ``transform`` is a function of Arrow tables, or its name ``module:function``, which is what is kept; it adds
    the columns of ``transform_schema``. Another ``transform_version`` says that it means something else by now.

    ``on_failure`` and ``on_late`` are ``module.function``: called with the context of a task that has failed, and with
    ``pipeline=`` and ``interval=`` once for each interval that is overdue. So is ``on_alert``, with ``pipeline=``,
    ``alert=``, ``state="raised"`` or ``"cleared"``, and ``message=``, once for each alert about the stream.

    ``defaults`` is the month whose defaults hold for what is not said; without it those of before 2026-11 do.
    """

    name: str
    source: KafkaSource
    views: Sequence[View]
    batch: Batch
    rules: Sequence[Rule] = ()
    select: Mapping[str, str] = field(default_factory=dict)
    where: str = ""
    side: Mapping[str, str] = field(default_factory=dict)
    transform: str | Callable[..., Any] = ""
    transform_schema: str = ""
    transform_version: str = ""
    lookups: Sequence[Lookup] = ()
    stream: Stream = Stream()
    owner: str = "airflow"
    tags: Sequence[str] = ()
    retries: int = 1
    on_failure: str = ""
    on_late: str = ""
    on_alert: str = ""
    description: str = ""
    defaults: str = ""
    origin: Origin = declare_origin_field()

    def __post_init__(self) -> None:
        object.__setattr__(self, "transform", name_of(self.transform))
