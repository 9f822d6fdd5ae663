"""What Prometheus scrapes: all streams of this installation, published answers, and sinks."""

from __future__ import annotations

from collections.abc import Sequence

from prometheus_client import CollectorRegistry

from seamline.lake.storage.layout import definitions_folder
from seamline.plan.stream.observation import Observation
from seamline.supervisor.metrics.metric_families import PipelineCollector
from seamline.supervisor.metrics.sink_metrics import SINK_FAMILIES, read_all_sinks
from seamline.supervisor.metrics.stream_metrics import FAMILIES
from seamline.supervisor.metrics.trust_metrics import TRUST_FAMILIES, TrustReader
from seamline.supervisor.observe import observe_all, streams_of
from seamline.supervisor.watcher import Definitions


def make_metrics_registry(*, broker: bool = True) -> CollectorRegistry:
    """Make a registry of all streams and pipelines, by the settings."""
    known = Definitions(definitions_folder())

    def look() -> Sequence[Observation]:
        return observe_all(streams_of(known.now()), broker=broker)

    made = CollectorRegistry()
    made.register(PipelineCollector(FAMILIES, look))
    made.register(PipelineCollector(TRUST_FAMILIES, TrustReader(known.now).read))
    made.register(PipelineCollector(SINK_FAMILIES, lambda: read_all_sinks(known.now())))
    return made
