"""An epoch: how many records it has, the CPU it takes, how long it lasts, and what memory its processes need."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.scale.compaction import Pace, count_epoch_tasks
from benchmarks.scale.load import SHIPPED, Load, seconds_of
from benchmarks.scale.requests import commit_trips
from benchmarks.scale.units import Terms, Units
from seamline.plan.stream.epoch_numbers import FEWEST
from seamline.plan.stream.epoch_parts import LEAST_STATES

TOO_LONG = 1.5
"""Times ``epoch_target``: an epoch that takes longer makes the next ones smaller (``next_size``)."""
HALVINGS = 60
CONSUMERS = 64
"""Kafka consumers that Spark's tasks keep in a process (spark.kafka.consumer.cache.capacity)."""
CORES_OF_A_TASK = 2
"""A thread of the JVM reads, and a Python worker validates and counts."""
EDGE_EVERY = seconds_of(SHIPPED.edge_every)


def epoch_terms(records: float, tasks: float, views: float, lanes: float, cached: float = CONSUMERS) -> Terms:
    """Return what an epoch pays of each unit, in CPU of all processes but the JVM's compilers.

    Where there are more partitions than consumers are kept, as many as are too many are opened each time.
    """
    return {
        "epoch.fixed": 1,
        "epoch.task": tasks,
        "epoch.lane": lanes,
        "epoch.consumer": max(0.0, lanes - cached),
        "epoch.view": views,
        "event": records,
        "event.view": records * views,
    }


def lane_terms(lanes: float) -> Terms:
    """Return what the commits of an epoch pay for files and positions of so many partitions."""
    return {"commit.lanes": 1, "lane": lanes}


def jvm_terms(lanes: float) -> Terms:
    """Return the memory of a driver's JVM, in MB."""
    return {"driver.jvm": 1, "driver.jvm.lane": lanes}


def entry_terms(lanes: float) -> Terms:
    """Return the bytes of the master's entry for an epoch of so many partitions."""
    return {"entry": 1, "entry.lane": lanes}


@dataclass(frozen=True)
class EpochCost:
    """One epoch of a load."""

    records: float
    tasks: int
    states: float
    """Of all views, after tasks have merged their own."""
    in_parts: bool
    """Whether parts merge the states, and not the driver."""
    serial: float
    """Seconds that no core more makes shorter, without the store."""
    parallel: float
    """CPU seconds of tasks."""
    waiting: float
    """Seconds of round trips in a row."""

    @property
    def cpu(self) -> float:
        """CPU seconds."""
        return self.serial + self.parallel

    def seconds(self, cores: float) -> float:
        """Return how long it lasts on so many cores."""
        return self.serial + self.parallel / self.busy(cores) + self.waiting

    def busy(self, cores: float) -> float:
        """Return how many of so many cores tasks keep busy."""
        return min(cores, CORES_OF_A_TASK * self.tasks)


def cost_of_epoch(load: Load, records: float, units: Units) -> EpochCost:
    """Work out an epoch of so many records.

    The fixed part, a view's commit, a partition's file and the states that the driver merges are one core's; records
    and tasks are any core's.
    """
    tasks = count_epoch_tasks(records, load.partitions)
    per_task = min(records / tasks, load.keys * load.panes)
    states = per_task * tasks * load.views
    in_parts = states >= LEAST_STATES
    terms = dict(epoch_terms(records, tasks, load.views, load.partitions))
    merging = states * units["state"]
    own = units.total({name: terms.pop(name) for name in ("epoch.fixed", "epoch.view")})
    positions = min(units["lane"], units["epoch.lane"]) * terms["epoch.lane"]
    serial = own + positions + (0.0 if in_parts else merging)
    parallel = units.total(terms) - positions + (merging if in_parts else 0.0)
    trips = commit_trips(load.views) + 1 if load.on_store else 0
    return EpochCost(records, tasks, states, in_parts, serial, parallel, trips * load.round_trip)


def largest_epoch(load: Load, units: Units) -> EpochCost:
    """Return the largest epoch that its settings allow: of as many offsets, and in the time that one may take."""
    most = cost_of_epoch(load, load.max_offsets, units)
    bound = TOO_LONG * load.epoch_target
    if most.seconds(load.cores) <= bound:
        return most
    low, high = min(FEWEST, load.max_offsets), load.max_offsets
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if cost_of_epoch(load, middle, units).seconds(load.cores) <= bound:
            low = middle
        else:
            high = middle
    return cost_of_epoch(load, low, units)


def most_events(load: Load, units: Units) -> float:
    """Return the events a second that the largest epochs, back to back, keep up with."""
    largest = largest_epoch(load, units)
    return largest.records / max(largest.seconds(load.cores), load.trigger)


def steady_epoch(load: Load, units: Units) -> tuple[EpochCost, float]:
    """Return the epoch at which the stream settles, and the seconds from one to the next.

    Whoever has more to read than the largest epochs take, takes those.
    """
    largest = largest_epoch(load, units)
    period = load.trigger
    for _ in range(HALVINGS):
        epoch = cost_of_epoch(load, min(max(load.events * period, 1.0), largest.records), units)
        period = max(load.trigger, epoch.seconds(load.cores))
    return epoch, period


def pace_of(load: Load, epoch: EpochCost, period: float) -> Pace:
    """Return the pace at which tables grow, with two digits of each: a simulation is made once for many loads."""
    edges = max(1, min(load.edge_epochs, round(EDGE_EVERY / period)))
    distinct = load.keys * max(load.panes, 1)
    found = (period, epoch.records, epoch.states / load.views, distinct)
    seconds, records, states, most = (float(f"{each:.2g}") for each in found)
    return Pace(seconds, records, epoch.tasks, states, most, edges, load.event_bytes)


def driver_megabytes(load: Load, epoch: EpochCost, units: Units) -> float:
    """Return the memory of the driver's Python: states that it merges itself, and what it knows of partitions."""
    merged = 0.0 if epoch.in_parts else epoch.states
    entries = units.total(entry_terms(load.partitions)) / 2**20
    return units["driver.python"] + merged * units["state.mb"] + 4 * entries


def worker_megabytes(load: Load, epoch: EpochCost, units: Units) -> float:
    """Return the memory of a task's Python worker: its own states, or those of a part."""
    own = epoch.states / epoch.tasks
    part = epoch.states / max(load.cores, 1) if epoch.in_parts else 0.0
    return units["worker"] + max(own, part) * units["state.mb"]


def stream_megabytes(load: Load, epoch: EpochCost, units: Units) -> float:
    """Return the memory of a stream's processes together: JVM, driver, workers."""
    busy = min(load.cores, epoch.tasks)
    return (
        units.total(jvm_terms(load.partitions))
        + driver_megabytes(load, epoch, units)
        + busy * worker_megabytes(load, epoch, units)
    )
