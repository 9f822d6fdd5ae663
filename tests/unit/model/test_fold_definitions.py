"""Patterns and co-groups in a pipeline: what engines get of them, and what is wrong with either."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.unit.group_functions import AsksClock, Both, NoGroup, WrongGroup
from tests.unit.model.refused import require_refused

from seamline import Batch, CoGroup, KafkaSource, Pattern, Pipeline, Tumbling, View, count, max, sum
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.compile.processes.compiled_process import CompiledProcess
from seamline.model.compile.processes.lawfulness import list_broken_laws
from seamline.model.compile.processes.pattern_rules import unite_conditions
from seamline.model.compile.stored_definition import from_json, to_json
from seamline.model.functions.folding import MOST_CHAINED
from seamline.plan.wording.source_text import describe_derived

HOUR = Tumbling("1 hour")
LOGINS = KafkaSource(
    name="logins",
    topic="logins",
    schema="user STRING NOT NULL, success BOOLEAN, name STRING, total DECIMAL(10,2), at TIMESTAMP",
    event_time="at",
)
CALLS = KafkaSource(
    name="calls",
    topic="calls",
    schema="caller STRING, left_user INT, n INT, at TIMESTAMP",
    event_time="at",
)
STOLEN = Pattern(
    "stolen",
    of="logins",
    keys=["user"],
    steps="fail{3,} ok",
    within="10 minutes",
    define={"fail": "NOT success", "ok": "success"},
    select={"tries": "count(fail)", "since": "first(fail.at)", "paid": "sum(total)"},
)
BOTH = CoGroup(
    "both", left="logins", right="calls", on={"user": "caller"}, window=Tumbling("30 minutes"), by=Both
)
FOUND = View("found", of="stolen", keys=["user"], window=HOUR, measures={"n": count(), "tries": sum("tries")})
MET = View(
    "met", of="both", keys=["user", "kind"], window=HOUR, measures={"n": count(), "worth": sum("worth")}
)
ALONE = View("alone", of="both.alone", keys=["user"], window=HOUR, measures={"n": count()})


class Other(Both):
    """Has other code."""

    def __init__(self) -> None:
        self.least = 1


SHOP = Pipeline(
    name="shop",
    source=[LOGINS, CALLS],
    derive=[STOLEN, BOTH],
    views=[FOUND, MET, ALONE],
    batch=Batch("1 hour", "2026-01-05"),
)


def with_pattern(**changes: Any) -> Pipeline:
    """Return the pipeline with another pattern."""
    return replace(SHOP, derive=[replace(STOLEN, **changes), BOTH])


def with_group(**changes: Any) -> Pipeline:
    """Return the pipeline with another co-group."""
    return replace(SHOP, derive=[STOLEN, replace(BOTH, **changes)])


WRONG: Mapping[str, tuple[Pipeline, str, str]] = {
    "a pattern of nobody": (with_pattern(of="login"), "derive[stolen].of", "There is no source 'login'"),
    "a pattern of a pattern": (with_pattern(of="both"), "derive[stolen].of", "There is no source 'both'"),
    "a pattern without keys": (with_pattern(keys=[]), "derive[stolen].keys", "into one state"),
    "a key without a last digit": (with_pattern(keys=["usr"]), "derive[stolen].keys", "no column 'usr'"),
    "steps without an end": (with_pattern(steps="(fail ok"), "derive[stolen].steps", "never closed"),
    "steps of nothing": (with_pattern(steps="fail*"), "derive[stolen].steps", "match no rows at all"),
    "steps without a number": (
        with_pattern(steps="fail{,6000} ok"),
        "derive[stolen].steps",
        "places for rows",
    ),
    "no conditions": (with_pattern(define={}), "derive[stolen].define", "No step has a condition"),
    "a condition of no step": (
        with_pattern(define={"fails": "NOT success"}),
        "derive[stolen].define",
        "There is no step 'fails'",
    ),
    "a condition that is none": (
        with_pattern(define={"fail": "name"}),
        "derive[stolen].define[fail]",
        "not a condition",
    ),
    "a condition that may fail": (
        with_pattern(define={"fail": "CAST(name AS INT) > 1"}),
        "derive[stolen].define[fail]",
        "can fail",
    ),
    "a match without a time": (with_pattern(within=""), "derive[stolen].within", "duration"),
    "a match over spans": (with_pattern(within="2 hours"), "derive[stolen].within", "no match is that long"),
    "a match over its span": (
        with_pattern(within="11 minutes", begin="10 minutes"),
        "derive[stolen].within",
        "after which the search begins anew",
    ),
    "a search over borders": (with_pattern(begin="25 minutes"), "derive[stolen].begin", "cross the border"),
    "a column that is none": (
        with_pattern(select={"x": "first(fail.amount)"}),
        "derive[stolen].select",
        "names a column 'amount'",
    ),
    "a match of nothing": (
        with_pattern(select={"user": "count(*)"}),
        "derive[stolen].select",
        "in each row already",
    ),
    "another skip": (with_pattern(skip="nowhere"), "derive[stolen].skip", "is unknown"),
    "a pattern by a number": (with_pattern(steps=7), "derive[stolen].steps", "7"),
    "a pattern's wrong condition": (with_pattern(where="total >"), "derive[stolen].where", "total >"),
    "a call of no time": (with_group(timeout="soon"), "derive[both].timeout", "soon"),
    "a state of no size": (with_pattern(memory="some"), "derive[stolen].memory", "not a memory size"),
    "copies of a pattern": (with_pattern(copies=True), "derive[stolen].copies", "no event_id"),
    "a measure of a pattern that keeps no rest": (
        replace(SHOP, views=[replace(FOUND, measures={"most": max("tries")})]),
        "views[found].measures[most]",
        "cannot subtract them",
    ),
    "a side of a pattern": (
        replace(SHOP, views=[replace(FOUND, of="stolen.odd")]),
        "views[found].of",
        "no side 'odd'",
    ),
    "a group of nobody": (with_group(right="call"), "derive[both].right", "There is no source 'call'"),
    "a group of one source": (with_group(right="logins"), "derive[both].right", "the same source"),
    "a group without a key": (with_group(on={}), "derive[both].on", "has no key"),
    "a group of two types": (with_group(on={"user": "n"}), "derive[both].on", "columns of one type"),
    "a group of no column": (with_group(on={"user": "called"}), "derive[both].on", "no column 'called'"),
    "a group of a quarter": (
        with_group(window=Tumbling("90 days")),
        "derive[both].window",
        "more than 2000 intervals",
    ),
    "a group beside the hour": (
        with_group(window=Tumbling("1 hour", offset="5 minutes")),
        "derive[both].window",
        "without an offset",
    ),
    "a group in a zone": (
        with_group(window=Tumbling("1 hour", zone="Europe/Paris")),
        "derive[both].window",
        "begin in UTC",
    ),
    "a group of no class": (
        with_group(by="tests.unit.group_functions:Nobody"),
        "derive[both].by",
        "imported",
    ),
    "a class without a group": (with_group(by=NoGroup), "derive[both].by", "has no group"),
    "a group of one argument": (with_group(by=WrongGroup), "derive[both].by", "cannot be called"),
    "a group with a clock": (with_group(by=AsksClock), "derive[both].by", "imports time"),
    "a group's other column": (
        with_group(left_columns=["totl"]),
        "derive[both].left_columns",
        "column 'totl'",
    ),
    "a group of one column twice": (
        with_group(right_columns=["n", "n"]),
        "derive[both].right_columns",
        "twice",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_refused_with_its_place(name: str) -> None:
    """And with the way out."""
    require_refused(*WRONG[name], __file__)


def derived(name: str, pipeline: Pipeline = SHOP) -> CompiledProcess:
    """Compile one of them."""
    view = compile_pipeline(pipeline).view(name)
    assert view.process
    return view.process


def test_a_pattern_is_given_which_steps_hold() -> None:
    """And the columns that it shows, no others; a match has those of the key and what is selected."""
    made = derived("found")
    assert [each.name for each in made.columns] == ["user", "total", "at", "_steps"]
    assert [str(each) for each in made.schema("").fields] == [
        "user: STRING NOT NULL",
        "tries: BIGINT",
        "since: TIMESTAMP",
        "paid: DECIMAL(38,2)",
    ]
    assert (made.begin, made.function.user) == (timedelta(hours=1), None)
    [side] = made.sides
    assert side.made["_steps"].columns == {"success"}


def test_a_step_without_a_condition_is_taken_by_any_row() -> None:
    """As in SQL: its bit is always there."""
    assert (
        unite_conditions([None]).spark == "CASE WHEN true THEN CAST(1 AS BIGINT) ELSE CAST(0 AS BIGINT) END"
    )
    pipeline = with_pattern(steps="fail any ok")
    assert (
        "CASE WHEN true THEN CAST(2 AS BIGINT)" in derived("found", pipeline).sides[0].made["_steps"].duckdb
    )


def test_both_sides_of_a_group_have_the_same_columns() -> None:
    """The key by its left names; whatever either side calls its own."""
    made = derived("met", with_group(left_columns=["name", "total"]))
    one, other = made.sides
    assert one.columns == other.columns
    assert [each.name for each in one.columns] == [
        *("user", "_right", "_left_user", "_left_name", "_left_total"),
        *("_right_caller", "_right_left_user", "_right_n", "_right_at"),
    ]
    assert (one.made["user"].spark, other.made["user"].spark) == ("`user`", "`caller`")
    assert (one.made["_right"].duckdb, other.made["_right"].duckdb) == ("false", "true")
    assert other.made["_left_total"].duckdb == "CAST(NULL AS DECIMAL(10,2))"
    assert made.begin == timedelta(minutes=30)


def test_what_it_means_is_in_the_name_of_a_version() -> None:
    """And nothing else is."""
    patterns: list[dict[str, Any]] = [
        {},
        {"steps": "fail{4,} ok"},
        {"within": "11 minutes"},
        {"define": {"fail": "NOT success"}},
        {"select": {"tries": "count(*)"}},
        {"begin": "30 minutes"},
        {"where": "total > 0"},
        {"skip": "to next row"},
        {"version": "2"},
        {"keys": ["user", "name"]},
    ]
    made = [compile_pipeline(with_pattern(**each)).view("found") for each in patterns]
    assert len({each.fingerprint for each in made}) == len(patterns)
    assert len({each.process.id for each in made if each.process}) == len(patterns)
    groups: list[dict[str, Any]] = [
        {},
        {"window": Tumbling("20 minutes")},
        {"right_columns": ["n"]},
        {"left_columns": ["name", "total"]},
        {"version": "2"},
        {"left": "calls", "right": "logins", "on": {"caller": "user"}},
        {"by": Other},
    ]
    one = replace(SHOP, views=[replace(MET, keys=["kind"])])
    made = [compile_pipeline(replace(one, derive=with_group(**each).derive)).view("met") for each in groups]
    assert len({each.fingerprint for each in made}) == len(groups)
    assert len({each.process.id for each in made if each.process}) == len(groups)
    same = compile_pipeline(with_pattern(within="600 seconds", begin="60 minutes")).view("found")
    assert same.fingerprint == compile_pipeline(SHOP).view("found").fingerprint


def test_the_key_of_a_group_is_null_where_either_side_may_be() -> None:
    """A right row has no left one's guarantee; what the class is given of a side is as its source declares it."""
    made = derived("met")
    assert str(made.schema("").fields[0]) == "user: STRING"
    assert [each.nullable for each in made.columns if each.name in ("_left_user", "_left_name")] == [
        False,
        True,
    ]


