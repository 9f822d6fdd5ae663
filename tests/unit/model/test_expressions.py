"""What an expression may say, and what an author is told otherwise."""

from __future__ import annotations

import pytest

from seamline.model.errors import ExpressionError
from seamline.model.expressions import compile_expression
from seamline.model.types.schema import BOOLEAN, DOUBLE, INT, Schema, build_decimal_type

SCHEMA = Schema.parse(
    "carrier STRING NOT NULL, flight INT, seen BIGINT, delay DOUBLE, price DECIMAL(30,10), late BOOLEAN,"
    " departed TIMESTAMP, booked DATE, cart STRUCT<shop: STRING, lines: ARRAY<STRING>>, facts MAP<STRING, INT>"
)


def test_a_rule_names_its_columns_and_cannot_fail() -> None:
    """The kernel parses only the columns that are asked for."""
    expression = compile_expression("Carrier IN ('EWR', 'JFK') AND delay > 1.5", SCHEMA)
    assert expression.type == BOOLEAN
    assert expression.columns == {"carrier", "delay"}
    assert expression.guards == ()


def test_writing_style_does_not_change_the_normal_form() -> None:
    """A fingerprint must not move when somebody adds a space."""
    styles = ["flight+1>2 and late", "((flight + 1) > 2) AND late", "FLIGHT + 1 > 2 AND `late` -- why not"]
    assert len({compile_expression(style, SCHEMA).spark for style in styles}) == 1


@pytest.mark.parametrize(
    "text", ["carrier || 'it\\'s'", "-5L + seen", "delay * 2D", "departed > '2013-01-01'"]
)
def test_the_normal_form_is_its_own(text: str) -> None:
    """What is stored can be read back with the same meaning."""
    once = compile_expression(text, SCHEMA)
    again = compile_expression(once.spark, SCHEMA)
    assert (again.duckdb, again.type) == (once.duckdb, once.type)


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("1.5", build_decimal_type(2, 1)),
        ("flight / 2", DOUBLE),
        ("flight % 2", INT),
        ("1.5 + 1", build_decimal_type(3, 1)),
    ],
)
def test_literals_have_the_types_of_spark(text: str, type_: object) -> None:
    """1.5 is a DECIMAL in Spark; a DOUBLE here would sum to other cents."""
    assert compile_expression(text, SCHEMA).type == type_


def test_a_failing_form_carries_its_reason() -> None:
    """The message is what an operator reads in quarantine."""
    (guard,) = compile_expression("delay / flight > 2", SCHEMA).guards
    assert guard.message == "(`delay` / `flight`) divides by zero"


@pytest.mark.parametrize("text", ["CAST(flight AS BIGINT) + 1", "flight % 7", "delay / 60", "2 * 60 * 60"])
def test_what_cannot_fail_has_no_guard(text: str) -> None:
    """A guard costs time on each record, and forbids the form inside CASE."""
    assert compile_expression(text, SCHEMA).guards == ()


