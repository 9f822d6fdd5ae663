"""A workload, as the model is asked for it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import isfinite

from seamline.model.definition.layers import Stream
from seamline.model.time.intervals import parse_duration

SHIPPED = Stream()


def seconds_of(duration: str) -> float:
    """Return the seconds of a duration as definitions spell it."""
    return parse_duration(duration).total_seconds()


class LoadRefused(ValueError):
    """The workload cannot be: facts and a hint."""


@dataclass(frozen=True)
class Load:
    """What one pipeline is given, what it runs with, and how many pipelines there are.

    The defaults of settings are those that a definition has that says nothing.
    """

    events: float = 20_000
    """Events a second."""
    event_bytes: float = 236
    """Bytes of an event as Kafka has it."""
    partitions: int = 16
    """Of the topic."""
    views: int = 2
    """Of the pipeline."""
    keys: float = 1_000
    """Groups of each view in an interval."""
    panes: float = 2
    """Panes of a view that an epoch's events fall into."""
    intervals: float = 720
    """Published intervals of each view."""
    interval: float = 3600
    """Seconds of an interval (Batch.interval)."""
    pipelines: float = 1
    """Pipelines of one Airflow, each with a stream."""
    answers: float = 1
    """Answers a second: each of one key of the newest interval, after an epoch."""
    cores: float = 2
    """Cores of the stream's tasks (Stream.master)."""
    machine_gb: float = 24
    """Memory of a machine of streams."""
    disk_gb: float = 1000
    """Of the warehouse's disk, or what its logs may take of a bucket."""
    trigger: float = seconds_of(SHIPPED.trigger)
    """Seconds (Stream.trigger)."""
    max_offsets: float = SHIPPED.max_offsets_per_epoch
    """Records (Stream.max_offsets_per_epoch)."""
    epoch_target: float = seconds_of(SHIPPED.epoch_target)
    """Seconds (Stream.epoch_target)."""
    edge_epochs: int = SHIPPED.edge_epochs
    """Epochs (Stream.edge_epochs)."""
    serve_every: float = seconds_of(SHIPPED.serve_every)
    """Seconds (Stream.serve_every)."""
    upkeep: float = 3600
    """Seconds between two upkeeps."""
    rtt: float | None = None
    """Milliseconds of a round trip to the bucket; None for a warehouse on a disk."""

    def __post_init__(self) -> None:
        """Refuse what cannot be: LoadRefused."""
        zero_is_fine = {"answers", "trigger", "rtt", "intervals"}
        for each in fields(self):
            value = getattr(self, each.name)
            if value is None:
                continue
            if not isinstance(value, int | float) or isinstance(value, bool) or not isfinite(value):
                raise LoadRefused(f"{each.name} is {value!r}.\n\nHint: it is a finite number.")
            if value < 0 or (value == 0 and each.name not in zero_is_fine):
                raise LoadRefused(f"{each.name} is {value:g}.\n\nHint: it is above zero.")

    @property
    def on_store(self) -> bool:
        """Whether the warehouse is in a bucket."""
        return self.rtt is not None

    @property
    def round_trip(self) -> float:
        """Return the seconds of a round trip; 0 on a disk."""
        return (self.rtt or 0.0) / 1000
