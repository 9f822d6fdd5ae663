"""How the two layers of a pipeline run."""

from __future__ import annotations

from dataclasses import dataclass

from seamline.model.definition.restarts import ExponentialDelay, RestartPolicy

DURABILITY = ("replay", "fsync")
"""What a power cut may do to a stream's newest epochs, the weaker first."""
WHEN = ("scheduled", "closed")
"""When builds start by themselves."""


@dataclass(frozen=True)
class Stream:
    """How the speed layer runs. Durations are texts such as "10 seconds", sizes such as "2g"."""

    trigger: str = "1 second"
    """The time from the start of one epoch to the next; with "0 seconds" an epoch begins when there is
    something to read."""
    max_offsets_per_epoch: int = 1_000_000
    """The most offsets that an epoch reads."""
    epoch_target: str = "10 seconds"
    """How long an epoch may take before the next ones read less."""
    stuck_after: str = "2 minutes"
    """A driver with records to read that commits no epoch for so long is restarted."""
    restart: RestartPolicy = ExponentialDelay()
    """When a driver that has failed is started again, and when the supervisor gives up."""
    master: str = ""
    """Spark's master; "" for the one that SEAMLINE_SPARK_MASTER names where the stream runs, else "local[2]"."""
    memory: str = "2g"
    """The heap of Spark's driver."""
    worker_memory: str = "4g"
    """The memory of a Python worker. The record that needs more is refused; a build that does fails."""
    parts: int = 0
    """Into how many parts an epoch goes that has many keys, or whose event ids are compared: each part is the
    work of one of Spark's tasks. 0 for as many as tasks run at once. It may change from one start to the next."""
    fold_processes: int = 0
    """How many processes share the keys of a function, each with the memory of a worker. 0 for half of the machine's
    processors, at most 4. It may change from one start to the next."""
    edge_epochs: int = 30
    """The most epochs between two edges; a cut falls on an edge."""
    edge_every: str = "1 minute"
    """The longest time between two edges."""
    serve_every: str = "10 seconds"
    """How often the serving tables are refreshed."""
    durability: str = DURABILITY[0]
    """"replay": a power cut may take the epochs of the last seconds, which are read from Kafka again.
    "fsync": each epoch is on disk before it counts."""


@dataclass(frozen=True)
class Batch:
    """How the batch layer runs."""

    interval: str
    """The unit of a build, as a duration: "1 day"."""
    start: str
    """The first instant that the pipeline knows, ISO 8601, UTC unless it has an offset."""
    max_dirty: int = 30
    """The most dirty intervals that a run takes unasked: by turns the oldest, the one of most rows, the
    newest."""
    approve_above: int = 0
    """A run that is asked for more intervals waits for a person's approval; 0 for never."""
    approve_change: float = 0.0
    """An interval whose answers a rebuild changes by more waits for a person's approval, as a share: 0.05 for five
    percent; 0 for never."""
    fresh_within: str = ""
    """How long after its end, by the clock, an interval may be unpublished before it is overdue; "" for ever."""
    provisional: bool = False
    """Whether open intervals are built and published too, and again once they have closed."""
    keep_generations: int = 0
    """How many replaced generations upkeep leaves of each interval, beside the published one; 0 for all."""
    when: str = WHEN[0]
    """When Airflow starts builds: "scheduled" by the clock, "closed" also as soon as an interval has closed."""
