"""What a match shows: the texts of select, their types, and their values."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest

from seamline.model.errors import DefinitionError
from seamline.model.patterns.selecting import parse_select
from seamline.model.types.schema import Schema

STEPS = ("fail", "ok")
ROWS = Schema.parse(
    "at TIMESTAMP, amount DECIMAL(10,2), tries INT, ms BIGINT, load DOUBLE, Host STRING, tags ARRAY<STRING>"
)


def show(text, values, steps):
    """Return what a text shows of values."""
    (selected,) = parse_select({"x": text}, STEPS, ROWS)
    return selected.show(values, steps)


@pytest.mark.parametrize(
    ("text", "step", "column", "type"),
    [
        ("count(*)", None, "", "BIGINT"),
        (" COUNT ( fail ) ", 0, "", "BIGINT"),
        ("count(ok.amount)", 1, "amount", "BIGINT"),
        ("first(fail.at)", 0, "at", "TIMESTAMP"),
        ("last( ok . HOST )", 1, "Host", "STRING"),
        ("ok.tags", 1, "tags", "ARRAY<STRING>"),
        ("at", None, "at", "TIMESTAMP"),
        ("first(at)", None, "at", "TIMESTAMP"),
        ("min(fail.amount)", 0, "amount", "DECIMAL(10,2)"),
        ("max(Host)", None, "Host", "STRING"),
        ("sum(fail.amount)", 0, "amount", "DECIMAL(38,2)"),
        ("sum(fail.tries)", 0, "tries", "BIGINT"),
        ("sum(fail.load)", 0, "load", "DOUBLE"),
        ("avg(fail.ms)", 0, "ms", "DOUBLE"),
    ],
)
def test_what_is_selected(text, step, column, type):
    """The columns of a match are known before any row is."""
    (found,) = parse_select({"x": text}, STEPS, ROWS)
    assert (found.step, found.column, str(found.type)) == (step, column, type)


@pytest.mark.parametrize(
    ("text", "values", "shown"),
    [
        ("count(*)", [7, 8, 9, 9], 4),
        ("count(fail)", [7, 8, 9, 9], 3),
        ("count(fail.ms)", [None, 8, 9, 9], 2),
        ("first(fail.ms)", [None, 8, 9, 9], None),
        ("first(ms)", [7, 8, 9, 10], 7),
        ("last(fail.ms)", [7, 8, 9, 10], 9),
        ("fail.ms", [7, 8, None, 10], None),
        ("ms", [7, 8, 9, 10], 10),
        ("sum(fail.ms)", [7, None, 9, 100], 16),
        ("avg(fail.ms)", [7, None, 10, 100], 8.5),
        ("avg(fail.amount)", [Decimal("0.10"), Decimal("0.20"), None, None], 0.15),
        ("min(fail.ms)", [7, None, 5, 1], 5),
        ("max(ms)", [7, None, 5, 1], 7),
        ("sum(fail.ms)", [None, None, None, 1], None),
        ("min(fail.ms)", [None, None, None, 1], None),
        ("avg(fail.ms)", [None, None, None, 1], None),
        ("sum(fail.ms)", [2**63 - 1, 1, None, 0], None),
        ("sum(fail.load)", [1e16, 1.0, -1e16, 5.0], 1.0),
    ],
)
def test_what_is_shown_of_three_failures_and_a_success(text, values, shown):
    """Each by hand; a NULL is a value to first and last, as in SQL, and none to the others."""
    assert show(text, values, [0, 0, 0, 1]) == shown


@pytest.mark.parametrize("function", ["first", "last", "sum", "min", "max", "avg"])
def test_a_step_without_rows_shows_null(function):
    """An optional step need not have matched; its count is 0."""
    assert show(f"{function}(ok.ms)", [1, 2], [0, 0]) is None
    assert show("ok.ms", [1, 2], [0, 0]) is None and show("count(ok)", [1, 2], [0, 0]) == 0


def test_nan_is_larger_than_all_numbers():
    """So it is in both engines; in Python it depends on the order."""
    for values in ([math.nan, 1.0, 2.0], [1.0, 2.0, math.nan]):
        assert show("min(load)", values, [0, 0, 0]) == 1.0
        assert math.isnan(show("max(load)", values, [0, 0, 0]))


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        ("count(*) + 1", "cannot be read", "count(*)"),
        (3, "cannot be read", "count(*)"),
        ("median(fail.ms)", "calls 'median', which is unknown", "count, first, last, sum, min, max, avg"),
        ("count(miss)", "names a column 'miss', which is unknown", "steps are fail, ok"),
        ("miss.at", "names a step 'miss', which is unknown", "steps are fail, ok"),
        ("first(fail.att)", "names a column 'att', which is unknown", "columns are at."),
        ("first(fail.zone)", "names a column 'zone', which is unknown", "at, amount, tries"),
        ("first(fail)", "takes the first of a step's rows", "first(fail.column)"),
        ("sum(*)", "takes the sum of rows", "sum(fail.column)"),
        ("sum(fail.Host)", "takes the sum of Host, which is STRING", "INT, BIGINT, DOUBLE, DECIMAL"),
        ("max(fail.tags)", "takes the max of tags, which is ARRAY<STRING>", "TIMESTAMP"),
    ],
)
def test_what_is_wrong_is_said_with_what_is_known(text, said, hint):
    """A misspelt name is found by its reader, without the source."""
    with pytest.raises(DefinitionError) as caught:
        parse_select({"x": text}, STEPS, ROWS)
    assert said in caught.value.message and hint in caught.value.hint


@pytest.mark.parametrize("name", ["_x", "class", "a INT, b", 3])
def test_a_name_that_no_column_may_have(name):
    """It would become a column of a table."""
    with pytest.raises(DefinitionError):
        parse_select({name: "count(*)"}, STEPS, ROWS)


def test_names_differ_in_more_than_case():
    """Spark ignores case."""
    with pytest.raises(DefinitionError, match="twice"):
        parse_select({"n": "count(*)", "N": "count(ok)"}, STEPS, ROWS)
