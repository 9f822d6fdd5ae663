"""Answers and serving tables: what they read, and how long they wait."""

from __future__ import annotations

from benchmarks.scale.load import Load
from benchmarks.scale.requests import fetching_trips
from benchmarks.scale.units import Terms, Units

DAY = 24.0
"""Hours."""


def day_terms(intervals: float, states: float) -> Terms:
    """Return what an answer pays for so many states, of a view with so many published intervals, after a change."""
    return {"answer": 1, "answer.interval": intervals, "answer.state": states}


def serving_terms(keys: float) -> Terms:
    """Return what it costs to show an interval of so many keys again."""
    return {"serving": 1, "serving.key": keys}


def showing_terms(keys: float) -> Terms:
    """Return the memory of a process that shows an interval of so many keys again, in MB."""
    return {"showing": 1, "showing.key": keys}


def interval_terms(keys: float) -> Terms:
    """Return what it costs to answer for one interval of so many keys."""
    return {"answer.one": 1, "answer.key": keys}


def point_terms(keys: float) -> Terms:
    """Return what it costs to find one key of an interval of so many."""
    return {"point": 1, "point.key": keys}


def answer_cpu(load: Load, units: Units) -> float:
    """Return the CPU seconds of an answer for one key of the newest interval, after an epoch.

    What a manifest marks is listed once for each publication: the answers until the next share that.
    """
    shared = max(1.0, load.answers * load.interval)
    return units.total(point_terms(load.keys)) + units.total({"answer.interval": load.intervals / shared})


def answer_seconds(load: Load, units: Units) -> float:
    """Return how long such an answer takes: tables are asked side by side, then new files come."""
    trips = 2 if load.on_store else 0
    return answer_cpu(load, units) + trips * load.round_trip


def first_answer_seconds(load: Load, files: float, units: Units) -> float:
    """Return how long the first answer of a process takes that has none of the files."""
    trips = units["answer.first.trips"] + fetching_trips(files) if load.on_store else 0
    return units["answer.first"] + answer_cpu(load, units) + trips * load.round_trip


def serving_seconds(load: Load, units: Units) -> float:
    """Return how long a refresh of all serving tables takes; views take turns, an interval of each has changed."""
    trips = 8 * load.views if load.on_store else 0
    return load.views * units.total(serving_terms(load.keys)) + trips * load.round_trip
