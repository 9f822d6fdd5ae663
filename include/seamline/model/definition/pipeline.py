"""What a user declares: one frozen Pipeline, from which both layers follow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from seamline.model.definition.alert_routes import AlertRoute
from seamline.model.definition.as_of import AsOf
from seamline.model.definition.asks import ROW, TOLD, Ask
from seamline.model.definition.changes import Changelog
from seamline.model.definition.expectations import Expectation
from seamline.model.definition.folds import Folded
from seamline.model.definition.formats import registry_of
from seamline.model.definition.joins import Join
from seamline.model.definition.layers import Batch, Stream
from seamline.model.definition.origin import Origin, declare_origin_field
from seamline.model.definition.sinks.sink_base import AnySink
from seamline.model.definition.sources import DELTA, DeltaSource, KafkaSource, Lookup, Rule, Source
from seamline.model.definition.windows import Window
from seamline.model.measures import Measure
from seamline.model.user_code import name_of

ANY_NUMBER, EVER = 10**9, "100000 days"
"""No bounds: an answer has the time of its row, which was within some."""


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
    source: KafkaSource | DeltaSource | Sequence[KafkaSource | DeltaSource]
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
    alerts: Sequence[AlertRoute] = ()
    """Notifiers of Airflow, each with the alerts that it gets."""
    derive: Sequence[Join | AsOf | Ask | Folded | Changelog] = ()
    """Rows derived from those of sources, which ``View(of=)`` names."""
    sinks: Sequence[AnySink] = ()
    """Where views' answers go beside their tables: topics and other systems."""
    description: str = ""
    """A sentence for the DAGs and pages."""
    defaults: str = ""
    """The month, as "2026-11", whose defaults apply to what is not set; "" for those of before 2026-11."""
    origin: Origin = declare_origin_field()

    def __post_init__(self) -> None:
        object.__setattr__(self, "transform", name_of(self.transform))

    @property
    def sources(self) -> tuple[Source, ...]:
        """The sources, in order; those of answers are last."""
        if isinstance(self.source, Source):
            return (self.source,)
        return (*self.source, *(declare_answers(self, ask) for ask in self.asks))

    @property
    def asks(self) -> tuple[Ask, ...]:
        """The questions that are asked of other systems."""
        return tuple(each for each in self.derive if isinstance(each, Ask))

    @property
    def only_source(self) -> Source:
        """The source of a pipeline that has one; TypeError where there are several."""
        if isinstance(self.source, Source):
            return self.source
        raise TypeError(f"{self.name} has {len(self.source)} sources")

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics of all sources, by name; of a Delta table the name by which its records are known."""
        return tuple(topic for source in self.sources for topic in source.topics)

    @property
    def kafka_topics(self) -> tuple[str, ...]:
        """The topics that Kafka has, by name."""
        return tuple(name for name in self.topics if not name.startswith(DELTA))

    @property
    def tables(self) -> tuple[DeltaSource, ...]:
        """The sources that are Delta tables."""
        return tuple(each for each in self.sources if isinstance(each, DeltaSource))

    @property
    def connection(self) -> str:
        """The id of the Airflow connection to Kafka, which all topics share; empty where there are none."""
        return next((each.connection for each in self.sources if each.connection), "")

    @property
    def registries(self) -> tuple[str, ...]:
        """The ids of the Airflow connections to schema registries, each once."""
        return tuple(sorted({name for each in self.sources if (name := registry_of(each.format))}))


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
        connection=like.connection or find_connection(pipeline),
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


def find_connection(pipeline: Pipeline) -> str:
    """Find the connection of a pipeline's topics; the default one where all its sources are tables."""
    declared = [pipeline.source] if isinstance(pipeline.source, Source) else pipeline.source
    return next((each.connection for each in declared if each.connection), KafkaSource.connection)
