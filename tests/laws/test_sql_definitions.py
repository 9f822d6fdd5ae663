"""SQL says what Python says: a definition that is printed is read back equal, however it is laid out."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.conformance.test_expressions import TEXTS
from tests.unit.model.sql.printed import print_pipeline

from seamline.model.compile.stored_definition import to_json
from seamline.model.definition.as_of import AsOf
from seamline.model.definition.changes import Changelog
from seamline.model.definition.counts import Counts
from seamline.model.definition.expectations import Expect, ExpectRows
from seamline.model.definition.formats import Avro, Csv, Text
from seamline.model.definition.joins import Join, Open
from seamline.model.definition.layers import Batch, Stream
from seamline.model.definition.patterns import Pattern
from seamline.model.definition.pipeline import Pipeline, View
from seamline.model.definition.restarts import ExponentialDelay, FailureRate, FixedDelay, NoRestart
from seamline.model.definition.sinks.dead_letter_sink import DeadLetterSink
from seamline.model.definition.sinks.kafka_sink import KafkaSink
from seamline.model.definition.sinks.postgres_sink import PostgresSink
from seamline.model.definition.sinks.redis_sink import RedisSink
from seamline.model.definition.sources import DeltaSource, KafkaSource, Lookup, Rule
from seamline.model.definition.windows import CountWindow, Cumulating, Global, Session, Sliding, Tumbling
from seamline.model.errors import DefinitionError
from seamline.model.expressions.grammar import PlainSpark
from seamline.model.measures import language
from seamline.model.protocol.watermark import Watermark
from seamline.model.sql.pipeline_file import read_pipeline_text
from seamline.model.sql.tokens import tokenize_sql

SAID = st.text(max_size=8).filter(lambda text: "\r" not in text)
"""Texts of settings."""
SPELLED = st.text("abcdefgh", min_size=1, max_size=6) | st.sampled_from(
    [
        "select",
        "from",
        "left",
        "right",
        "order",
        "when",
        "tumble",
        "side",
        "watermark",
        "unique",
        "check",
        "rows",
    ]
)
"""Names, also such as are words of SQL; all are printed in backticks."""
LENGTH = st.builds(
    "{} {}".format, st.integers(2, 90), st.sampled_from(["seconds", "minutes", "hours", "days"])
)
LITERAL = st.sampled_from(
    [
        "1",
        "-2",
        "1.5",
        "3L",
        "2D",
        "'x'",
        "'it\\'s -- no'",
        "';'",
        '"two /* "',
        "r'\\d+'",
        "'()'",
        "NULL",
        "TRUE",
    ]
)
COLUMN = SPELLED.map("`{}`".format) | st.sampled_from(
    ["amount", "_topic", "left", "right", "item.sku", "rows[0]"]
)
"""Columns, and parts of them."""
EXPRESSION = st.recursive(
    LITERAL | COLUMN,
    lambda inner: st.one_of(
        st.builds(
            "{} {} {}".format, inner, st.sampled_from(["+", "-", "<", "AND", "<=>", "||", "LIKE"]), inner
        ),
        st.builds("( {} )".format, inner),
        st.builds("f( {} , {} )".format, inner, inner),
        st.builds("CASE WHEN {} THEN {} ELSE {} END".format, inner, inner, inner),
        st.builds("{} IN ( {} , {} )".format, inner, inner, inner),
        st.builds("{} BETWEEN {} AND {}".format, inner, inner, inner),
        st.builds("left( {} , 2 )".format, inner),
    ),
    max_leaves=5,
)
"""Texts of expressions, right and wrong: what they mean is found out where they are compiled."""
NUMBER = st.integers(-9, 9) | st.floats(-9, 9, allow_nan=False).map(lambda value: round(value, 3))
TYPE = st.sampled_from(
    ["STRING", "INT NOT NULL", "DECIMAL(10, 2)", "ARRAY<STRUCT<sku: STRING, n: INT>>", "TIMESTAMP"]
)


def several(each: st.SearchStrategy[Any], least: int = 0) -> st.SearchStrategy[Any]:
    return st.lists(each, min_size=least, max_size=3, unique_by=repr)


def mapping(values: st.SearchStrategy[Any], least: int = 0) -> st.SearchStrategy[Any]:
    return st.dictionaries(SPELLED, values, min_size=least, max_size=3)


def spoken(made: type, *given: Any, **settings: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Make an object that says some of its settings and leaves out others."""
    chosen = st.fixed_dictionaries({}, optional=settings)
    return st.tuples(chosen, *given).map(lambda drawn: made(*drawn[1:], **drawn[0]))


