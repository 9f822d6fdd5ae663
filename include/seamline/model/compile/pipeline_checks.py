"""Settings of a definition that are checked by themselves: numbers, words and names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import partial
from operator import attrgetter

from seamline.model.compile.alerting.alert_rules import check_alerts
from seamline.model.compile.defaults import NEWEST, PAST
from seamline.model.compile.fingerprint import BOUNDS
from seamline.model.compile.problems import Problems
from seamline.model.compile.sinks.sink_rules import check_sinks
from seamline.model.definition.field_types import list_mismatches
from seamline.model.definition.layers import DURABILITY, WHEN
from seamline.model.definition.origin import Origin
from seamline.model.definition.pipeline import Pipeline
from seamline.model.definition.restarts import REMEMBERED, RESTARTS, FailureRate
from seamline.model.definition.sources import Source
from seamline.model.errors import DefinitionError
from seamline.model.memory import parse_memory
from seamline.model.time.intervals import (
    FIRST,
    LAST,
    Grid,
    floor_to,
    format_utc_instant,
    parse_duration,
    parse_moment,
)
from seamline.model.time.zone_clock import SECOND

COUNTS: Mapping[str, tuple[int, str]] = {
    "batch.max_dirty": (1, "intervals"),
    "batch.approve_above": (0, "intervals"),
    "batch.keep_generations": (0, "generations"),
    "stream.max_offsets_per_epoch": (1, "offsets"),
    "stream.edge_epochs": (1, "epochs"),
    "stream.parts": (0, "parts"),
    "stream.fold_processes": (0, "processes"),
    "retries": (0, "retries"),
}
"""Settings that count something, with the least of it that there can be."""
LEAST_HEAP = "600m"
"""Spark asks for 450 MB, and the collector keeps an eighth of a heap for itself."""
NOWHERE = Origin("", 0)
"""Where a pipeline was written that does not say it."""


def check_settings(pipeline: Pipeline, problems: Problems) -> None:
    """Note settings of the stream and of the batch layer that cannot be."""
    origin = pipeline.origin
    for setting in ("trigger", "edge_every", "serve_every", "epoch_target", "stuck_after"):
        declared: str = getattr(pipeline.stream, setting)
        problems.attempt(
            f"stream.{setting}", origin, partial(parse_duration, declared, zero=setting == "trigger")
        )
    problems.attempt("stream.worker_memory", origin, partial(parse_memory, pipeline.stream.worker_memory))
    problems.attempt("stream.memory", origin, partial(require_heap, pipeline.stream.memory))
    if pipeline.batch.fresh_within:
        problems.attempt("batch.fresh_within", origin, lambda: parse_duration(pipeline.batch.fresh_within))
    check_change(pipeline, problems)
    check_restart(pipeline, problems)
    check_counts(pipeline, problems)
    check_durability(pipeline, problems)
    check_when(pipeline, problems)
    check_defaults(pipeline, problems)
    check_sinks(pipeline, problems)
    check_alerts(pipeline, problems)


def require_heap(declared: str) -> None:
    """Raise DefinitionError for a heap with which Spark's driver does not start."""
    if parse_memory(declared) < parse_memory(LEAST_HEAP):
        raise DefinitionError(
            f"{declared!r} is less than Spark's driver needs.", hint=f'write "{LEAST_HEAP}" or more.'
        )


def check_bounds(source: Source, problems: Problems) -> None:
    """Note bounds that no record can keep."""
    for name in BOUNDS:
        if (bound := getattr(source, name)) < 1:
            problems.note(
                f"source.{name}",
                source.origin,
                f"{bound!r} is not a valid bound.",
                "use a whole number of 1 or more.",
            )


def check_counts(pipeline: Pipeline, problems: Problems) -> None:
    """Note numbers that no run can keep."""
    for place, (least, counted) in COUNTS.items():
        given = attrgetter(place)(pipeline)
        if given < least:
            problems.note(
                place,
                pipeline.origin,
                f"{given!r} is not a number of {counted}.",
                f"use a whole number of {least} or more.",
            )


def check_change(pipeline: Pipeline, problems: Problems) -> None:
    """Note a share of change that is none."""
    if not 0 <= (given := pipeline.batch.approve_change) < float("inf"):
        problems.note(
            "batch.approve_change",
            pipeline.origin,
            f"{given!r} is not a share.",
            "use 0.05 for five percent; 0 means never.",
        )