def test_what_they_may_cost_is_no_part_of_what_they_mean() -> None:
    """A pattern's timers end with its rows, however many there are; those of users' code may set one another."""
    assert derived("found").fold.chained > MOST_CHAINED == derived("met").fold.chained
    for one, other in (
        (SHOP, with_pattern(timeout="1 minute", memory="1g")),
        (SHOP, with_group(timeout="1 minute", memory="1g")),
    ):
        assert [view.id for view in compile_pipeline(one).views] == [
            view.id for view in compile_pipeline(other).views
        ]
    budget = derived("met", with_group(timeout="1 minute", memory="1g")).budget
    assert (budget.seconds, budget.memory) == (60, 1 << 30)
    assert derived("found").fold.largest == 64 << 20


def test_they_outlive_their_file() -> None:
    """A version of a view is born with its definition as text."""
    stored = from_json(to_json(SHOP))
    one, other = (compile_pipeline(each).views for each in (stored, SHOP))
    assert [view.id for view in one] == [view.id for view in other]


def test_they_keep_the_laws_of_functions() -> None:
    """Tried on random rows of the columns that they are given."""
    assert [*list_broken_laws(compile_pipeline(SHOP))] == []


def test_they_are_described_in_words() -> None:
    """For pages, and for who reads a plan."""
    assert describe_derived(STOLEN) == (
        "pattern stolen",
        (
            "fail{3,} ok (fail: NOT success; ok: success) within 10 minutes, in the rows of logins by user, anew in "
            "each interval: count(fail) AS tries, first(fail.at) AS since, sum(total) AS paid"
        ),
    )
    assert describe_derived(BOTH) == (
        "co-group both",
        (
            "tests.unit.group_functions:Both is given the rows of logins and calls where logins.user = calls.caller, "
            "by windows of 30 minutes"
        ),
    )
