"""The user's own step: it adds columns, may leave records out, and can lose none."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest
from tests.unit import steps
from tests.unit.records import judged, pipeline

from seamline import CountWindow, KafkaSource, Lookup, Rule, Tumbling, View, count, first, sum
from seamline.model.compile.compiled_pipeline import compile_pipeline, compile_with_problems
from seamline.model.compile.fingerprint import record_version
from seamline.model.compile.stored_definition import from_json, to_json
from seamline.model.definition.sources import EXACT, ROUNDED
from seamline.model.expressions import compile_expression
from seamline.model.types.schema import Schema
from seamline.model.user_code import hash_code
from seamline.testing import Scenario

SCHEMA = "text STRING NOT NULL, at TIMESTAMP"


def texts(function: Any = steps.words, schema: str = "words INT", **changes: Any) -> Any:
    return pipeline(SCHEMA, transform=function, transform_schema=schema, **changes)


def said(text: Any, at: str = "2024-03-01T10:00:00Z") -> bytes:
    return json.dumps({"text": text, "at": at}).encode()


def test_its_columns_are_columns_of_the_row() -> None:
    """What is derived, and every condition, may use them; what comes before it, it sees."""
    made = texts(select={"many": "words > 2"}, rules=[Rule("few", "words < 5")], where="many")
    rows = judged(made, [said("a b c"), said("a"), said("a b c d e"), b"{", said(1)])
    assert [(row["words"], row["many"], row["_selected"]) for row in rows[:2]] == [
        (3, True, True),
        (1, False, False),
    ]
    assert [row[0] for row in rows[2:]] == ["rule few", "malformed json", "mistyped field text"]


def test_what_it_leaves_out_is_accepted_and_not_selected() -> None:
    """No rule is asked of it and no side takes it: it is no row of any view."""
    made = texts(
        schema="words INT NOT NULL",
        select={"rate": "10 % words"},
        rules=[Rule("a word", "words > 0")],
        side={"ones": "words = 1 OR words IS NULL"},
    )
    left, one, two = judged(made, [said("# c"), said("a"), said("a b")])
    assert (left["words"], left["_selected"], left["_side"]) == (None, False, None)
    assert (one["words"], one["_selected"], one["_side"]) == (1, False, "ones")
    assert (two["words"], two["_selected"], two["_side"]) == (2, True, None)
    assert judged(made, [said("# c", at="1999-01-01T00:00:00Z")])[0][0] == "event time before start"


def test_only_records_that_fail_alone_are_refused() -> None:
    """One poisonous record takes nobody with it."""
    values = [said("a"), said("boom"), said("b b"), said("# c"), said("boom"), said("c")]
    rows = judged(texts(), values)
    assert [row["words"] if isinstance(row, dict) else row for row in rows] == [
        1,
        ["error in transform", "ValueError: no word for it"],
        2,
        None,
        ["error in transform", "ValueError: no word for it"],
        1,
    ]


def test_rows_are_known_by_their_place() -> None:
    """Their order does not matter, and a value that has not the declared type is its record's trouble."""
    first, second, third = judged(texts(steps.backwards), [said("a"), said("x"), said("b")])
    assert (first["text"], first["words"], third["text"], third["words"]) == ("a", 7, "b", 7)
    assert second[0] == "error in transform"


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (steps.twice, "each at most once"),
        (steps.nothing, "a NoneType, not a pyarrow.Table"),
        (steps.nameless, "no column words"),
    ],
)
def test_what_is_no_answer_is_refused_with_its_records(function: Any, why: str) -> None:
    """A record counted twice or lost would never be noticed again."""
    (reason, detail) = judged(texts(function), [said("a")])[0]
    assert reason == "error in transform"
    assert why in detail


def test_event_time_and_id_may_be_its_columns() -> None:
    """A step that parses a clock of its own is what it is for; a record left out has no time then."""
    made = texts(schema="words INT", select={"spoken": "CASE WHEN words > 1 THEN at END"})
    made = replace(made, source=replace(made.source, event_time="spoken", event_id=["words"]))
    taken, left = judged(made, [said("a b"), said("# c")])
    assert f"{taken['_event_time']:%H:%M:%S}" == "10:00:00"
    assert left == ["null event time", ""]


