"""Many pipelines in one Airflow: definitions parsed, streams looked at."""

from __future__ import annotations

from math import ceil

from benchmarks.scale.load import Load
from benchmarks.scale.units import Terms, Units

AT_ONCE = 32
"""Streams that the reconcile task looks at side by side (``reconciling_all.AT_ONCE``)."""
TRIPS = 8
"""Requests in a row to look at one stream in a bucket: its control table, what its processes say, its alerts."""


def parse_terms(pipelines: float, *, changed: bool) -> Terms:
    """Return what a parse of so many definitions pays, all of them changed or none."""
    name = "parse.changed" if changed else "parse.unchanged"
    return {name: 1, f"{name}.pipeline": pipelines}


def reconcile_terms(pipelines: float) -> Terms:
    """Return what one look at so many streams pays."""
    return {"reconcile": 1, "reconcile.pipeline": pipelines}


def task_terms(pipelines: float) -> Terms:
    """Return what the start of a task pays: its own definition, and a list of the others' files."""
    return {"task": 1, "task.pipeline": pipelines}


def parse_seconds(load: Load, units: Units, *, changed: bool) -> float:
    """Return the seconds of a parse in the DAG processor: one process, one core, files of this machine."""
    return units.total(parse_terms(load.pipelines, changed=changed))


def reconcile_seconds(load: Load, units: Units) -> float:
    """Return the seconds of one look at all streams."""
    waiting = ceil(load.pipelines / AT_ONCE) * TRIPS * load.round_trip if load.on_store else 0.0
    return units.total(reconcile_terms(load.pipelines)) + waiting
