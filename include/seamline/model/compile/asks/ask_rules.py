"""Which questions a definition asks of other systems, and what is wrong with them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from functools import partial

from seamline.model.compile.asks.compiled_ask import CompiledAsk, name_question
from seamline.model.compile.compiled_join import CompiledJoin, JoinSide
from seamline.model.compile.join_rules import compile_sound_condition, require_sound_expression
from seamline.model.compile.lookups.lookup_join import column_of
from seamline.model.compile.problems import Problems
from seamline.model.compile.record_rules import Record
from seamline.model.compile.sources import has_several
from seamline.model.definition.asks import ROW, TOLD, Ask
from seamline.model.definition.pipeline import Pipeline
from seamline.model.errors import DefinitionError
from seamline.model.expressions import Expression, compile_expression
from seamline.model.time.intervals import parse_duration
from seamline.model.time.zone_clock import MICROSECOND
from seamline.model.types.schema import Schema
from seamline.model.user_code import function_of

KEPT = parse_duration("10 minutes")
"""How long the index keeps rows that wait for an answer, behind the watermark; for those that wait longer the
master's files are read."""
VERSION = re.compile(r"[A-Za-z0-9._-]{0,100}", re.ASCII)
LEAST = {"batch": 1, "at_once": 1, "per_second": 0, "retries": 0}
MOST = {"batch": 10_000, "at_once": 10_000, "per_second": 1_000_000, "retries": 100}


def check_asks(pipeline: Pipeline, problems: Problems) -> bool:
    """Note what is wrong with questions by themselves, and return whether their answers can be a source."""
    before = len(problems.found)
    if not has_several(pipeline):
        return True
    for ask in pipeline.asks:
        place, names = f"derive[{ask.name}]", [each.name for each in pipeline.derive]
        if problems.check_name(f"{place}.name", ask.origin, ask.name) and names.count(ask.name) > 1:
            problems.note(
                f"{place}.name", ask.origin, f"{ask.name!r} is declared twice.", "rename one of them."
            )
        if ask.name in {each.name for each in pipeline.sources}:
            problems.note(
                f"{place}.name",
                ask.origin,
                f"{ask.name!r} is the name of a source, too.",
                "choose another name: it is what View(of=) takes.",
            )
        check_answer_columns(ask, problems)
        check_numbers(ask, problems)
        problems.attempt(f"{place}.timeout", ask.origin, partial(parse_duration, ask.timeout))
        if ask.fresh:
            problems.attempt(f"{place}.fresh", ask.origin, partial(parse_duration, ask.fresh))
        if not VERSION.fullmatch(ask.version):
            problems.note(
                f"{place}.version",
                ask.origin,
                f"{ask.version!r} is not a version.",
                "use letters, digits, dots, underscores and dashes, at most 100.",
            )
        problems.attempt(f"{place}.by", ask.origin, partial(require_async_function, str(ask.by)))
    return len(problems.found) == before


def check_answer_columns(ask: Ask, problems: Problems) -> None:
    """Note columns that an answer cannot have."""
    place = f"derive[{ask.name}].columns"
    if not ask.columns:
        problems.note(
            place, ask.origin, "An answer has no column.", 'list them: columns=["risk DOUBLE", "model"].'
        )
    seen = {*ROW, *TOLD, "place"}
    for text in ask.columns:
        field = problems.attempt(place, ask.origin, partial(column_of, text))
        if field is None:
            continue
        if not field.nullable:
            problems.note(
                place,
                ask.origin,
                f"{text!r} is NOT NULL.",
                "leave that out: a row without an answer has none.",
            )
        if "BINARY" in field.type.spark:
            problems.note(
                place,
                ask.origin,
                f"{text!r} has BINARY values, which JSON has no word for.",
                "let the function write them as text, such as base64.",
            )
        if field.name.lower() in seen:
            problems.note(
                place,
                ask.origin,
                f"An answer has {field.name!r} already.",
                f"name it once, and none of {', '.join([*ROW, *TOLD, 'place'])}.",
            )
        seen.add(field.name.lower())


