"""Which resource ends first, at which number, and the setting that moves it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from math import ceil, inf

from benchmarks.scale import answering, building, epoch, parsing, requests
from benchmarks.scale.compaction import History, Pace, simulate
from benchmarks.scale.epoch import EpochCost
from benchmarks.scale.load import Load
from benchmarks.scale.units import Units
from seamline.lake.storage.table_settings import KEPT, RETENTION, parse_log_retention

HOURS = 4
"""That limits are worked out from: upkeep has met what it has left itself."""
PARSE_TIMEOUT = 50.0
"""Seconds after which Airflow gives up on a DAG file ([dag_processor] dag_file_processor_timeout)."""
RECONCILE_EVERY = 120.0
"""Seconds (SEAMLINE_RECONCILE_SECONDS)."""
MASTER_KEEPS = parse_log_retention({RETENTION: KEPT["master"]}).total_seconds()
WORKER_MB = 4096.0
"""Stream.worker_memory."""
TASKS, DRIVER = "cores of tasks", "the driver's part of an epoch"
EVENLY = 1.01
MOST = 1e15


@dataclass(frozen=True)
class Costs:
    """What a load costs."""

    epoch: EpochCost
    """One epoch, as the stream settles."""
    period: float
    """Seconds from one to the next."""
    pace: Pace
    """At which tables grow."""
    history: History
    """Some upkeeps of it."""
    run: building.RunCost
    """The run of an interval."""
    requests: requests.Requests
    """Of a second, of one pipeline: epochs and what goes on beside them; none on a disk."""
    most_events: float
    """Events a second that the stream keeps up with."""
    stream_mb: float
    """Memory of one stream's processes."""
    entry_bytes: float
    """Of the master's log, each epoch."""


@dataclass(frozen=True)
class Limit:
    """One resource: how much of it a load uses."""

    name: str
    """What it is."""
    used: float
    """The share of what there is; above 1 it does not suffice."""
    knob: str
    """The setting that moves it: a field of a definition, or a variable."""
    how: str
    """What to do with the setting."""

    @property
    def kind(self) -> str:
        """The resource, whatever it is called: what bounds a stream has two names."""
        return "stream" if self.name in (TASKS, DRIVER) else self.name


@cache
def hours_of(pace: Pace, upkeep: float, hours: int = HOURS) -> History:
    """Simulate some upkeeps, or hours where they are hourly."""
    epochs = max(1, ceil(hours * upkeep / pace.seconds))
    return simulate(pace, epochs=epochs, upkeep_epochs=max(1, round(upkeep / pace.seconds)))


def cost_of(load: Load, units: Units) -> Costs:
    """Work out what a load costs."""
    each, period = epoch.steady_epoch(load, units)
    pace = epoch.pace_of(load, each, period)
    history = hours_of(pace, load.upkeep)
    asked: dict[str, float] = {}
    if load.on_store:
        commits = requests.count_epoch(load.views, each.tasks, units)
        beside = requests.count_beside(load.views, load.serve_every, units)
        asked = {kind: commits[kind] / period + beside.get(kind, 0.0) for kind in commits}
    return Costs(
        each,
        period,
        pace,
        history,
        building.cost_of_run(load, history, units),
        asked,
        epoch.most_events(load, units),
        epoch.stream_megabytes(load, each, units),
        units.total(epoch.entry_terms(load.partitions)),
    )


def list_limits(load: Load, units: Units) -> list[Limit]:
    """List all resources, what is used most first."""
    costs = cost_of(load, units)
    found = [
        limit_stream(load, costs, units),
        Limit(
            "a task's memory",
            epoch.worker_megabytes(load, costs.epoch, units) / WORKER_MB,
            "Stream.parts",
            "more parts",
        ),
        Limit(
            "memory of the streams' machine",
            load.pipelines * costs.stream_mb / 1024 / load.machine_gb,
            "Stream.memory",
            "less heap, and more machines",
        ),
        Limit(
            "serving tables",
            answering.serving_seconds(load, units) / load.serve_every,
            "Stream.serve_every",
            "refresh less often",
        ),
        Limit(
            "the run of an interval",
            costs.run.seconds(load.cores) / load.interval,
            "Batch.interval",
            "longer intervals",
        ),
        Limit(
            "memory of a planner",
            building.manifest_megabytes(load.intervals * load.views, units) / 1024 / load.machine_gb,
            "Batch.interval",
            "longer intervals",
        ),
        Limit(
            "upkeep",
            building.upkeep_seconds(load, costs.history, units) / load.upkeep,
            "Stream.trigger",
            "fewer, larger epochs",
        ),
        Limit(
            "answers",
            load.answers * answering.answer_cpu(load, units),
            "SEAMLINE_STORE_MAX_AGE",
            "older answers",
        ),
        Limit(
            "the parse of definitions",
            parsing.parse_seconds(load, units, changed=True) / PARSE_TIMEOUT,
            "SEAMLINE_PIPELINES",
            "a folder for each of several Airflows",
        ),
        Limit(
            "the look at streams",
            parsing.reconcile_seconds(load, units) / RECONCILE_EVERY,
            "SEAMLINE_RECONCILE_SECONDS",
            "look less often",
        ),
        Limit(
            "the master's log on a disk",
            costs.entry_bytes / costs.period * (MASTER_KEEPS + load.upkeep) / 1e9 / load.disk_gb,
            "Stream.trigger",
            "fewer epochs",
        ),
        *limit_store(load, costs, units),
    ]
    if load.pipelines > 1:
        used = load.pipelines * costs.epoch.cpu / costs.period / load.cores
        found.append(
            Limit("cores of the streams' machine", used, "Stream.trigger", "fewer epochs, more machines")
        )
    return sorted(found, key=lambda each: -each.used)


def limit_stream(load: Load, costs: Costs, units: Units) -> Limit:
    """Say how much of its time a stream is at work, and what most of that is."""
    largest = epoch.largest_epoch(load, units)
    if largest.parallel / load.cores > largest.serial + largest.waiting:
        name, knob, how = TASKS, "Stream.master", "more cores"
    else:
        name, knob, how = DRIVER, "Stream.max_offsets_per_epoch", "larger epochs"
    return Limit(name, load.events / costs.most_events, knob, how)


def limit_store(load: Load, costs: Costs, units: Units) -> list[Limit]:
    """Say how much of what a store takes a second is asked of it."""
    if not load.on_store:
        return []
    readers = load.answers * units["answer.news.get"]
    asked = (
        ("PUTs of a pipeline", costs.requests["PUT"], units["store.put"]),
        ("GETs of a pipeline", costs.requests["GET"] + readers, units["store.get"]),
    )
    return [Limit(name, many / most, "Stream.trigger", "fewer epochs") for name, many, most in asked]


def most_of(load: Load, dimension: str, units: Units, name: str) -> float:
    """Return the largest value of a dimension for which a resource suffices; inf if nothing bounds it."""
    kind = Limit(name, 0.0, "", "").kind

    def fits(value: float) -> bool:
        given: float = round(value) if dimension == "partitions" else value
        tried = replace(load, **{dimension: given})
        return all(each.used <= 1 for each in list_limits(tried, units) if each.kind == kind)

    low, high = 1.0, 1.0
    while fits(high):
        low, high = high, high * 10
        if high > MOST:
            return inf
    while high / low > EVENLY:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