def test_a_scenario_runs_it() -> None:
    """The kit and the views see what the kernel made."""
    view = View("by_text", keys=["text"], window=Tumbling("1 day"), measures={"words": sum("words")})
    scenario = Scenario(texts(views=[view]), now="2024-03-02")
    scenario.send(said("a b"), said("# c"), said("boom"), said("a b"))
    assert scenario.epoch().rows == 3
    assert [(row["text"], row["words"]) for row in scenario.answer()] == [("a b", 4)]
    assert [each.reason for each in scenario.quarantine()] == ["error in transform"]


def function(body: str) -> FunctionType:
    names: dict[str, Any] = {}
    exec(f"def made(rows, most=1):\n    {body}\n", names)
    found = names["made"]
    assert isinstance(found, FunctionType)
    return found


BODY = "return [each for each in rows if each in {'a', 'b'}]"


def test_another_meaning_is_another_record_version() -> None:
    """Constants and the functions inside count; blank lines and comments do not."""
    other = [BODY.replace("'b'", "'c'"), BODY.replace(" in {", " not in {"), BODY.replace("rows", "most")]
    assert hash_code(function(BODY)) == hash_code(function(f"# a comment\n\n    {BODY}"))
    assert len({hash_code(function(body)) for body in [BODY, *other]}) == 4


def test_the_record_version_knows_the_step() -> None:
    """A helper that changed is told by another version; the definition without a step keeps its hash."""
    plain = pipeline(SCHEMA)
    versions = {
        record_version(each)
        for each in (
            plain,
            texts(),
            texts(steps.twice),
            texts(transform_version="2"),
            texts(schema="words BIGINT"),
        )
    }
    assert len(versions) == 5
    assert record_version(texts("tests.unit.steps:words")) == record_version(texts())


def test_a_stored_definition_names_it() -> None:
    """The birth of a view keeps the name, and runs what it names."""
    made = texts()
    assert made.transform == "tests.unit.steps:words"
    assert from_json(to_json(made)) == made
    assert compile_pipeline(from_json(to_json(made))).record_version == compile_pipeline(made).record_version


def here(rows: Any) -> Any:
    """Stand in a definition's own file."""


here.__module__ = "seamline_definitions_here"


WRONG: dict[str, tuple[dict[str, Any], str, str]] = {
    "no module": ({"transform": "clean"}, "transform", "does not name a function of a module"),
    "lambda": ({"transform": lambda rows: rows}, "transform", "does not name a function of a module"),
    "own file": ({"transform": here}, "transform", "is defined in the file of the definition"),
    "other module": ({"transform": "tests.unit.nowhere:clean"}, "transform", "ModuleNotFoundError"),
    "no name": ({"transform": "tests.unit.steps:absent"}, "transform", "AttributeError"),
    "no function": (
        {"transform": "tests.unit.steps:notafunction"},
        "transform",
        "is of type int, not a function",
    ),
    "no schema": ({"transform_schema": ""}, "transform_schema", "schema is empty"),
    "type": ({"transform_schema": "words NUMBER"}, "transform_schema", "unknown type"),
    "taken": ({"transform_schema": "Text STRING"}, "transform_schema", "already has a column 'Text'"),
    "no transform": ({"transform": ""}, "transform_schema", "no transform"),
    "select takes": ({"select": {"words": "1"}}, "select[words]", "A column 'words' already exists"),
}


@pytest.mark.parametrize(("changes", "field", "why"), WRONG.values(), ids=WRONG)
def test_a_wrong_step_is_told(changes: dict[str, Any], field: str, why: str) -> None:
    """It is told where the definition is written, before a record meets it."""
    compiled, problems = compile_with_problems(replace(texts(), **changes))
    assert compiled is None
    assert (problems[0].field, why in problems[0].message) == (field, True)
    assert problems[0].file.endswith(".py")
    assert problems[0].hint


def worded(function: Any = steps.lines, schema: str = "word STRING, letters INT", **changes: Any) -> Any:
    return texts(function, schema, transform_rows="words", **changes)