@pytest.mark.parametrize(
    ("text", "fact", "way_out"),
    [
        ("delai > 1", "no column", "did you mean delay"),
        ("t.delay > 1", "no column", "the columns are"),
        ("zzz", "no column", "the columns are carrier"),
        ("count(*)", "count", "measure"),
        ("sum(delay) OVER ()", "OVER", "window"),
        ("delay > (SELECT 1)", "SELECT", "look-up"),
        ("current_timestamp", "current_timestamp", "column of the record"),
        ("now() > departed", "now", "column of the record"),
        ("rand() < 0.5", "rand", "each time"),
        ("lenght(carrier) = 2", "lenght", "length"),
        ("initcap(carrier) = 'Aa'", "initcap", "lower"),
        ("carrier ILIKE 'a%'", "ILIKE", "lower"),
        ("xxhash64(carrier) % 10 = 0", "xxhash64", "use hash"),
        ("hash() = 0", "1 to 64 arguments", "docs"),
        ("hash(carrier, NULL) = 0", "may be NULL", "IS NULL"),
        ("hash(cart) = 0", "no nested value", "hash its parts"),
        ("carrier RLIKE carrier", "literal", "contains"),
        ("flight RLIKE '1'", "STRING", "cast"),
        ("carrier RLIKE 'a' = late", "chains", "parentheses"),
        ("regexp_extract(carrier, 'a')", "group 1 of a pattern with 0", "third argument"),
        ("regexp_extract(carrier, '(?:(a)b)*c')", "within a repetition", "around the repetition"),
        ("regexp_extract(carrier, '((a)b){2}c|d', 2)", "within a repetition", "around the repetition"),
        ("regexp_replace(carrier, '(?:(a)b)+c|d', '$1')", "within a repetition", "around the repetition"),
        ("regexp_extract(carrier, '(a)$', 0)", "whole match", "z for the end"),
        ("regexp_extract(carrier, '(a)', flight)", "INT literals", "number"),
        ("regexp_replace(carrier, 'a*', 'b')", "may match the empty text", "+ instead"),
        ("regexp_replace(carrier, 'a$', 'b')", "pattern with $", "z for the end"),
        ("regexp_replace(carrier, 'a', carrier)", "literal", "text itself"),
        ("regexp_replace(carrier, 'a', '$1')", "group 1 of a pattern with 0", "$"),
        ("regexp_replace(carrier, 'a', '$')", "stands for nothing", "$1"),
        ("regexp_replace(carrier, 'a', 'b', 2)", "3 arguments", "docs"),
        ("split(carrier, '')", "empty", "optional"),
        ("split(carrier, '[,;]', 2)", "limit", "leave the limit out"),
        ("concat_ws(',', flight)", "STRING", "cast"),
        ("concat_ws(NULL, carrier)", "may be NULL", "IS NULL"),
        ("concat_ws(carrier, cart.lines)", "no literal", "separator itself"),
        ("concat_ws(carrier, split(carrier, ','))", "no literal", "separator itself"),
        ("departed - booked", "arithmetic of days", "datediff"),
        ("departed + 5", "not a number", "INTERVAL"),
        ("booked + seen", "BIGINT", "INT"),
        ("booked * 2", "arithmetic of days", "INTERVAL"),
        ("departed + INTERVAL 1 MONTH 1 DAY", "mixes", "INTERVAL 5 MINUTES"),
        ("departed + INTERVAL flight DAY", "one number", "INTERVAL 5 MINUTES"),
        ("departed + INTERVAL 1.5 HOURS", "fraction", "INTERVAL"),
        ("departed + INTERVAL '1 2:03' DAY TO MINUTE", "one number", "1 DAY 2 HOURS"),
        ("departed + INTERVAL 20000 YEARS", "10,000", "INTERVAL"),
        ("departed + INTERVAL 5 M", "5 M has a unit", "5 MINUTES"),
        ("departed + INTERVAL 1 DAY '2' h", "'2' h has a unit", "5 MINUTES"),
        ("lower(lower(lower(lower(lower(lower(carrier))))))", "more than 300,000", "nest fewer"),
        ("INTERVAL 1 DAY", "not supported", "add it to"),
        ("carrier + INTERVAL 1 DAY", "is STRING", "schema"),
        ("add_months(booked, flight)", "may be more", "% 1200"),
        ("timestampadd(HOUR, flight, departed)", "may be more", "smaller unit"),
        ("timestampdiff(MONTH, departed, departed)", "MONTH", "add_months"),
        ("late AND booked + flight > booked", "can fail", "try_"),
        ("months_between(booked, booked)", "months_between", "datediff"),
        ("late AND delay / flight > 1", "can fail", "try_divide"),
        ("CASE WHEN late THEN flight + 1 ELSE 0 END", "can fail", "try_add"),
        ("coalesce(seen, CAST(carrier AS INT))", "can fail", "try_cast"),
        ("1 / 0", "every record", "constant"),
        ("flight = NULL", "may be NULL", "IS NULL"),
        ("NULL", "always NULL", "CAST"),
        ("flight = '1'", "INT and STRING", "cast"),
        ("late = 1", "BOOLEAN and INT", "cast"),
        ("flight AND late", "conditions", "compare"),
        ("flight = seen = late", "chains", "parentheses"),
        ("flight = seen < 2", "chains", "parentheses"),
        ("price * price", "61 digits", "DOUBLE"),
        ("price / 2", "rounds", "DOUBLE"),
        ("price > delay", "15 digits", "DOUBLE"),
        ("round(delay, 2)", "round", "100"),
        ("CAST(delay AS STRING)", "differently", "schema"),
        ("CAST(carrier AS DOUBLE)", "differently", "schema"),
        ("CAST(flight AS FLOAT)", "FLOAT", "DOUBLE"),
        ("departed > 'yesterday'", "yesterday", "2013-01-31"),
        ("date_trunc('decade', departed)", "decade", "hour"),
        ("carrier = 'it''s'", "not supported", "quote"),
        ("carrier LIKE 'a\\\\b'", "escapes nothing", "\\\\"),
        ("carrier LIKE carrier", "literal", "contains"),
        ("hour(carrier)", "TIMESTAMP", "cast"),
        ("delay +", "not an expression", "one Spark SQL"),
        ("", "not an expression", "one Spark SQL"),
        ("delay AS late", "AS", "alias"),
        ("length()", "1 arguments", "docs"),
        ("cart.shp", "no part 'shp'", "shop"),
        ("carrier.shop", "no named parts", "STRUCT"),
        ("facts.a", "no named parts", "['key']"),
        ("cart = cart", "has parts", "select one"),
        ("cart.lines <=> NULL", "has parts", "select one"),
        ("cart.lines[-1]", "literal index", "0 or more"),
        ("cart.lines[flight]", "literal index", "0 or more"),
        ("element_at(cart.lines, 0)", "literal index", "1 or more"),
        ("facts[carrier]", "literal key", "m['key']"),
        ("facts[1]", "literal key", "m['key']"),
        ("carrier[0]", "not an ARRAY", "MAP"),
        ("size(carrier)", "not an ARRAY or MAP", "length"),
        ("array_contains(cart.lines, 1)", "is INT", "cast"),
        ("array_contains(carrier, 'a')", "STRING in STRING", "ARRAY"),
        ("late AND cart.lines[0] = 'a'", "can fail", "try_"),
        ("length(cart)", "STRUCT", "cast"),
        ("header('a')", "not supported", "select="),
        ("_key = 'a'", "no column '_key'", "select="),
    ],
)  # fmt: skip
def test_refusals_say_what_is_wrong_and_what_to_write(text: str, fact: str, way_out: str) -> None:
    """A form that engines read differently must never be accepted in silence."""
    with pytest.raises(ExpressionError) as error:
        compile_expression(text, SCHEMA)
    assert fact.lower() in error.value.message.lower()
    assert way_out.lower() in error.value.hint.lower()


