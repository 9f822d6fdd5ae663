"""Settings of a definition that are checked by themselves: numbers, words and names."""

from __future__ import annotations

from seamline.model.compile.defaults import NEWEST, PAST
from seamline.model.compile.fingerprint import BOUNDS
from seamline.model.compile.problems import NAME, Problems
from seamline.model.definition.pipeline import DURABILITY, Pipeline


def check_counts(pipeline: Pipeline, problems: Problems) -> None:
    """Note bounds that no run, or no record, can keep."""
    for name in BOUNDS:
        if type(bound := getattr(pipeline.source, name)) is not int or bound < 1:
            problems.note(
                f"source.{name}",
                pipeline.source.origin,
                f"{bound!r} is no bound.",
                "a whole number from 1 on.",
            )
    for name, least in (("max_dirty", 1), ("approve_above", 0), ("keep_generations", 0)):
        given = getattr(pipeline.batch, name)
        if type(given) is not int or given < least:
            problems.note(
                f"batch.{name}",
                pipeline.origin,
                f"{given!r} is not a number of {'generations' if name == 'keep_generations' else 'intervals'}.",
                f"a whole number from {least} on.",
            )


def check_provisional(pipeline: Pipeline, problems: Problems) -> None:
    """Note a wish that is neither yes nor no."""
    given: object = pipeline.batch.provisional
    if not isinstance(given, bool):
        problems.note(
            "batch.provisional",
            pipeline.origin,
            f"{given!r} is neither True nor False.",
            "True publishes open intervals as provisional.",
        )


def check_durability(pipeline: Pipeline, problems: Problems) -> None:
    """Note a level that there is not."""
    given = pipeline.stream.durability
    if given not in DURABILITY:
        told = f"{given!r} is none of {', '.join(DURABILITY)}."
        problems.note(
            "stream.durability", pipeline.origin, told, "fsync has each epoch on disk before it counts."
        )


def check_defaults(pipeline: Pipeline, problems: Problems) -> None:
    """Note defaults that this release does not know."""
    if not isinstance(pipeline.defaults, str) or pipeline.defaults not in PAST:
        problems.note(
            "defaults",
            pipeline.origin,
            f"{pipeline.defaults!r} is no month of defaults; there are {', '.join(filter(None, PAST))}.",
            f'a new definition says defaults="{NEWEST}"; one of before 2026-11 says none.',
        )


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
                f"{name!r} is not a name.",
                "lower case letters, digits and single underscores.",
            )
    for names, field in (
        ([view.name for view in pipeline.views], "views"),
        ([rule.name for rule in pipeline.rules], "rules"),
    ):
        for name in sorted({name for name in names if names.count(name) > 1}):
            problems.note(field, pipeline.origin, f"{name!r} is declared twice.", "rename one of them.")
    if not pipeline.views:
        problems.note("views", pipeline.origin, "A pipeline needs a view.", "add one: View(name, keys, ...).")
