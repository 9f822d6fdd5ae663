"""A definition as text and back: what a view version is born with, so that it outlives the file it was in."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any

from seamline.model.compile.compiled_pipeline import (
    CompiledPipeline,
    CompiledView,
    compile_pipeline,
    compile_with_problems,
)
from seamline.model.definition.alert_routes import AlertRoute
from seamline.model.definition.as_of import AsOf
from seamline.model.definition.asks import Ask
from seamline.model.definition.changes import Changelog
from seamline.model.definition.counts import Counts
from seamline.model.definition.expectations import Expect, ExpectationSuite, ExpectRows
from seamline.model.definition.field_types import may_be_none
from seamline.model.definition.formats import FORMATS
from seamline.model.definition.groups import CoGroup
from seamline.model.definition.joins import Join, Open
from seamline.model.definition.layers import Batch, Stream
from seamline.model.definition.origin import Origin
from seamline.model.definition.patterns import Pattern
from seamline.model.definition.pipeline import Pipeline, View
from seamline.model.definition.processes import Process
from seamline.model.definition.restarts import RESTARTS
from seamline.model.definition.sinks.kinds import SINKS
from seamline.model.definition.sources import ROUNDED, DeltaSource, KafkaSource, Lookup, Rule
from seamline.model.definition.stored_code import (
    Facts,
    is_unchanged,
    list_code_facts,
    make_stand_in,
    standing_in,
)
from seamline.model.definition.windows import WINDOWS
from seamline.model.errors import DefinitionError, ProtocolError, SeamlineError
from seamline.model.measures import MEASURES
from seamline.model.protocol.manifest import Manifest
from seamline.model.protocol.watermark import Watermark

CLASSES: Mapping[str, type] = {
    each.__name__: each
    for each in (
        Pipeline, AlertRoute, KafkaSource, DeltaSource, Counts, Lookup, Rule, Join, Open, AsOf, Ask, Process, Pattern,
        CoGroup, Changelog, View, Expect, ExpectRows, ExpectationSuite, Stream, Batch, Watermark, *RESTARTS, *WINDOWS,
        *FORMATS, *MEASURES, *SINKS,
    )
}  # fmt: skip
ORIGIN = Origin("the stored definition", 0)
KIND, CONTENT, CODE = "is", "of", "code"


def to_json(pipeline: Pipeline) -> str:
    """Write a whole definition, without the lines its author wrote it on; the inverse of ``from_json``.

    It also says what the users' code is that the definition names.
    """
    code = list_code_facts(pipeline)
    return json.dumps(
        encode_definition_part(pipeline) | ({CODE: code} if code else {}), separators=(",", ":")
    )


def from_json(text: str) -> Pipeline:
    """Read what ``to_json`` wrote; DefinitionError for anything else, also for words of a later release."""
    try:
        found = decode_definition_part(json.loads(text))
    except (ValueError, TypeError, KeyError) as error:
        raise DefinitionError(
            f"A stored definition cannot be read: {type(error).__name__}: {error}.",
            hint="it was stored by another release; read it with that one.",
        ) from error
    if not isinstance(found, Pipeline):
        raise DefinitionError(
            "A stored definition is not a pipeline.", hint="it was stored by another release."
        )
    return found


def encode_definition_part(value: Any) -> Any:
    """Return a part of a definition as JSON; every JSON object says what it ``is``."""
    made = type(value)
    if made is CLASSES.get(made.__name__):
        kept = {
            each.name: encode_definition_part(getattr(value, each.name))
            for each in fields(made)
            if each.compare
        }
        return {KIND: made.__name__, CONTENT: kept}
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {
            KIND: "mapping",
            CONTENT: [
                [encode_definition_part(key), encode_definition_part(each)] for key, each in value.items()
            ],
        }
    if isinstance(value, tuple):
        return {KIND: "tuple", CONTENT: [encode_definition_part(each) for each in value]}
    if isinstance(value, Sequence):
        return [encode_definition_part(each) for each in value]
    raise DefinitionError(
        f"{type(value).__name__} cannot be stored with a view's birth.",
        hint=f"a definition consists of {', '.join(CLASSES)}.",
    )


def decode_definition_part(value: Any) -> Any:
    """Return what ``encode_definition_part`` wrote."""
    if isinstance(value, list):
        return [decode_definition_part(each) for each in value]
    if not isinstance(value, dict):
        return value
    kind, content = value[KIND], value[CONTENT]
    if kind == "mapping":
        return {decode_definition_part(key): decode_definition_part(each) for key, each in content}
    if kind == "tuple":
        return tuple(decode_definition_part(each) for each in content)
    made = CLASSES[kind]
    if made is KafkaSource:
        # Stored before numbers kept their digits, where it does not say.
        content = {"decimals": ROUNDED, **content}
    # Stored by releases that took None for what is not said.
    content = {each: found for each, found in content.items() if found is not None or may_be_none(made, each)}
    origin = {"origin": ORIGIN} if any(each.name == "origin" for each in fields(made)) else {}
    return made(**origin, **{name: decode_definition_part(each) for name, each in content.items()})


def drop_wrong_expectations(definition: Pipeline) -> Pipeline:
    """Leave out what a view expects if an earlier release let it pass and this one does not: it changes no number."""
    _, problems = compile_with_problems(definition)
    wrong = {each.field for each in problems}
    views = [
        replace(view, expect=())
        if any(each.startswith(f"views[{view.name}].expect") for each in wrong)
        else view
        for view in definition.views
    ]
    return replace(definition, views=views)


def compile_stored_version(id: str, text: str) -> tuple[CompiledPipeline, CompiledView]:
    """Compile a stored definition and find the view version ``name/fingerprint`` in it; DefinitionError.

    Where users' code that it names is not as it was, a stand-in declares what that did.
    """
    changed = tuple(name for name, each in read_code(text).items() if not is_unchanged(name, each))
    return compile_with_stand_ins(id, text, changed)


@lru_cache(maxsize=256)
def read_code(text: str) -> Mapping[str, Facts]:
    """Read what a stored definition says of users' code; nothing of one that cannot be read."""
    try:
        found: Mapping[str, Facts] = json.loads(text).get(CODE, {})
    except (ValueError, AttributeError):
        return {}
    return found


