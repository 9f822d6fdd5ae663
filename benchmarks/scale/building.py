"""Runs of the batch layer: planned, built, certified, compared, published; and upkeep."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.scale.compaction import History, kept_entries
from benchmarks.scale.load import Load
from benchmarks.scale.requests import listing_trips
from benchmarks.scale.units import Terms, Units

STEPS = ("plan", "build", "certify", "compare", "publish")
VIEWS = 2
"""Of the runs that were measured."""
IN_A_ROW = 12
"""Requests in a row with which a step of a run opens its tables in a bucket, and commits."""


def run_terms(step: str, intervals: float) -> Terms:
    """Return what a step of a run over so many intervals of two views pays."""
    return {f"run.{step}": 1, f"run.{step}.interval": intervals}


def manifest_terms(statements: float) -> Terms:
    """Return what it costs to read and fold a manifest of so many statements."""
    return {"manifest": 1, "manifest.statement": statements}


def publication_terms(statements: float) -> Terms:
    """Return what it costs to decide on a manifest of so many statements, and to commit one more."""
    return {"publish": 1, "publish.statement": statements}


def plan_terms(intervals: float) -> Terms:
    """Return what a plan costs, of a log and a manifest that have so many intervals."""
    return {"plan": 1, "plan.interval": intervals}


def manifest_megabytes(statements: float, units: Units) -> float:
    """Return the memory of a process that holds a manifest of so many statements."""
    return units.total({"process.mb": 1, "statement.mb": statements})


@dataclass(frozen=True)
class RunCost:
    """The run of one interval, with all its steps."""

    planning: float
    """CPU seconds of one process for what grows with history: manifest and log are read by each step."""
    building: float
    """CPU seconds for the interval itself."""
    waiting: float
    """Seconds of requests in a row."""

    def seconds(self, cores: float) -> float:
        """Return how long it lasts; a step's planning is one core's."""
        return self.planning + self.building / cores + self.waiting


def cost_of_run(load: Load, period: float, units: Units) -> RunCost:
    """Work out the run of one interval after all others are published: each of its steps is a process.

    Epochs are ``period`` seconds apart: each step lists what the logs keep.
    """
    statements = load.intervals * load.views
    planning = units.total(plan_terms(load.intervals)) + units.total(publication_terms(statements))
    planning += (len(STEPS) - 2) * units.total(manifest_terms(statements))
    rows = load.events * load.interval
    building = sum(units.total(run_terms(step, load.views / VIEWS)) for step in STEPS)
    building += rows * units["build.row"] * load.views + load.keys * load.views * units["build.key"]
    lists = sum(listing_trips(kept_entries(name, period, load.upkeep)) for name in ("master", "ledger"))
    lists += load.views * listing_trips(kept_entries("slices", period, load.upkeep))
    trips = len(STEPS) * (IN_A_ROW + lists) if load.on_store else 0
    return RunCost(planning, building, trips * load.round_trip)


def upkeep_terms(files: float, views: float) -> Terms:
    """Return what an upkeep pays that replaces so many small files of all tables."""
    return {"upkeep": 1, "upkeep.file": files, "upkeep.view": views}


def upkeep_seconds(load: Load, history: History, units: Units) -> float:
    """Return the seconds of an upkeep, in one process: files are read one after another.

    The ledger's files are as many as those of a view's slices.
    """
    times = max(history.upkeeps, 1)
    slices, master = (history.replaced[name] / times for name in ("slices", "master"))
    files = slices * (load.views + 1) + master
    opened = (history.footers["slices"] * (load.views + 1) + history.footers["master"]) / times
    cpu = units.total(upkeep_terms(files, load.views))
    cpu += max(0.0, opened - files) * units["upkeep.footer"]
    cpu += history.records_rewritten / times * units["upkeep.record"]
    cpu += history.states_rewritten / times * load.views * units["upkeep.state"]
    return cpu + (files * load.round_trip if load.on_store else 0.0)
