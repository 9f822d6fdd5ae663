"""What Prometheus scrapes: all streams of this installation, published answers, sinks, indexes and topics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from prometheus_client import CollectorRegistry

from seamline.lake.storage.layout import definitions_folder
from seamline.plan.stream.observation import Observation
from seamline.supervisor.metrics.index_metrics import INDEX_FAMILIES, read_all_index_sizes
from seamline.supervisor.metrics.metric_families import Family, PipelineCollector
from seamline.supervisor.metrics.sink_metrics import SINK_FAMILIES, SinkReader
from seamline.supervisor.metrics.stream_metrics import FAMILIES
from seamline.supervisor.metrics.topic_metrics import TOPIC_FAMILIES, TopicReader
from seamline.supervisor.metrics.trust_metrics import TRUST_FAMILIES, TrustReader
from seamline.supervisor.metrics.unread_metrics import UNREAD_FAMILIES, list_unread
from seamline.supervisor.observe import observe_all, streams_of
from seamline.supervisor.watcher import Definitions

ALL_FAMILIES: tuple[Family, ...] = (  # type: ignore[type-arg]
    *FAMILIES,
    *TRUST_FAMILIES,
    *SINK_FAMILIES,
    *INDEX_FAMILIES,
    *TOPIC_FAMILIES,
    *UNREAD_FAMILIES,
)
"""Every metric that there is."""


def make_metrics_registry(*, broker: bool = True) -> CollectorRegistry:
    """Make a registry of all streams and pipelines, by the settings."""
    known = Definitions(definitions_folder())

    def look() -> Sequence[Observation]:
        return observe_all(streams_of(known.now()), broker=broker)

    trust, sinks, topics = TrustReader(known.now), SinkReader(known.now), TopicReader(known.now)
    parts: Mapping[str, Callable[[], Iterable[str]]] = {
        "answers": trust.list_unread,
        "sinks": lambda: sinks.unread,
        "topics": topics.list_unread,
    }
    made = CollectorRegistry()
    made.register(PipelineCollector(FAMILIES, look))
    made.register(PipelineCollector(TRUST_FAMILIES, trust.read))
    made.register(PipelineCollector(SINK_FAMILIES, sinks.read))
    made.register(PipelineCollector(INDEX_FAMILIES, lambda: read_all_index_sizes(streams_of(known.now()))))
    if broker:
        made.register(PipelineCollector(TOPIC_FAMILIES, topics.read))
    # The last: what the others could not read, it tells.
    made.register(PipelineCollector(UNREAD_FAMILIES, lambda: list_unread(known.now(), parts)))
    return made