WHERE = {"where": EXPRESSION}
PLAIN = st.one_of(
    st.builds(language.count, EXPRESSION, **WHERE),
    st.builds(language.count),
    st.builds(language.count_true, EXPRESSION),
    *(
        st.builds(each, EXPRESSION) | st.builds(each, EXPRESSION, **WHERE)
        for each in (
            language.sum,
            language.avg,
            language.min,
            language.max,
            language.first,
            language.distinct,
        )
    ),
    st.builds(language.last, EXPRESSION),
    st.builds(language.variance, EXPRESSION, ddof=st.integers(0, 1)),
    st.builds(language.stddev, EXPRESSION, ddof=st.integers(0, 1)),
    st.builds(language.quantile, EXPRESSION, NUMBER),
    st.builds(language.quantiles, EXPRESSION, st.lists(NUMBER, min_size=1, max_size=3)),
    st.builds(language.top, EXPRESSION, st.integers(1, 9)),
    st.builds(language.histogram, EXPRESSION, st.lists(NUMBER, min_size=1, max_size=3)),
    st.builds(language.collect_distinct, EXPRESSION, limit=st.integers(1, 200)),
    st.builds(language.own, EXPRESSION, st.just("a.b:C"), version=st.sampled_from(["", "2"])),
)
FORMULA = st.builds(
    lambda sql, parts: language.formula(sql, **parts),
    SAID,
    st.dictionaries(st.text("abc", min_size=1, max_size=2), PLAIN, min_size=1, max_size=2),
)
MEASURE = PLAIN | FORMULA | st.builds(language.ratio, SPELLED, SPELLED)
ZONED = {"offset": LENGTH, "zone": st.sampled_from(["Europe/Berlin", "Asia/Kolkata"])}
WINDOW = st.one_of(
    spoken(Tumbling, LENGTH, **ZONED),
    spoken(Sliding, LENGTH, LENGTH, **ZONED),
    spoken(Cumulating, LENGTH, LENGTH, **ZONED),
    st.builds(Session, LENGTH),
    st.just(Global()),
    spoken(CountWindow, st.integers(1, 99), slide=st.integers(1, 9), begin=LENGTH, copies=st.just(True)),
)
EXPECT = st.one_of(
    st.builds(Expect, SPELLED, at_least=NUMBER, not_null=st.booleans()),
    st.builds(Expect, SPELLED, at_most=NUMBER, regex=SAID, unique=st.booleans()),
    st.builds(Expect, SPELLED, in_set=st.lists(SAID | NUMBER, min_size=1, max_size=3)),
    st.builds(ExpectRows, at_least=NUMBER, max_change=st.none() | NUMBER),
)
FORMAT = st.sampled_from(["json", "csv", "debezium"]) | st.one_of(
    st.builds(Csv, st.sampled_from([";", "|"])),
    st.builds(Text, SAID.filter(bool)),
    st.builds(Avro, SAID.filter(bool), st.booleans()),
)
STEPS = {
    "rules": several(st.builds(Rule, SPELLED, EXPRESSION), 1).filter(
        lambda all: len({each.name for each in all}) == len(all)
    ),
    "where": EXPRESSION,
    "side": mapping(EXPRESSION, 1),
}
EVENT_TIME = st.sampled_from(["at", "_kafka_timestamp"])


@st.composite
def sources(draw: st.DrawFn, name: str) -> Any:
    """Draw a source with its columns and steps."""
    names = draw(st.lists(SPELLED, min_size=1, max_size=4, unique_by=str.lower))
    types = [draw(TYPE) for _ in names]
    derived = draw(st.dictionaries(SPELLED.filter(lambda each: each not in names), EXPRESSION, max_size=2))
    may = {
        "event_id": several(SPELLED, 1),
        "max_future": LENGTH,
        "max_past": st.just("") | LENGTH,
        "dedup_within": LENGTH,
        "max_stray_intervals": st.integers(1, 99),
        "watermark": st.builds(Watermark, LENGTH, LENGTH),
        **STEPS,
    }
    said = draw(st.fixed_dictionaries({}, optional=may)) | ({"select": derived} if derived else {})
    schema = ", ".join(f"{name} {type}" for name, type in zip(names, types, strict=True))
    if draw(st.booleans()):
        return DeltaSource("/t", schema, draw(EVENT_TIME), name=name, **said)
    more = {"format": FORMAT, "key": several(SPELLED, 1), "order": SAID, "deleted": SAID, "connection": SAID,
            "counts": spoken(Counts, SAID, producers=several(SAID, 1), required=st.just(True))}  # fmt: skip
    said |= draw(st.fixed_dictionaries({}, optional=more))
    topic = draw(SAID | several(SAID, 2))
    return KafkaSource(topic, schema, draw(EVENT_TIME), name=name, **said)