def test_a_record_may_have_any_number_of_rows() -> None:
    """The master has one row for each record, with all that was made of it, in the order of its making."""
    made = worded(rules=[Rule("few", "size(words) < 3")], select={"many": "size(words) > 1"})
    values = [said("a bb"), said(""), said("ccc"), said("boom"), said("a b c"), said(1), said("-")]
    two, none, one, broken, ruled, mistyped, nameless = judged(made, values)
    assert two["words"] == [{"word": "bb", "letters": 2}, {"word": "a", "letters": 1}]
    assert (none["words"], none["_selected"], none["many"]) == ([], True, False)
    assert one["words"] == [{"word": "ccc", "letters": 3}]
    assert broken == ["error in transform", "ValueError: no word for it"]
    assert (ruled[0], mistyped[0]) == ("rule few", "mistyped field text")
    assert nameless["words"] == [{"word": None, "letters": 1}]


@pytest.mark.parametrize(
    ("function", "schema", "why"),
    [
        (steps.strangers, "word STRING", "not of the records that it was given"),
        (steps.nothing, "word STRING", "a NoneType, not a pyarrow.Table"),
        (steps.lines, "term STRING", "no column term"),
        (steps.lines, "word STRING NOT NULL", "its column word has no value in a row"),
        (steps.lines, "word INT", "ArrowInvalid"),
    ],
)
def test_rows_that_were_not_declared_are_refused_with_their_record(
    function: Any, schema: str, why: str
) -> None:
    """Rows of another record would be counted for one that never had them."""
    (reason, detail) = judged(worded(function, schema), [said("a -")])[0]
    assert reason == "error in transform"
    assert why in detail


def test_views_count_the_rows_of_a_transform() -> None:
    """Keys and measures are of each row; what a record has is beside it."""
    views = [
        View(
            "by_word",
            keys=["word"],
            window=Tumbling("1 day"),
            where="letters > 1",
            measures={"n": count(), "letters": sum("letters + size(words)"), "opened": first("text")},
        )
    ]
    scenario = Scenario(worded(views=views), now="2024-03-02")
    scenario.send(said("aa bb aa"), said(""), said("boom"), said("aa c"))
    epoch = scenario.epoch()
    assert (epoch.rows, dict(epoch.refused)) == (3, {"error in transform": 1})
    assert [(row["word"], row["n"], row["letters"], row["opened"]) for row in scenario.answer()] == [
        ("aa", 3, 14, "aa bb aa"),
        ("bb", 1, 5, "aa bb aa"),
    ]


def test_rows_may_have_columns_of_any_type() -> None:
    """They are parts of a nested column, decimals by their own digits."""
    schema = "price DECIMAL(5,2), tags ARRAY<STRING>, facts MAP<STRING, INT>, part STRUCT<x: ARRAY<BOOLEAN>>"
    schema += ", raw BINARY"
    view = View(
        "by_price",
        keys=["price"],
        window=Tumbling("1 day"),
        where="size(tags) = 1 AND get(part.x, 0)",
        measures={"n": count(), "total": sum("price * facts['k']")},
    )
    made = texts(steps.nested, schema, transform_rows="words", views=[view])
    row = {"price": Decimal("0.50"), "tags": ["a"], "facts": [("k", 1)], "part": {"x": [True]}, "raw": b"r"}
    assert [each["words"] for each in judged(made, [said("a"), said("b")])] == [[row, row]] * 2
    scenario = Scenario(made, now="2024-03-02")
    scenario.send(said("a"), said("b"))
    scenario.epoch()
    [answer] = scenario.answer()
    assert (answer["price"], answer["n"], answer["total"]) == (Decimal("0.50"), 4, Decimal("2.00"))


def test_a_lookup_decorates_a_key_of_rows(tmp_path: Path) -> None:
    """At a read there is no record any more: a key is a column like any other."""
    (tmp_path / "names.csv").write_text("word,name\naa,double a\n")
    view = View("by_word", keys=["word"], window=Tumbling("1 day"), measures={"n": count()})
    names = Lookup("names", str(tmp_path / "names.csv"), on={"word": "lower(word)"}, columns=["name"])
    found = compile_pipeline(worded(views=[view], lookups=[names])).views[0]
    [join] = found.decorations
    assert [made.duckdb for _, made in join.keys] == [
        compile_expression("lower(word)", Schema.parse("word STRING")).duckdb
    ]