def check_restart(pipeline: Pipeline, problems: Problems) -> None:
    """Note wrong settings of a restart policy."""
    policy = pipeline.stream.restart
    if type(policy) not in RESTARTS:
        problems.note(
            "stream.restart",
            pipeline.origin,
            f"{type(policy).__name__} is not one of the restart policies.",
            f"use one of {', '.join(each.__name__ for each in RESTARTS)}.",
        )
        return
    for each in fields(policy):
        place, given = f"stream.restart.{each.name}", getattr(policy, each.name)
        if isinstance(given, str):
            problems.attempt(place, pipeline.origin, partial(parse_duration, given))
        elif given < 0:
            told = f"{given} is not a number of failures."
            problems.note(place, pipeline.origin, told, "use a whole number of 0 or more; 0 means never.")
        elif isinstance(policy, FailureRate) and given > REMEMBERED:
            told = f"{given} failures are more than the supervisor remembers."
            problems.note(place, pipeline.origin, told, f"use a number up to {REMEMBERED}; 0 means never.")


def check_durability(pipeline: Pipeline, problems: Problems) -> None:
    """Note a level that there is not."""
    given = pipeline.stream.durability
    if given not in DURABILITY:
        told = f"{given!r} is not one of {', '.join(DURABILITY)}."
        problems.note(
            "stream.durability",
            pipeline.origin,
            told,
            'write durability="fsync", which writes each epoch to disk before it counts, or leave it out.',
        )


def check_when(pipeline: Pipeline, problems: Problems) -> None:
    """Note a time of builds that there is not."""
    given = pipeline.batch.when
    if given not in WHEN:
        told = f"{given!r} is not one of {', '.join(WHEN)}."
        hint = 'write when="closed", which starts a build when an interval has closed, or leave it out.'
        problems.note("batch.when", pipeline.origin, told, hint)


def check_defaults(pipeline: Pipeline, problems: Problems) -> None:
    """Note defaults that this release does not know."""
    if pipeline.defaults not in PAST:
        problems.note(
            "defaults",
            pipeline.origin,
            f"{pipeline.defaults!r} is not a month of defaults; available: {', '.join(filter(None, PAST))}.",
            f'a new definition sets defaults="{NEWEST}"; one from before 2026-11 sets none.',
        )


def check_shape(pipeline: Pipeline, problems: Problems) -> bool:
    """Note values of another type than their fields have, and names; return whether the rest can be looked at."""
    found = list(list_mismatches(pipeline, "", NOWHERE))
    for each in found:
        problems.note(each.place, each.origin, each.message, each.hint)
    if found:
        return False
    check_names(pipeline, problems)
    return True


def check_names(pipeline: Pipeline, problems: Problems) -> None:
    """Note names that no table can bear, and names borne twice."""
    named = [("name", pipeline.name, pipeline.origin)]
    named += [(f"views[{view.name}].name", view.name, view.origin) for view in pipeline.views]
    named += [
        (f"views[{view.name}].measures[{name}]", name, view.origin)
        for view in pipeline.views
        for name in view.measures
    ]
    for field, name, origin in named:
        problems.check_name(field, origin, name)
    for names, field in (
        ([view.name for view in pipeline.views], "views"),
        ([rule.name for rule in pipeline.rules], "rules"),
    ):
        for name in sorted({name for name in names if names.count(name) > 1}):
            problems.note(field, pipeline.origin, f"{name!r} is declared twice.", "rename one of them.")
    if not pipeline.views:
        problems.note("views", pipeline.origin, "A pipeline needs a view.", "add one: View(name, keys, ...).")


def grid_of(pipeline: Pipeline) -> Grid:
    """Return the grid of intervals; the start must be a border of it."""
    length, start = parse_duration(pipeline.batch.interval), parse_moment(pipeline.batch.start)
    if parse_duration("1 day") % length and length % parse_duration("1 day"):
        raise DefinitionError(
            f"An interval of {pipeline.batch.interval} does not divide the day.",
            hint='use "1 hour", "6 hours" or "1 day".',
            field="interval",
        )
    if length < SECOND:
        raise DefinitionError(
            f"An interval of {pipeline.batch.interval} is shorter than a second.",
            hint='use "1 hour", "6 hours" or "1 day".',
            field="interval",
        )
    if not FIRST <= start < LAST:
        raise DefinitionError(
            f"{pipeline.batch.start} is too close to an end of the calendar.",
            hint=f"start at {format_utc_instant(FIRST)} or later, and before {format_utc_instant(LAST)}.",
            field="start",
        )
    if floor_to(start, length) != start:
        raise DefinitionError(
            f"{pipeline.batch.start} is inside an interval of {pipeline.batch.interval}.",
            hint=f"start at {floor_to(start, length).isoformat()}.",
            field="start",
        )
    return Grid(length, start)
