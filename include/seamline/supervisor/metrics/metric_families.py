"""What a metric is, and how a scrape asks for those of pipelines: https://prometheus.io/docs/practices/naming."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, Protocol, TypeVar

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

Samples = Iterator[tuple[Sequence[str], float | None]]


class OfPipeline(Protocol):
    """What is known of a pipeline."""

    @property
    def pipeline(self) -> str:
        """The pipeline's name."""


T = TypeVar("T", bound=OfPipeline)


@dataclass(frozen=True)
class Family(Generic[T]):
    """One metric. A counter's name ends in ``_total``."""

    name: str
    """As Prometheus has it: ``seamline_...``."""
    help: str
    """What it counts or measures, and in which unit."""
    of: Callable[[T], Samples]
    """Label values and number of each sample; a number of None is unknown, and left out."""
    labels: Sequence[str] = ()
    """Names of the labels after ``pipeline``."""


def make_unlabelled_sample(value: Callable[[T], float | None]) -> Callable[[T], Samples]:
    """Make a sample without labels."""
    return lambda found: iter([((), value(found))])


def to_unix_seconds(moment: datetime | None) -> float | None:
    """Write an instant as seconds since 1970."""
    return None if moment is None else moment.timestamp()


def collect_families(families: Iterable[Family[T]], known: Sequence[T]) -> Iterator[Metric]:
    """Collect all samples of some metrics of some pipelines."""
    for family in families:
        labels = ["pipeline", *family.labels]
        kind = CounterMetricFamily if family.name.endswith("_total") else GaugeMetricFamily
        metric = kind(family.name, family.help, labels=labels)
        for each in known:
            for values, sample in family.of(each):
                if sample is not None:
                    metric.add_metric([each.pipeline, *values], float(sample))
        yield metric


@dataclass(eq=False)
class PipelineCollector(Collector, Generic[T]):
    """Looks at pipelines whenever it is scraped."""

    families: Sequence[Family[T]]
    """The metrics."""
    look: Callable[[], Sequence[T]]
    """Returns what is known of each pipeline."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Taken while one scrape looks: others wait."""
    found: Sequence[T] = ()
    """What the last look found."""
    found_at: float = float("-inf")
    """When that was, on the monotonic clock."""

    def collect(self) -> Iterator[Metric]:
        """Collect the metrics of a fresh look; who has waited for another's end takes what that one found.

        Where a look takes longer than the time between two scrapes, there would be ever more that wait for their own.
        """
        came = time.monotonic()
        with self.lock:
            if self.found_at <= came:
                self.found = self.look()
                self.found_at = time.monotonic()
            return collect_families(self.families, self.found)