WRONG_ROWS: dict[str, tuple[dict[str, Any], str, str]] = {
    "rows' name": ({"transform_rows": "my words"}, "transform_rows", "not a valid name"),
    "rows' name of a column": ({"transform_rows": "text"}, "transform_rows", "'text' already exists"),
    "rows' name of their own": ({"transform_rows": "word"}, "transform_rows", "'word' already exists"),
    "rows of no transform": (
        {"transform": "", "transform_schema": ""},
        "transform_rows",
        "There is no transform",
    ),
    "rows' column of a record": (
        {"transform_schema": "text STRING"},
        "transform_schema",
        "already has a column",
    ),
    "rows' column of select": ({"select": {"Word": "1"}}, "select[Word]", "not a valid name"),
    "rows' column derived": (
        {"select": {"word": "1"}},
        "transform_schema",
        "'word' is derived of the record",
    ),
    "rule of rows": (
        {"rules": [Rule("short", "letters < 9")]},
        "rules[short].condition",
        "no column 'letters'",
    ),
    "where of rows": ({"where": "letters < 9"}, "where", "no column 'letters'"),
    "event time of rows": (
        {"source": KafkaSource(topic="t", schema=SCHEMA, event_time="letters")},
        "source.event_time",
        "no column 'letters'",
    ),
    "rows exploded": (
        {
            "views": [
                View(
                    "all_rows",
                    keys=[],
                    window=Tumbling("1 day"),
                    explode={"w": "words"},
                    measures={"n": count()},
                )
            ]
        },
        "views[all_rows].explode",
        "explodes nothing more",
    ),
    "windows of so many rows": (
        {"views": [View("all_rows", keys=[], window=CountWindow(2), measures={"n": count()})]},
        "views[all_rows].window",
        "cannot count the rows of a transform",
    ),
}


@pytest.mark.parametrize(("changes", "field", "why"), WRONG_ROWS.values(), ids=WRONG_ROWS)
def test_wrong_rows_are_told(changes: dict[str, Any], field: str, why: str) -> None:
    """What is of a record and what is of its rows must not be mistaken for each other."""
    compiled, problems = compile_with_problems(replace(worded(), **changes))
    assert compiled is None
    assert (problems[0].field, why in problems[0].message) == (field, True), problems
    assert problems[0].hint


def test_rows_are_part_of_what_a_record_means() -> None:
    """The same function with one row for each record is another record version; so is another name."""
    made = worded()
    others = [replace(made, transform_rows=""), replace(made, transform_rows="lines")]
    assert len({record_version(each) for each in [made, *others]}) == 3
    assert from_json(to_json(made)) == made


def test_a_double_that_it_gives_is_never_rounded_to_a_decimal() -> None:
    """Arrow's own cast makes 0.12 of 0.125, and 0.300000000000000044 of 0.1 + 0.2."""
    made = texts(steps.priced, "price DECIMAL(38,18)")
    found = judged(made, [said(text) for text in ("0.1", "1e16", "0.30000000000000004", "1e-19")])
    assert [row["price"] for row in found[:2]] == [Decimal("0.1"), Decimal(10**16)]
    longer = "0.30000000000000004 has more than the 15 digits that a double keeps"
    assert found[2:] == [
        ["error in transform", f"TypeError: its column price is double, not decimal128(38, 18): {longer}"],
        [
            "error in transform",
            "TypeError: its column price is double, not decimal128(38, 18): 1e-19 does not fit",
        ],
    ]


@pytest.mark.parametrize("before", [EXACT, ROUNDED])
def test_a_transform_stored_before_rounds_as_it_did(before: str) -> None:
    """Another version of the record reads it exactly; only a transform that makes DECIMALs has one."""
    for schema, moved in (("price DECIMAL(10,2)", True), ("price DOUBLE", False)):
        made = texts(steps.priced, schema)
        old = replace(made, source=replace(made.source, decimals=before))
        assert (record_version(made) != record_version(old)) == moved
    [found] = judged(replace(old, transform_schema="price DECIMAL(10,2)"), [said("0.125")])
    assert found["price"] == Decimal("0.12")