def check_numbers(ask: Ask, problems: Problems) -> None:
    """Note settings that count something and cannot be."""
    for name, least in LEAST.items():
        found, most = getattr(ask, name), MOST[name]
        if not least <= found <= most:
            problems.note(
                f"derive[{ask.name}].{name}",
                ask.origin,
                f"{found!r} is out of range.",
                f"use a whole number from {least} to {most:,}.",
            )


def require_async_function(name: str) -> None:
    """Require that a name is of a function that asks without keeping others waiting; DefinitionError."""
    if not inspect.iscoroutinefunction(function_of(name)):
        raise DefinitionError(
            f"{name!r} is no async function.",
            hint="write async def ask(requests): ..., and await what it calls: a call that blocks holds up all others.",
        )


def compile_asks(
    pipeline: Pipeline, records: Mapping[str, Record], problems: Problems
) -> tuple[CompiledAsk, ...]:
    """Compile the questions of a pipeline; note the problems of those that are left out."""
    asks = pipeline.asks if has_several(pipeline) else ()
    made = [compile_ask(pipeline, ask, records, problems) for ask in asks]
    return tuple(each for each in made if each)


def compile_ask(
    pipeline: Pipeline, ask: Ask, records: Mapping[str, Record], problems: Problems
) -> CompiledAsk | None:
    """Compile one question; note its problems and return None where it has any."""
    before, place = len(problems.found), f"derive[{ask.name}]"
    if ask.of not in records or ask.of in {each.right for each in pipeline.asks}:
        known = ", ".join(each.name for each in pipeline.sources[: -len(pipeline.asks)])
        problems.note(
            f"{place}.of", ask.origin, f"There is no source {ask.of!r}.", f"the sources are {known}."
        )
        return None
    asked, answered = records[ask.of], records[ask.right]
    when = None
    if ask.when:
        when = problems.attempt(
            f"{place}.when", ask.origin, lambda: compile_sound_condition(ask.when, asked.schema)
        )
    request = compile_request(ask, asked.schema, problems)
    recorded = f"`{ask.named('version')}` = '{ask.version}'"
    answer = f"`{ask.named('error')}` IS NULL AND {recorded}"
    join = CompiledJoin(
        ask.name,
        JoinSide(ask.of, f"{ask.of}_", asked.schema.fields, when),
        JoinSide(ask.right, "", answered.parsed.fields, compile_expression(answer, answered.schema)),
        tuple((f"_{name}", ask.named(name), False) for name in ("topic_id", "partition", "offset")),
        0,
        0,
        None,
        asked.selective,
        lookups=frozenset(each.name for each in asked.lookups),
        kept=KEPT // MICROSECOND,
        question=name_question(ask),
        recorded=compile_expression(recorded, answered.schema),
    )
    names = [field.name.lower() for field in join.schema.fields]
    for name in sorted({each for each in names if names.count(each) > 1}):
        problems.note(
            f"{place}.name",
            ask.origin,
            f"Two columns of an answered row are called {name!r}.",
            f"a column of the row is called {ask.of}_..., one of the answer {ask.name}_...: rename one of the two.",
        )
    if len(problems.found) > before:
        return None
    topic = next(each.topics[0] for each in pipeline.sources if each.name == ask.right)
    fresh = parse_duration(ask.fresh) if ask.fresh else None
    answer_columns = tuple(map(column_of, ask.columns))
    return CompiledAsk(ask, join, request, answer_columns, topic, parse_duration(ask.timeout), fresh)


def compile_request(ask: Ask, seen: Schema, problems: Problems) -> tuple[tuple[str, Expression], ...]:
    """Compile what a request has; note what is wrong with it."""
    place, found = f"derive[{ask.name}].request", []
    if not ask.request:
        problems.note(
            place,
            ask.origin,
            "A request has nothing in it.",
            'name expressions: request={"user": "user_id"}.',
        )
    for name, text in ask.request.items():
        made = problems.attempt(
            f"{place}[{name}]",
            ask.origin,
            lambda t=text: require_sound_expression(compile_expression(t, seen)),  # type: ignore[misc]
        )
        if made is not None:
            found.append((name, made))
    return tuple(found)
