"""Which resource ends first, at which number, and the setting that moves it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from math import ceil, inf, log

from benchmarks.scale import answering, building, epoch, parsing, requests
from benchmarks.scale.compaction import History, Pace, kept_entries, simulate
from benchmarks.scale.load import Load
from benchmarks.scale.units import Units

HOURS = 1
"""That limits are worked out from."""
PARSE_TIMEOUT = 50.0
"""Seconds after which Airflow gives up on a DAG file ([dag_processor] dag_file_processor_timeout)."""
RECONCILE_EVERY = 120.0
"""Seconds (SEAMLINE_RECONCILE_SECONDS)."""
WORKER_MB = 4096.0
"""Stream.worker_memory."""
EVENLY, NEAR = 1.03, 0.1
MOST = 1e15


@cache
def hours_of(pace: Pace, upkeep: float, hours: int = HOURS) -> History:
    """Simulate some upkeeps, or hours where they are hourly."""
    epochs = max(1, ceil(hours * upkeep / pace.seconds))
    return simulate(pace, epochs=epochs, upkeep_epochs=max(1, round(upkeep / pace.seconds)))


class Costs:
    """What a load costs, each part worked out when it is asked for."""

    def __init__(self, load: Load, units: Units) -> None:
        self.load, self.units = load, units
        self.epoch, self.period = epoch.steady_epoch(load, units)

    @cached_property
    def pace(self) -> Pace:
        """At which tables grow."""
        return epoch.pace_of(self.load, self.epoch, self.period)

    @cached_property
    def history(self) -> History:
        """What an upkeep meets."""
        return hours_of(self.pace, self.load.upkeep)

    @cached_property
    def run(self) -> building.RunCost:
        """The run of an interval."""
        return building.cost_of_run(self.load, self.period, self.units)

    @cached_property
    def requests(self) -> requests.Requests:
        """Of a second, of one pipeline: epochs and what goes on beside them; none on a disk."""
        if not self.load.on_store:
            return {}
        commits = requests.count_epoch(self.load.views, self.epoch.tasks, self.units)
        beside = requests.count_beside(self.load.views, self.load.serve_every, self.units)
        return {kind: commits[kind] / self.period + beside.get(kind, 0.0) for kind in commits}

    @cached_property
    def largest(self) -> epoch.EpochCost:
        """The largest epoch that settings allow."""
        return epoch.largest_epoch(self.load, self.units)

    @property
    def most_events(self) -> float:
        """Events a second that the stream keeps up with."""
        return epoch.most_events(self.load, self.units)

    @property
    def stream_mb(self) -> float:
        """Memory of one stream's processes."""
        return epoch.stream_megabytes(self.load, self.epoch, self.units)

    @property
    def entry_bytes(self) -> float:
        """Of the master's log, each epoch."""
        return self.units.total(epoch.entry_terms(self.load.partitions))

    @property
    def cores(self) -> float:
        """Cores that a stream keeps busy."""
        return self.epoch.cpu / self.period


@dataclass(frozen=True)
class Resource:
    """Something that ends: the share of it that a load uses, and the setting that moves it."""

    name: str
    used: Callable[[Costs], float]
    knob: str
    """A field of a definition, or a variable."""
    how: str
    """What to do with the setting."""


@dataclass(frozen=True)
class Limit:
    """How much of a resource a load uses."""

    resource: Resource
    used: float
    """The share of what there is; above 1 it does not suffice."""
    knob: str
    how: str

    @property
    def name(self) -> str:
        """What it is."""
        return self.resource.name


def share_of_trigger(costs: Costs) -> float:
    """Return how many triggers the epoch of one trigger's events takes; 0 if epochs follow each other at once."""
    load = costs.load
    if not load.trigger:
        return 0.0
    records = min(max(load.events * load.trigger, 1.0), load.max_offsets)
    return epoch.cost_of_epoch(load, records, costs.units).seconds(load.cores) / load.trigger


def share_of_puts(costs: Costs) -> float:
    """Return the share of the PUTs that a store takes of one pipeline."""
    return costs.requests.get("PUT", 0.0) / costs.units["store.put"]


def share_of_gets(costs: Costs) -> float:
    """Return the share of the GETs that a store takes of one pipeline and its readers."""
    readers = costs.load.answers * costs.units["answer.news.get"] if costs.load.on_store else 0.0
    return (costs.requests.get("GET", 0.0) + readers) / costs.units["store.get"]


def share_of_cores(costs: Costs) -> float:
    """Return the share of a machine's cores that the streams of all pipelines keep busy; of one, others tell."""
    return costs.load.pipelines * costs.cores / costs.load.cores if costs.load.pipelines > 1 else 0.0


def share_of_disk(costs: Costs) -> float:
    """Return the share of a disk that the master's log takes."""
    kept = kept_entries("master", costs.period, costs.load.upkeep)
    return costs.entry_bytes * kept / 1e9 / costs.load.disk_gb


