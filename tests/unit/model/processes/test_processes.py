"""What a process needs of its source and of its function; each problem says what to write."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.unit.process_functions import Abandoned, Counts

from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.compile.problems import Problems
from seamline.model.compile.processes.compiled_process import CompiledProcess
from seamline.model.compile.processes.lawfulness import require_lawful
from seamline.model.compile.processes.process_rules import compile_process
from seamline.model.definition.layers import Batch
from seamline.model.definition.pipeline import Pipeline, View
from seamline.model.definition.processes import Process
from seamline.model.definition.sources import KafkaSource
from seamline.model.definition.windows import Tumbling
from seamline.model.errors import DefinitionError
from seamline.model.measures import count
from seamline.model.time.intervals import parse_duration

CARTS = Pipeline(
    name="shop",
    source=KafkaSource(
        topic="clicks",
        schema="user STRING, total DOUBLE, name STRING, at TIMESTAMP, cart STRUCT<n: INT>",
        event_time="at",
    ),
    views=[View("v", keys=["user"], window=Tumbling("1 hour"), measures={"n": count()})],
    batch=Batch(interval="1 hour", start="2026-01-01"),
)
PROCESS = Process("carts", of="clicks", by=Abandoned, keys=["user"])


def compiled(**changes: Any) -> CompiledProcess:
    """Compile a process; raise its first problem."""
    pipeline, problems = compile_pipeline(CARTS), Problems()
    found = compile_process(replace(PROCESS, **changes), pipeline.record, pipeline.grid, problems)
    if found is None:
        raise problems.found[0]
    return found


def test_a_process_has_what_engines_need():
    """Columns that it does not read are not read for it."""
    found = compiled(columns=["total"], forget="2 hours", where="total > 0")
    assert [each.name for each in found.columns] == ["user", "total"]
    assert (found.begin, found.size, found.fold.forget) == (timedelta(hours=1), 3_600_000_000, 7_200_000_000)
    assert [str(each) for each in found.schema("").fields] == [
        "user: STRING",
        "kind: STRING",
        "amount: DECIMAL(10,2)",
    ]
    assert [each.name for each in found.schema("refunds").fields] == ["user", "amount"]
    assert [each.name for each in found.schema("errors").fields][:3] == ["user", "call", "error"]


@pytest.mark.parametrize("begin", ["1 hour", "60 minutes", "20 minutes"])
def test_a_state_begins_anew_at_borders(begin):
    """Of intervals, or of parts that fit into one: no border of an interval cuts a state in two."""
    assert compiled(begin=begin).begin == parse_duration(begin)


def test_what_it_means_names_its_cache():
    """A cache of another function, or of other rows, is none."""
    changes: list[dict[str, Any]] = [
        {},
        {"by": Counts},
        {"keys": ["name"]},
        {"columns": ["total"]},
        {"where": "total > 0"},
        {"begin": "30 minutes"},
        {"forget": "1 hour"},
        {"version": "2"},
    ]
    ids = [compiled(**each).id for each in changes]
    assert len(set(ids)) == len(changes)
    assert compiled().id == ids[0]


class Clock(Abandoned):
    """Asks the clock."""

    def row(self, state: Any, row: Any, out: Any) -> Any:
        """Ask it."""
        import time

        return (time.time(),)


class EmitsKey(Abandoned):
    """Emits a column that each row has."""

    emits = "User STRING"


class Lawless(Counts):
    """Changes its rows."""

    def row(self, state: Any, row: Any, out: Any) -> Any:
        """Take a column away."""
        row.pop("total")
        return super().row(state, row, out)


@pytest.mark.parametrize(
    ("changes", "field", "problem"),
    [
        ({"keys": []}, "keys", "would be folded into one state"),
        ({"keys": ["usr"]}, "keys", "Source 'clicks' has no column 'usr'"),
        ({"keys": ["user", "user"]}, "keys", "'user' is named twice"),
        ({"keys": ["total"]}, "keys", "total"),
        ({"columns": ["totl"]}, "columns", "has no column 'totl'"),
        ({"where": "total >"}, "where", "total >"),
        ({"where": "CAST(name AS INT) > 1"}, "where", "can fail"),
        ({"by": "tests.unit.process_functions:Nobody"}, "by", "cannot be imported"),
        ({"by": "tests.unit.process_functions:HALF_HOUR"}, "by", "is of type timedelta, not a class"),
        ({"by": Clock}, "by", "Clock.row imports time"),
        ({"by": EmitsKey}, "by", "emits a column 'User', and the key 'user' is in each row already"),
        ({"begin": "25 minutes"}, "begin", "does not divide an interval of 1 hour"),
        ({"begin": "90 minutes"}, "begin", "is no whole number of intervals of 1 hour"),
        ({"begin": "84 days"}, "begin", "84 days is more than 2000 intervals of 1 hour"),
        ({"begin": "never"}, "begin", "A state that never begins anew is not supported yet"),
        ({"begin": "soon"}, "begin", "soon"),
        ({"forget": "soon"}, "forget", "soon"),
    ],
)
def test_what_is_wrong_is_said_with_its_field(changes, field, problem):
    """And with the way out."""
    with pytest.raises(DefinitionError) as raised:
        compiled(**changes)
    assert f"derive[carts].{field}" in str(raised.value)
    assert problem in raised.value.message
    assert raised.value.hint


def test_a_function_that_breaks_a_law_is_refused_where_it_is_tried():
    """It is not tried where Airflow reads definitions: that would take a while at each look."""
    require_lawful(compiled(by=Counts))
    with pytest.raises(DefinitionError, match="changes the rows that it is given"):
        require_lawful(compiled(by=Lawless))
