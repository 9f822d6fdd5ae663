"""Settings of a definition that are checked by themselves: numbers, words and names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from seamline.model.compile.defaults import NEWEST, PAST
from seamline.model.compile.fingerprint import BOUNDS
from seamline.model.compile.problems import NAME, Problems
from seamline.model.definition.joins import Join
from seamline.model.definition.pipeline import (
    DURABILITY,
    Batch,
    KafkaSource,
    Lookup,
    Pipeline,
    Rule,
    Stream,
    View,
)
from seamline.model.memory import parse_memory
from seamline.model.time.intervals import parse_duration

LISTED = {"views": View, "rules": Rule, "lookups": Lookup, "derive": Join}
"""The types of what is listed in a setting."""


def check_settings(pipeline: Pipeline, problems: Problems) -> None:
    """Note settings of the stream and of the batch layer that cannot be."""
    origin = pipeline.origin
    for setting in ("trigger", "edge_every", "serve_every", "epoch_target", "stuck_after"):
        declared: str = getattr(pipeline.stream, setting)
        problems.attempt(
            f"stream.{setting}", origin, partial(parse_duration, declared, zero=setting == "trigger")
        )
    problems.attempt("stream.worker_memory", origin, lambda: parse_memory(pipeline.stream.worker_memory))
    if pipeline.batch.fresh_within not in ("", None):
        problems.attempt("batch.fresh_within", origin, lambda: parse_duration(pipeline.batch.fresh_within))
    check_counts(pipeline, problems)
    check_provisional(pipeline, problems)
    check_durability(pipeline, problems)
    check_defaults(pipeline, problems)


def check_bounds(source: KafkaSource, problems: Problems) -> None:
    """Note bounds that no record can keep."""
    for name in BOUNDS:
        if type(bound := getattr(source, name)) is not int or bound < 1:
            problems.note(
                f"source.{name}",
                source.origin,
                f"{bound!r} is not a valid bound.",
                "use a whole number of 1 or more.",
            )


def check_counts(pipeline: Pipeline, problems: Problems) -> None:
    """Note bounds that no run can keep."""
    for name, least in (("max_dirty", 1), ("approve_above", 0), ("keep_generations", 0)):
        given = getattr(pipeline.batch, name)
        if type(given) is not int or given < least:
            problems.note(
                f"batch.{name}",
                pipeline.origin,
                f"{given!r} is not a number of {'generations' if name == 'keep_generations' else 'intervals'}.",
                f"use a whole number of {least} or more.",
            )


def check_provisional(pipeline: Pipeline, problems: Problems) -> None:
    """Note a wish that is neither yes nor no."""
    given: object = pipeline.batch.provisional
    if not isinstance(given, bool):
        problems.note(
            "batch.provisional",
            pipeline.origin,
            f"{given!r} is neither True nor False.",
            "use True to publish open intervals as provisional, else False.",
        )


def check_durability(pipeline: Pipeline, problems: Problems) -> None:
    """Note a level that there is not."""
    given = pipeline.stream.durability
    if given not in DURABILITY:
        told = f"{given!r} is not one of {', '.join(DURABILITY)}."
        problems.note(
            "stream.durability", pipeline.origin, told, "fsync writes each epoch to disk before it counts."
        )


def check_defaults(pipeline: Pipeline, problems: Problems) -> None:
    """Note defaults that this release does not know."""
    if not isinstance(pipeline.defaults, str) or pipeline.defaults not in PAST:
        problems.note(
            "defaults",
            pipeline.origin,
            f"{pipeline.defaults!r} is not a month of defaults; available: {', '.join(filter(None, PAST))}.",
            f'a new definition sets defaults="{NEWEST}"; one from before 2026-11 sets none.',
        )


def check_shape(pipeline: Pipeline, problems: Problems) -> bool:
    """Note parts of another type than they must be, and names; return whether the rest can be looked at."""
    before = len(problems.found)
    check_types(pipeline, "", problems)
    for source in pipeline.sources if isinstance(pipeline.source, Iterable) else ():
        if isinstance(source, KafkaSource) and source is not pipeline.source:
            check_types(source, f"source[{source.name}].", problems)
    if len(problems.found) > before:
        return False
    check_names(pipeline, problems)
    return True


def check_types(owner: Pipeline | KafkaSource, place: str, problems: Problems) -> None:
    """Note settings of a pipeline, or of a source, that are not of their type, or are lists of something else."""
    for name, kind in LISTED.items():
        given, hint = getattr(owner, name, ()), f"write {name}=[{kind.__name__}(...)]."
        if isinstance(given, str | kind) or not isinstance(given, Iterable):
            problems.note(f"{place}{name}", owner.origin, f"{given!r} is not a list.", hint)
            continue
        for each in given:
            if not isinstance(each, kind):
                problems.note(f"{place}{name}", owner.origin, f"{each!r} is not a {kind.__name__}.", hint)
    for name, kind, told, hint in (
        ("batch", Batch, "Batch", 'batch=Batch("1 day", "2026-01-01")'),
        ("stream", Stream, "Stream", "stream=Stream(...)"),
        ("select", Mapping, "mapping", 'select={"name": "expression"}'),
        ("side", Mapping, "mapping", 'side={"name": "condition"}'),
    ):
        if not isinstance(given := getattr(owner, name, None), kind | None):
            problems.note(f"{place}{name}", owner.origin, f"{given!r} is not a {told}.", f"write {hint}.")


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
        if not NAME.fullmatch(name) or "__" in name:
            problems.note(
                field,
                origin,
                f"{name!r} is not a valid name.",
                "use lower-case letters, digits and single underscores.",
            )
    for names, field in (
        ([view.name for view in pipeline.views], "views"),
        ([rule.name for rule in pipeline.rules], "rules"),
    ):
        for name in sorted({name for name in names if names.count(name) > 1}):
            problems.note(field, pipeline.origin, f"{name!r} is declared twice.", "rename one of them.")
    if not pipeline.views:
        problems.note("views", pipeline.origin, "A pipeline needs a view.", "add one: View(name, keys, ...).")