STREAM, EPOCHS = "the stream", "epochs as often as asked"
RESOURCES = (
    Resource(STREAM, lambda c: c.load.events / c.most_events, "Stream.master", "more cores"),
    Resource(EPOCHS, share_of_trigger, "Stream.trigger", "fewer epochs"),
    Resource(
        "a task's memory",
        lambda c: epoch.worker_megabytes(c.load, c.epoch, c.units) / WORKER_MB,
        "Stream.parts",
        "more parts",
    ),
    Resource(
        "memory of a machine of streams",
        lambda c: c.load.pipelines * c.stream_mb / 1024 / c.load.machine_gb,
        "Stream.memory",
        "less heap, more machines",
    ),
    Resource(
        "cores of a machine of streams", share_of_cores, "Stream.trigger", "fewer epochs, more machines"
    ),
    Resource(
        "serving tables",
        lambda c: answering.serving_seconds(c.load, c.units) / c.load.serve_every,
        "Stream.serve_every",
        "refresh less often",
    ),
    Resource(
        "memory of who shows an interval",
        lambda c: c.units.total(answering.showing_terms(c.load.keys)) / 1024 / c.load.machine_gb,
        "Batch.interval",
        "shorter intervals",
    ),
    Resource(
        "the run of an interval",
        lambda c: c.run.seconds(c.load.cores) / c.load.interval,
        "Batch.interval",
        "longer intervals",
    ),
    Resource(
        "memory of who reads all intervals",
        lambda c: (
            building.manifest_megabytes(c.load.intervals * c.load.views, c.units) / 1024 / c.load.machine_gb
        ),
        "Batch.interval",
        "longer intervals",
    ),
    Resource(
        "upkeep",
        lambda c: building.upkeep_seconds(c.load, c.history, c.units) / c.load.upkeep,
        "Stream.trigger",
        "larger epochs: files of 400,000 records stay",
    ),
    Resource(
        "answers",
        lambda c: c.load.answers * answering.answer_cpu(c.load, c.units),
        "SEAMLINE_STORE_MAX_AGE",
        "older answers, more servers",
    ),
    Resource(
        "the parse of definitions",
        lambda c: parsing.parse_seconds(c.load, c.units, changed=True) / PARSE_TIMEOUT,
        "SEAMLINE_PIPELINES",
        "a folder for each of several Airflows",
    ),
    Resource(
        "the look at streams",
        lambda c: parsing.reconcile_seconds(c.load, c.units) / RECONCILE_EVERY,
        "SEAMLINE_RECONCILE_SECONDS",
        "look less often",
    ),
    Resource("the master's log on a disk", share_of_disk, "Stream.trigger", "fewer epochs"),
    Resource("PUTs of a pipeline", share_of_puts, "Stream.trigger", "fewer epochs"),
    Resource("GETs of a pipeline", share_of_gets, "Stream.trigger", "fewer epochs"),
)


def limit_by(resource: Resource, costs: Costs) -> Limit:
    """Say how much of a resource is used; of a stream it depends on what has most of the work."""
    used = resource.used(costs)
    each = costs.largest if resource.name == STREAM else costs.epoch
    busy = each.busy(costs.load.cores)
    of_tasks = each.parallel / busy > each.serial + each.waiting
    waits = each.seconds(costs.load.cores) < costs.load.trigger
    if resource.name == STREAM and (waits or not of_tasks):
        return Limit(resource, used, "Stream.max_offsets_per_epoch", "larger epochs")
    if resource.name == EPOCHS and costs.load.partitions > epoch.CONSUMERS:
        return Limit(resource, used, resource.knob, "fewer epochs, more consumers kept")
    if resource.name == EPOCHS and of_tasks and busy == costs.load.cores:
        return Limit(resource, used, "Stream.master", "more cores")
    return Limit(resource, used, resource.knob, resource.how)


def list_limits(load: Load, units: Units) -> list[Limit]:
    """List all resources, what is used most first."""
    costs = Costs(load, units)
    return sorted((limit_by(each, costs) for each in RESOURCES), key=lambda limit: -limit.used)


def most_of(load: Load, dimension: str, units: Units, resource: Resource) -> float:
    """Return the largest value of a dimension for which a resource suffices; 0 for none, inf if nothing bounds it."""

    def used(value: float) -> float:
        given: float = max(1, round(value)) if dimension == "partitions" else value
        return resource.used(Costs(replace(load, **{dimension: given}), units))

    low = high = float(getattr(load, dimension))
    while used(high) <= 1:
        low, high = high, high * 10
        if high > MOST:
            return inf
    while used(low) > 1:
        low, high = low / 10, low
        if low < 1:
            return 0.0
    few, many = used(low), used(high)
    while high / low > EVENLY:
        # Along a straight line between logarithms, but never so near to an end that the other one stays far.
        share = min(max(log(1 / few) / log(many / few), NEAR), 1 - NEAR)
        middle = low * (high / low) ** share
        found = used(middle)
        if found <= 1:
            low, few = middle, found
        else:
            high, many = middle, found
    return low
