"""The names by which a pipeline uses columns, read off its texts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from seamline.model.definition.as_of import AsOf
from seamline.model.definition.asks import Ask
from seamline.model.definition.changes import Changelog
from seamline.model.definition.folds import Folded
from seamline.model.definition.groups import CoGroup
from seamline.model.definition.joins import Join
from seamline.model.definition.patterns import Pattern
from seamline.model.definition.pipeline import Pipeline
from seamline.model.measures import Measure

WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def extract_identifiers(some: Iterable[str]) -> set[str]:
    """List all that could be a name of a column."""
    return {word.lower() for text in some for word in WORD.findall(text)}


def list_pipeline_expressions(pipeline: Pipeline) -> Iterator[str]:
    """List the expressions and names by which a pipeline uses columns."""
    for source in pipeline.sources:
        yield from (source.event_time, *source.event_id, *source.key, source.order, source.deleted)
    yield from (*pipeline.select.values(), pipeline.where, *pipeline.side.values())
    yield from (rule.condition for rule in pipeline.rules)
    for derived in pipeline.derive:
        if isinstance(derived, Ask):
            yield from (derived.when, *derived.request.values(), *derived.side.values())
        elif isinstance(derived, Folded):
            yield from list_folded_texts(derived)
        elif isinstance(derived, AsOf):
            on = chain.from_iterable(derived.on.items())
            yield from (derived.left_where, derived.versions_where, *on)
        elif isinstance(derived, Join):
            yield from (derived.where, *chain.from_iterable(derived.on.items()))
    for view in pipeline.views:
        yield from (*view.keys, view.where, *view.explode.values())
        for measure in view.measures.values():
            yield from list_measure_texts(measure)


def list_folded_texts(folded: Folded) -> Iterator[str]:
    """List the expressions and names by which a fold uses columns of its sources."""
    if isinstance(folded, CoGroup):
        yield from (*chain.from_iterable(folded.on.items()), *folded.left_columns, *folded.right_columns)
        return
    yield from (*folded.keys, folded.where)
    if isinstance(folded, Pattern):
        yield from (*folded.define.values(), *folded.select.values())
    else:
        yield from folded.columns


def list_measure_texts(value: object) -> Iterator[str]:
    """List the texts in a measure, and in those that it is made of."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Measure):
        yield from list_measure_texts(vars(value))
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from list_measure_texts(each)


def strip_prefixes(pipeline: Pipeline, names: Iterable[str]) -> set[str]:
    """Name the columns of pairs as the rows of the source have them; ``pipeline`` has that source alone."""
    found, name = set(), pipeline.sources[0].name
    for each in pipeline.derive:
        if isinstance(each, Folded | Changelog):
            continue
        prefixes = ("left_", "right_") if each.left == each.right else (f"{name}_",)
        found |= {used.removeprefix(start) for start in prefixes for used in names if used.startswith(start)}
    return found