@st.composite
def lookups(draw: st.DrawFn) -> Lookup:
    """Draw a look-up; its columns have types or not."""
    columns = draw(
        st.lists(
            st.builds("{}{}".format, st.text("abcd", min_size=1), st.sampled_from(["", " INT"])), max_size=2
        )
    )
    given = {"table": SAID, "prefix": SAID, "every": SPELLED, "where": SAID, "condition": SPELLED}
    said = draw(st.fixed_dictionaries({}, optional=given))
    return Lookup(
        draw(SPELLED),
        on=draw(mapping(EXPRESSION.filter(lambda text: " AND " not in text))),
        columns=columns,
        **said,
    )


@st.composite
def derived_rows(draw: st.DrawFn, name: str, names: list[str]) -> Any:
    """Draw rows that are derived from sources."""
    left, right = draw(st.sampled_from(names)), draw(st.sampled_from(names))
    on = draw(mapping(SPELLED, 1))
    safe = draw(st.sampled_from([{}, {"null_safe": [next(iter(on))]}]))
    kind = draw(st.sampled_from([Join, AsOf, Changelog, Pattern]))
    if kind is Changelog:
        return Changelog(name, left)
    if kind is AsOf:
        given = {"at_most": LENGTH, "left_where": SAID, "versions_where": SAID, "copies": st.just(True)}
        return AsOf(name, left, right, on, **safe, **draw(st.fixed_dictionaries({}, optional=given)))
    if kind is Join:
        near = {"before": LENGTH | st.builds(Open, LENGTH), "after": LENGTH | st.builds(Open, LENGTH)}
        said = draw(
            st.fixed_dictionaries({}, optional=near)
            | st.fixed_dictionaries({"same": st.builds(Tumbling, LENGTH)})
        )
        return Join(name, left, right, on, **safe, **said, **draw(st.fixed_dictionaries({}, optional=WHERE)))
    may = {
        "begin": LENGTH,
        "where": SAID,
        "skip": st.just("to next row"),
        "memory": SAID,
        "version": SAID,
    }
    return Pattern(
        name,
        left,
        draw(several(SPELLED, 1)),
        draw(st.sampled_from(["a b", "a{2,} (b | c)+?", "a* b{1,3}"])),
        draw(LENGTH),
        draw(mapping(EXPRESSION)),
        draw(mapping(st.sampled_from(["count(*)", "first(a.at)", "right.amount"]), 1)),
        **draw(st.fixed_dictionaries({}, optional=may)),
    )


@st.composite
def views(draw: st.DrawFn, name: str, of: Any) -> View:
    """Draw a view; without a name of rows it is of a source that has none."""
    keys = draw(several(SPELLED))
    sets = (
        draw(st.just([]) | st.lists(st.lists(st.sampled_from(keys), unique=True), min_size=1, max_size=3))
        if keys
        else []
    )
    grouped = {each for one in sets for each in one}
    keys = [key for key in keys if key in grouped] if sets and grouped else keys
    given = {
        "explode": st.builds(lambda key, text: {key: text}, SPELLED, EXPRESSION),
        "expect": several(EXPECT, 1),
        **WHERE,
    }
    said = draw(st.fixed_dictionaries({}, optional=given))
    more = {"grouping_sets": sets} if grouped else {}
    return View(name, keys, draw(WINDOW), draw(mapping(MEASURE, 1)), of=of, **more, **said)