@pytest.mark.parametrize(
    ("pattern", "fact"),
    [
        ("(?=a)b", "one engine knows"),
        ("(?<!a)b", "one engine knows"),
        ("(?<name>a)", "one engine knows"),
        ("(?>a)", "one engine knows"),
        ("a(?i)b", "one engine knows"),
        ("(?m)^a", "one engine knows"),
        ("(?x)a b", "one engine knows"),
        (r"(a)\1", "\\1"),
        (r"\bword\b", "\\b"),
        (r"\Qa.b\E", "\\Q"),
        (r"a\Z", "\\Z"),
        (r"\h", "\\h"),
        (r"\R", "\\R"),
        (r"\X", "\\X"),
        (r"\p{L}", "Unicode"),
        (r"\p{IsGreek}", "Unicode"),
        (r"(?i)\p{Upper}", "Unicode"),
        (r"\ud83d", "no letter"),
        ("a++", "another repetition"),
        ("a*+", "another repetition"),
        ("a?+", "another repetition"),
        ("a{2}{3}", "another repetition"),
        ("a{3,2}", "none"),
        ("a{,3}", "no repetition"),
        ("a{02}", "no repetition"),
        ("a{1,03}", "no repetition"),
        ("a{2000}", "too often"),
        ("(a{100}){100}", "too often"),
        ("(a*)*", "may be empty"),
        ("(a|b?)+", "may be empty"),
        ("^*a", "may be empty"),
        ("a||b", "empty"),
        ("()", "empty"),
        ("*a", "without"),
        ("a}", "without"),
        ("(a", "not closed"),
        ("a)", "closes nothing"),
        ("(" * 3000 + "a" + ")" * 3000, "too deep"),
        ("a$b", "not at its end"),
        ("(a$)", "not at its end"),
        ("(?:a$)b", "not at its end"),
        ("(?:[(]$)b", "not at its end"),
        ("[a-z&&[^b]]", "&&"),
        ("[a[bc]]", "[,"),
        ("[]a]", "]"),
        ("[a", "without its end"),
        ("[a-c-e]", "- in the middle"),
        (r"[\w-a]", "- in the middle"),
        ("[z-a]", "ends before"),
        ("a\\", "\\"),
    ],
)  # fmt: skip
def test_a_pattern_of_two_meanings_is_refused(pattern: str, fact: str) -> None:
    """Java backtracks and RE2 does not: a pattern that only one of them knows would count other records."""
    with pytest.raises(ExpressionError) as error:
        compile_expression(f"carrier RLIKE r'{pattern}'", SCHEMA)
    assert fact in error.value.message
    assert error.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "regexp_extract(carrier, '((a)b){2}c|d', 1)",
        "regexp_extract(carrier, '((a)b)?c', 2)",
        "regexp_extract(carrier, '(?:(?:S|s)x)+([0-9])')",
        "regexp_replace(carrier, '((a)b)+c|d', '$0$1')",
        "carrier RLIKE '(?:(a)b)*c'",
    ],
)
def test_a_group_is_taken_where_engines_remember_the_same(text: str) -> None:
    """Only a group within what is repeated keeps in Java what was matched on a way that led nowhere."""
    assert compile_expression(text, SCHEMA).columns == {"carrier"}


@pytest.mark.parametrize(
    "text",
    ["split(carrier, ',')[0]", "element_at(split(carrier, ','), 1)", "booked + flight % 7", "booked + 9"],
)
def test_what_is_always_there_needs_no_guard(text: str) -> None:
    """A text has a first part; forbidding it inside CASE would help nobody."""
    assert compile_expression(text, SCHEMA).guards == ()