@lru_cache(maxsize=256)
def compile_with_stand_ins(
    id: str, text: str, changed: tuple[str, ...]
) -> tuple[CompiledPipeline, CompiledView]:
    """Compile a stored definition with stand-ins for some code that it names."""
    definition, code = from_json(text), read_code(text)
    with standing_in({name: make_stand_in(name, code[name]) for name in changed}):
        try:
            pipeline = compile_pipeline(drop_wrong_expectations(definition))
        except DefinitionError as problem:
            raise DefinitionError(
                problem.message,
                hint="it was accepted when it was stored: if it names code that was edited or deleted since, put that "
                "back; else build the definition's own version, then run seamline flip.",
            ) from problem
    view = next((each for each in pipeline.views if each.id == id), None)
    if view is None:
        raise DefinitionError(
            f"The definition stored for {id} now makes another version of it.",
            hint="if the code of a function or measure of it was edited, put that back, or flip to the version that it "
            "makes now; else read it with the release that stored it.",
        )
    return pipeline, view


def resolve_view_version(
    pipeline: CompiledPipeline, manifest: Manifest, id: str
) -> tuple[CompiledPipeline, CompiledView]:
    """Find a view version: in the definition at hand, else as it was stored at its birth.

    Raises ProtocolError where it was never born or what was stored cannot be read.
    """
    own = next((view for view in pipeline.views if view.id == id), None)
    if own is not None:
        return pipeline, own
    if id not in manifest.definitions:
        raise ProtocolError(
            f"{pipeline.name}.{id} is not a version of this definition and was never born.",
            hint="a version is born when its stream starts; see seamline status.",
        )
    try:
        return compile_stored_version(id, manifest.definitions[id])
    except SeamlineError as problem:
        raise ProtocolError(
            f"{pipeline.name}.{id} cannot be made from its stored definition: {problem.message}",
            hint=problem.hint,
        ) from problem
