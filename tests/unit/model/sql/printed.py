"""A definition written as SQL, by somebody who knows only docs/sql-pipelines.md: the oracle of what SQL can say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, replace
from typing import Any

from seamline.model.definition.as_of import AsOf
from seamline.model.definition.changes import Changelog
from seamline.model.definition.expectations import Expect, ExpectRows
from seamline.model.definition.format_base import Format
from seamline.model.definition.joins import Join, Open
from seamline.model.definition.layers import Batch, Stream
from seamline.model.definition.patterns import Pattern
from seamline.model.definition.pipeline import Pipeline, View
from seamline.model.definition.sinks.sink_base import AnySink
from seamline.model.definition.sources import DeltaSource, KafkaSource, Lookup, Source
from seamline.model.definition.windows import (
    CountWindow,
    Cumulating,
    Global,
    Session,
    Sliding,
    Tumbling,
    Window,
)
from seamline.model.measures import Count, Formula, Measure, Own, Ratio
from seamline.model.protocol.watermark import Watermark
from seamline.model.types.schema import split_top_level

ALONE = "records"
"""What SQL calls the source that has no name in Python."""


class OnlyInPython(Exception):
    """The definition has something for which there is no SQL."""


def print_pipeline(pipeline: Pipeline) -> str:
    """Write a pipeline as statements."""
    refuse_rest(pipeline, "source", "views", "batch", "stream", "rules", "select", "where", "side", "lookups", "derive",
                "sinks")  # fmt: skip
    alone = isinstance(pipeline.source, Source)
    sources = [pipeline.source] if isinstance(pipeline.source, Source) else pipeline.source
    statements = [print_settings(pipeline)]
    for each in sources:
        steps = (
            {name: getattr(pipeline, name) for name in ("rules", "select", "where", "side")} if alone else {}
        )
        statements.append(print_source(replace(each, **{"name": ALONE, **steps} if alone else {})))
    for each in sources:
        statements += [print_lookup(lookup, "" if alone else each.name) for lookup in each.lookups]
    statements += [print_lookup(lookup, "") for lookup in pipeline.lookups]
    statements += [
        print_derived(each, {source.name: source for source in sources}) for each in pipeline.derive
    ]
    times = {source.name or ALONE: source.event_time for source in sources}
    statements += [print_view(view, pipeline, times) for view in pipeline.views]
    statements += [print_sink(sink) for sink in pipeline.sinks]
    return "\n\n".join(f"{each};" for each in statements) + "\n"


def refuse_rest(part: Any, *clauses: str) -> None:
    """Raise OnlyInPython where a part says something that is neither a clause nor an option."""
    for each in fields(part):
        value = getattr(part, each.name)
        default = (
            each.default_factory()
            if callable(each.default_factory) and each.name != "origin"
            else each.default
        )
        plain = isinstance(value, str | int | None) or (
            isinstance(value, Sequence) and all(isinstance(one, str) for one in value)
        )
        if each.name not in ("origin", *clauses) and not plain and value != default:
            raise OnlyInPython(each.name)


def text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"'{escaped}'"


def name(value: str) -> str:
    return f"`{value}`"


def value(given: Any) -> str:
    if isinstance(given, bool):
        return str(given).upper()
    if isinstance(given, str):
        return text(given)
    return str(given) if isinstance(given, int | float) else f"({', '.join(map(value, given))})"


def said(part: Any, *besides: str, before: str = "") -> dict[str, Any]:
    """List what a part says by options: whatever differs from its default and is no clause."""
    return {
        f"{before}{each.name}": getattr(part, each.name)
        for each in fields(part)
        if each.name not in ("origin", *besides)
        if getattr(part, each.name) != (MISSING if each.default is MISSING else each.default)
        and not (callable(each.default_factory) and getattr(part, each.name) == each.default_factory())
    }


def options(given: Mapping[str, Any]) -> str:
    return f"\nWITH ({', '.join(f'{key} = {value(each)}' for key, each in given.items())})" if given else ""


def print_settings(pipeline: Pipeline) -> str:
    own = said(pipeline, "name", "source", "views", "batch", "stream", "rules", "select", "where", "side", "lookups",
               "derive", "sinks")  # fmt: skip
    stream = said(pipeline.stream, "restart", before="stream.")
    if pipeline.stream.restart != Stream.restart:
        policy = pipeline.stream.restart
        stream |= {"stream.restart": type(policy).__name__, **said(policy, before="stream.restart.")}
    assert isinstance(pipeline.batch, Batch)
    return f"CREATE PIPELINE {name(pipeline.name)}{options({**said(pipeline.batch, before='batch.'), **stream, **own})}"


def print_source(source: Source) -> str:
    if isinstance(source, DeltaSource) and source.columns:
        raise OnlyInPython("columns")
    elements = [
        *map(column, split_top_level(source.schema)),
        *(f"{column(each)} ADDED" for each in source.added),
    ]
    elements += [f"{name(key)} AS {each}" for key, each in source.select.items()]
    elements += [watermark(source)]
    elements += [f"UNIQUE ({columns(source.event_id)})"] if source.event_id else []
    elements += [f"PRIMARY KEY ({columns(source.key)}) NOT ENFORCED"] if source.key else []
    elements += [f"CONSTRAINT {name(rule.name)} CHECK ({rule.condition})" for rule in source.rules]
    elements += [f"SIDE {name(key)} AS {each}" for key, each in source.side.items()]
    where = f"\nWHERE {source.where}" if source.where else ""
    kind = "kafka" if isinstance(source, KafkaSource) else "delta"
    given = said(source, "name", "schema", "event_time", "event_id", "added", "select", "key", "rules", "side", "where",
                 "lookups", "watermark", "format", "counts", "columns")  # fmt: skip
    more = (
        {"idle_after": source.watermark.idle_after}
        if source.watermark.idle_after != Watermark.idle_after
        else {}
    )
    more |= print_format(source.format)
    if source.counts is not None:
        more |= said(source.counts, before="counts.")
    body = ",\n  ".join(elements)
    return f"CREATE SOURCE {name(source.name)} (\n  {body}\n){where}{options({'connector': kind, **given, **more})}"


def column(declared: str) -> str:
    called, _, type = declared.partition(" ")
    return f"{name(called.strip('`'))} {type}"


def print_format(format: str | Format) -> dict[str, Any]:
    if isinstance(format, str):
        return {} if format == "json" else {"format": format}
    chosen = said(format, before=f"{format.kind}.")
    if not chosen:
        raise OnlyInPython("a format without options that is no text")
    return {"format": format.kind, **chosen}


def watermark(source: Source) -> str:
    late = source.watermark.out_of_orderness
    behind = f" AS {source.event_time} - INTERVAL {text(late)}" if late != Watermark.out_of_orderness else ""
    return f"WATERMARK FOR {source.event_time}{behind}"


def columns(names: Iterable[str]) -> str:
    return ", ".join(map(name, names))


def print_lookup(lookup: Lookup, source: str) -> str:
    of = f" FOR {name(source)}" if source else ""
    keys = " AND ".join(f"{name(key)} = {each}" for key, each in lookup.on.items())
    on = f"\nON {keys}" if keys else ""
    listed = ", ".join(column(each) for each in lookup.columns)
    return f"CREATE LOOKUP {name(lookup.name)} ({listed}){of}{on}{options(said(lookup, 'name', 'columns', 'on'))}"


def print_derived(derived: Any, sources: Mapping[str, Source]) -> str:
    begin = f"CREATE DERIVED {name(derived.name)} AS"
    if isinstance(derived, Changelog):
        return f"{begin} CHANGELOG OF {name(derived.of)}"
    if isinstance(derived, Pattern):
        return f"{begin} SELECT * FROM {name(derived.of)} {print_pattern(derived, sources[derived.of].event_time)}"
    if isinstance(derived, AsOf):
        at = sources[derived.left].event_time
        on = " AND ".join(equal("a", "b", pair, derived.null_safe) for pair in derived.on.items())
        given = said(derived, "name", "left", "versions", "on", "null_safe")
        return (
            f"{begin} SELECT * FROM {name(derived.left)} AS a LEFT JOIN {name(derived.versions)} "
            f"FOR SYSTEM_TIME AS OF a.{at} AS b ON {on}{options(given)}"
        )
    if isinstance(derived, Join):
        on = " AND ".join(
            [
                *(equal("a", "b", pair, derived.null_safe) for pair in derived.on.items()),
                *nearness(derived, sources),
            ]
        )
        where = f" WHERE {derived.where}" if derived.where else ""
        given = said(derived, "name", "left", "right", "on", "before", "after", "where", "same", "null_safe")
        return (
            f"{begin} SELECT * FROM {name(derived.left)} AS a JOIN {name(derived.right)} AS b "
            f"ON {on}{where}{options(given)}"
        )
    raise OnlyInPython(type(derived).__name__)


def equal(left: str, right: str, pair: tuple[str, str], null_safe: Sequence[str]) -> str:
    return f"{left}.{name(pair[0])} {'<=>' if pair[0] in null_safe else '='} {right}.{name(pair[1])}"


def nearness(join: Join, sources: Mapping[str, Source]) -> list[str]:
    left, right = f"a.{sources[join.left].event_time}", f"b.{sources[join.right].event_time}"
    if join.same is not None:
        size = f"INTERVAL {text(join.same.size)}"
        return [f"TUMBLE({left}, {size}) = TUMBLE({right}, {size})"]
    bounds = []
    for bound, symbol, sign in ((join.before, ">", "-"), (join.after, "<", "+")):
        length = bound.duration if isinstance(bound, Open) else bound
        bounds.append(
            f"{right} {symbol}{'' if isinstance(bound, Open) else '='} {left} {sign} INTERVAL {text(length)}"
        )
    return bounds


def print_pattern(pattern: Pattern, at: str) -> str:
    measures = ", ".join(f"{each} AS {name(key)}" for key, each in pattern.select.items())
    defined = ", ".join(f"{name(key)} AS {each}" for key, each in pattern.define.items())
    skip = f"AFTER MATCH SKIP {pattern.skip.upper()}\n" if pattern.skip != Pattern.skip else ""
    given = said(pattern, "name", "of", "keys", "steps", "within", "define", "select", "skip")
    return (
        f"MATCH_RECOGNIZE (\nPARTITION BY {columns(pattern.keys)}\nORDER BY {at}\n"
        f"{f'MEASURES {measures}' if measures else ''}\n{skip}PATTERN ({pattern.steps}) "
        f"WITHIN INTERVAL {text(pattern.within)}\n{f'DEFINE {defined}' if defined else ''}){options(given)}"
    )


def print_view(view: View, pipeline: Pipeline, times: Mapping[str, str]) -> str:
    refuse_rest(view, "window", "measures", "explode", "expect", "grouping_sets", "keys", "of")
    of = [view.of or ALONE] if isinstance(view.of, str) else [*view.of]
    if "." in of[0]:
        raise OnlyInPython("a side of a process")
    rows = name(of[0]) if len(of) == 1 else f"({' UNION ALL '.join(f'TABLE {name(each)}' for each in of)})"
    for key, each in view.explode.items():
        rows += f" CROSS JOIN UNNEST({each}) AS {name(key)}"
    shown = [name(key) for key in view.keys]
    shown += [f"{print_measure(each)} AS {name(key)}" for key, each in view.measures.items()]
    groups = [name(key) for key in view.keys]
    if view.grouping_sets:
        groups = [f"GROUPING SETS ({', '.join(f'({columns(each)})' for each in view.grouping_sets)})"]
    if not isinstance(view.window, Global):
        groups.append(print_window(view.window, time_of(of[0], pipeline, times)))
    where = f"\nWHERE {view.where}" if view.where else ""
    grouped = f"\nGROUP BY {', '.join(groups)}" if groups else ""
    expected = view.expect if isinstance(view.expect, Sequence) else [view.expect]
    tests = f"\nEXPECT {', '.join(map(print_expectation, expected))}" if expected else ""
    return f"CREATE VIEW {name(view.name)} AS\nSELECT {', '.join(shown)}\nFROM {rows}{where}{grouped}{tests}"


def time_of(of: str, pipeline: Pipeline, times: Mapping[str, str]) -> str:
    derived = next((each for each in pipeline.derive if each.name == of), None)
    if derived is None:
        return times[of]
    if isinstance(derived, Join | AsOf):
        return f"{'left' if derived.left == derived.right else derived.left}_{times[derived.left]}"
    return times[derived.sources[0]]


def print_window(window: Window, at: str) -> str:
    facts = {
        key: each
        for key, each in said(window).items()
        if key not in ("size", "slide", "step", "gap", "events")
    }
    if isinstance(window, CountWindow):
        lengths = [str(window.events)]
        facts = {key: each for key, each in said(window).items() if key != "events"}
    else:
        sizes = {
            Tumbling: ("size",),
            Sliding: ("slide", "size"),
            Cumulating: ("step", "size"),
            Session: ("gap",),
        }[type(window)]
        lengths = [at, *(f"INTERVAL {text(getattr(window, each))}" for each in sizes)]
    words = {"offset": "INTERVAL ", "begin": "INTERVAL "}
    more = [f"{key} => {words.get(key, '')}{value(each)}" for key, each in facts.items()]
    function = {"tumbling": "TUMBLE", "sliding": "HOP", "cumulating": "CUMULATE", "session": "SESSION",
                "count": "COUNT_WINDOW"}[window.kind]  # fmt: skip
    return f"{function}({', '.join([*lengths, *more])})"


NAMES = {"distinct": "approx_count_distinct"}
EXTRA = {"quantile": "at", "quantiles": "at", "top": "k", "histogram": "edges", "collect_distinct": "limit"}


def print_measure(measure: Measure) -> str:
    filter = f" FILTER (WHERE {measure.where})" if measure.where else ""
    if isinstance(measure, Ratio):
        return f"ratio({name(measure.above)}, {name(measure.below)})"
    if isinstance(measure, Formula):
        parts = ", ".join(f"{name(key)} => {print_measure(each)}" for key, each in measure.made_of.items())
        return f"formula({text(measure.sql)}, {parts}){filter}"
    if isinstance(measure, Own):
        version = f", version => {text(measure.version)}" if measure.version else ""
        return f"own({measure.of}, {text(measure.by)}{version}){filter}"
    if isinstance(measure, Count):
        return f"count({measure.of or '*'}){filter}"
    called = NAMES.get(measure.kind, measure.kind)
    if measure.kind in ("variance", "stddev"):
        if measure.ddof not in (0, 1):
            raise OnlyInPython("ddof")
        called = f"{'var' if measure.kind == 'variance' else 'stddev'}_{'samp' if measure.ddof else 'pop'}"
    more = getattr(measure, EXTRA.get(measure.kind, ""), ())
    listed = [*more] if isinstance(more, Sequence) else [more]
    return f"{called}({', '.join([measure.of, *map(str, listed)])}){filter}"


def print_expectation(expected: Any) -> str:
    if isinstance(expected, ExpectRows):
        tests = {"at_least": ">= {}", "at_most": "<= {}", "max_change": "CHANGE <= {}"}
        called = "ROWS"
    elif isinstance(expected, Expect):
        tests = {"at_least": ">= {}", "at_most": "<= {}", "in_set": "IN {}", "regex": "RLIKE {}"}
        tests |= {"not_null": "IS NOT NULL", "unique": "IS UNIQUE"}
        called = name(expected.column)
    else:
        raise OnlyInPython("a suite")
    written = [
        f"{called} {form.format(value(getattr(expected, each)))}"
        for each, form in tests.items()
        if (given := getattr(expected, each)) is not None and given is not False and given not in ((), [], "")
    ]
    if not written:
        raise OnlyInPython("an expectation of nothing")
    return " AND ".join(written)


def print_sink(sink: AnySink) -> str:
    called = f" {name(sink.name)}" if sink.name else ""
    given = {"connector": sink.kind, **said(sink, "view", "of", "name")}
    return f"CREATE SINK{called} FROM {name(sink.sends)}{options(given)}"
