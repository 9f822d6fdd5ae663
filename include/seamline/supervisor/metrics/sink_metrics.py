"""Sinks in numbers: which are up, and how far each is behind what is served."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from seamline.lake.storage.layout import locate_tables
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.sinks.sink_states import PipelineSinks, SinkState, read_sink_states
from seamline.supervisor.metrics.metric_families import Family, Samples, collect_families

log = logging.getLogger("seamline.metrics")


def sample_sinks(value: Callable[[SinkState], float | None]) -> Callable[[PipelineSinks], Samples]:
    """Make a sample of each sink."""
    return lambda found: (((each.sink,), value(each)) for each in found.sinks)


SINK_FAMILIES: tuple[Family[PipelineSinks], ...] = (
    Family(
        "seamline_sink_up",
        "1 if the sink's process, on this host, sends or waits for what is new; 0 if it failed or says nothing.",
        sample_sinks(lambda each: float(each.up)),
        ("sink",),
    ),
    Family(
        "seamline_sink_behind_versions",
        "Versions of the serving table from the one that the target shows to the newest.",
        sample_sinks(lambda each: each.behind),
        ("sink",),
    ),
    Family(
        "seamline_sink_behind_seconds",
        "How long ago the target's version was written, if it is not the newest; 0 if it is.",
        sample_sinks(lambda each: each.behind_seconds),
        ("sink",),
    ),
    Family(
        "seamline_sink_changes_total",
        "Changes that the sink's process has sent since it was started.",
        sample_sinks(lambda each: each.sent),
        ("sink",),
    ),
)


@dataclass(eq=False)
class Sinks(Collector):
    """Reads how the sinks of all pipelines do whenever it is scraped."""

    pipelines: Callable[[], Mapping[str, CompiledPipeline]]
    """Gives the pipelines as they are now, by name."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Taken while one scrape reads: others wait."""

    def collect(self) -> Iterator[Metric]:
        """Collect the metrics."""
        with self.lock:
            found = [*self.read()]
        return collect_families(SINK_FAMILIES, found)

    def read(self) -> Iterator[PipelineSinks]:
        """Read what is to be known; a pipeline that cannot be read ends no scrape."""
        now = datetime.now(UTC)
        for name, pipeline in self.pipelines().items():
            if not pipeline.definition.sinks:
                continue
            try:
                yield read_sink_states(pipeline, locate_tables(name), now)
            except Exception as error:  # noqa: BLE001 - whatever is broken, the rest is shown
                log.warning("Sinks of %s: %s: %s", name, type(error).__name__, error)