@st.composite
def pipelines(draw: st.DrawFn) -> Pipeline:
    """Draw a pipeline of which SQL has a word for each setting."""
    alone = draw(st.booleans())
    names = draw(st.lists(st.text("abcdefgh", min_size=1, max_size=6), min_size=2, max_size=3, unique=True))
    source, steps = draw(sources("")), {}
    derive: list[Any] = []
    if alone:
        steps = {
            each: getattr(source, each)
            for each in ("rules", "select", "where", "side")
            if getattr(source, each)
        }
        source = make_plain(source)
        of: Any = st.just("")
    else:
        source = [draw(sources(name)) for name in names]
        derive = [draw(derived_rows(f"rows_{at}", names)) for at in range(draw(st.integers(0, 2)))]
        of = st.sampled_from([*names, *(each.name for each in derive)]) | st.just(names)
    made = [draw(views(f"view_{at}", draw(of))) for at in range(draw(st.integers(1, 3)))]
    sink = st.sampled_from([view.name for view in made])
    may = {
        "lookups": several(lookups(), 1).filter(lambda all: len({each.name for each in all}) == len(all)),
        "stream": spoken(Stream, trigger=SAID, edge_epochs=st.integers(1, 9), restart=RESTART),
        "owner": SAID,
        "tags": several(SAID, 1),
        "retries": st.integers(0, 9),
        "description": SAID,
        "on_alert": SAID,
        "sinks": several(
            spoken(KafkaSink, sink, SAID, changes=st.just(True), name=SPELLED)
            | spoken(PostgresSink, sink, SAID, schema=SAID, when=st.just("complete"))
            | spoken(DeadLetterSink, SPELLED, SAID)
            | spoken(RedisSink, sink, prefix=SAID, expire=LENGTH),
            1,
        ).filter(
            lambda all: (
                len({each.name for each in all if each.name}) == len([each for each in all if each.name])
            )
        ),
    }
    said = draw(st.fixed_dictionaries({}, optional=may))
    batch = draw(
        spoken(Batch, LENGTH, SAID, max_dirty=st.integers(1, 9), provisional=st.just(True), fresh_within=SAID)
    )
    more = {"derive": derive} if derive else {}
    return Pipeline(draw(SPELLED), source, made, batch, **steps, **said, **more)


RESTART = st.one_of(
    spoken(ExponentialDelay, longest=SAID),
    spoken(FixedDelay, delay=SAID, failures=st.integers(1, 9)),
    spoken(FailureRate, within=SAID),
    st.just(NoRestart()),
)


def make_plain(source: Any) -> Any:
    """Take the steps off a source: they are the pipeline's."""
    return replace(source, rules=(), select={}, where="", side={})


GAPS = (" ", "\n", "\t ", " -- one; 'two\n", "/* ; */", ' /* /* in */ " */ ', "\r\n")
"""What may stand between two tokens."""


@settings(max_examples=30)
@given(pipelines(), st.integers(0, 2**32))
def test_what_is_printed_is_read_back(pipeline: Pipeline, seed: int) -> None:
    """Nothing that SQL has a word for is lost, invented or taken for another, and the lay-out says nothing."""
    text, gaps = print_pipeline(pipeline), Random(seed)
    wanted = to_json(pipeline)
    assert to_json(read_pipeline_text(text, "drawn.sql")) == wanted
    tokens = tokenize_sql(text, "drawn.sql")
    laid = "".join((gaps.choice(GAPS) if each.apart else "") + each.text for each in tokens)
    assert to_json(read_pipeline_text(laid, "drawn.sql")) == wanted


def cut_by_sqlglot(text: str) -> list[str]:
    """Cut a text as the compiler of expressions does; words that it takes for one token are cut again."""
    found = dict.fromkeys((token.start, token.end) for token in PlainSpark().tokenize(text))
    return [each.text for start, end in found for each in tokenize_sql(text[start : end + 1], "")[:-1]]


@given(st.sampled_from(TEXTS) | EXPRESSION)
@example('r\'\\\' || "a\\"b" -- c')
@example("`a``b` + 'x\\\\' /* /* */ */ || 'y'")
@example("1.5e-3 + 1e5D")
def test_an_expression_is_cut_as_its_compiler_cuts_it(text: str) -> None:
    """A text that ended elsewhere for one of both would move the end of an expression."""
    assert [token.text for token in tokenize_sql(text, "")[:-1]] == cut_by_sqlglot(text)


def find_error(text: str) -> DefinitionError | None:
    """Return what is wrong with a file; None of one that declares a pipeline."""
    try:
        read_pipeline_text(text, "drawn.sql")
    except DefinitionError as error:
        return error
    return None


@given(st.text(max_size=40) | EXPRESSION)
def test_any_text_is_refused_at_a_place(text: str) -> None:
    """Whatever somebody pastes into a file ends in an error of ours, which says where."""
    error = find_error(f"CREATE VIEW v AS SELECT {text}")
    assert error is not None
    assert error.line >= 1
    assert error.column >= 1


@settings(max_examples=30)
@given(pipelines(), st.integers(0, 2**32))
def test_a_file_that_is_cut_off_is_refused(pipeline: Pipeline, seed: int) -> None:
    """Half a copied file, or one with a token less, is another pipeline or an error, and never a crash."""
    tokens = tokenize_sql(print_pipeline(pipeline), "drawn.sql")[:-1]
    at = Random(seed).randrange(len(tokens))
    half = " ".join(each.text for each in tokens[:at])
    assert not half or half.endswith(";") or find_error(half) is not None
    find_error(" ".join(each.text for each in [*tokens[:at], *tokens[at + 1 :]]))
