"""Pipelines with processes: what a view of emitted rows is of, and what is wrong with either."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.unit.model.refused import require_refused
from tests.unit.process_functions import Abandoned, Counts

from seamline import Batch, Join, KafkaSource, Pipeline, Process, Session, Tumbling, View, count, max
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.compile.processes.lawfulness import list_broken_laws, require_all_lawful
from seamline.model.compile.stored_definition import from_json, to_json
from seamline.model.errors import DefinitionError

HOUR = Tumbling("1 hour")
CLICKS = KafkaSource(
    name="clicks",
    topic="clicks",
    schema="user STRING, total DECIMAL(10,2), name STRING, at TIMESTAMP",
    event_time="at",
)
PROCESS = Process("carts", of="clicks", by=Abandoned, keys=["user"])
LOST = View("lost", of="carts", keys=["user", "kind"], window=HOUR, measures={"n": count()})
REFUNDS = View("refunds", of="carts.refunds", keys=["user"], window=HOUR, measures={"n": count()})
CARTS = Pipeline(
    name="carts",
    source=[CLICKS],
    derive=[PROCESS],
    views=[LOST, REFUNDS],
    batch=Batch("1 hour", "2026-01-05"),
)


def with_process(**changes: Any) -> Pipeline:
    """Return the pipeline with another process."""
    return replace(CARTS, derive=[replace(PROCESS, **changes)])


def with_view(**changes: Any) -> Pipeline:
    """Return the pipeline with another view."""
    return replace(CARTS, views=[replace(LOST, **changes)])


WRONG: Mapping[str, tuple[Pipeline, str, str]] = {
    "a process's wrong name": (with_process(name="My"), "derive[My].name", "valid name"),
    "a process of a source's name": (with_process(name="clicks"), "derive[clicks].name", "of a source"),
    "two processes of a name": (
        replace(CARTS, derive=[PROCESS, PROCESS]),
        "derive[carts].name",
        "of other derived rows",
    ),
    "a process of nobody": (with_process(of="nobody"), "derive[carts].of", "There is no source 'nobody'"),
    "a process without keys": (with_process(keys=[]), "derive[carts].keys", "into one state"),
    "a process by a number": (with_process(by=7), "derive[carts].by", "7"),
    "a process of a source without a name": (
        replace(CARTS, source=replace(CLICKS, name="")),
        "derive",
        "sources that have names",
    ),
    "a state that never ends": (with_process(begin="never"), "derive[carts].begin", "not supported yet"),
    "a state over borders": (
        with_process(begin="25 minutes"),
        "derive[carts].begin",
        "would cross the border",
    ),
    "a state over too many intervals": (
        with_process(begin="84 days"),
        "derive[carts].begin",
        "a build would read the rows of all",
    ),
    "a key of Python's years": (
        replace(with_process(keys=["at"]), views=[replace(LOST, keys=["kind"])]),
        "derive[carts].keys",
        "at is a TIMESTAMP and cannot be a key",
    ),
    "copies without ids": (with_process(copies=True), "derive[carts].copies", "no event_id"),
    "a side that is none": (with_view(of="carts.nobody"), "views[lost].of", "has no side 'nobody'"),
    "a side without a name": (with_view(of="carts."), "views[lost].of", "has no side"),
    "a process that is none": (with_view(of="cart"), "views[lost].of", "There is no source 'cart'"),
    "a process and a source": (with_view(of=["carts", "clicks"]), "views[lost].of", "of nothing else"),
    "a column that is not emitted": (with_view(keys=["total"]), "views[lost].keys", "no column 'total'"),
    "a measure that keeps no rest": (
        with_view(measures={"most": max("amount")}),
        "views[lost].measures[most]",
        "cannot subtract them",
    ),
    "a session of emitted rows": (
        with_view(window=Session("5 minutes")),
        "views[lost].window",
        "may split a session",
    ),
    "emitted rows that explode": (
        with_view(explode={"x": "kind"}),
        "views[lost].explode",
        "cannot have explode",
    ),
    "copies of what is folded": (
        replace(CARTS, source=[replace(CLICKS, event_id=["name"])]),
        "source[clicks].dedup_within",
        "a copy would make copies of derived rows",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_process_is_refused_with_its_place(name: str) -> None:
    """And with the way out."""
    require_refused(*WRONG[name], __file__)


def test_a_view_has_the_columns_of_the_key_and_of_its_side() -> None:
    """An interval has the whole of its spans."""
    lost, refunds = compile_pipeline(CARTS).views
    assert (lost.side, refunds.side) == ("", "refunds")
    assert lost.process and refunds.process and lost.process.id == refunds.process.id
    assert (lost.before, lost.after) == (timedelta(0), timedelta(0))


def test_what_the_function_means_is_in_the_name_of_a_version() -> None:
    """Its code, what it is given, and how long it remembers; a view of the source keeps its name."""
    clicks = View("clicks", of="clicks", keys=["user"], window=HOUR, measures={"n": count()})
    changes: list[dict[str, Any]] = [
        {},
        {"by": Counts},
        {"keys": ["user", "name"]},
        {"columns": ["total"]},
        {"where": "total > 0"},
        {"begin": "30 minutes"},
        {"forget": "1 hour"},
        {"version": "2"},
    ]
    made = [
        compile_pipeline(replace(with_process(**each), views=[replace(LOST, keys=["user"]), clicks])).views
        for each in changes
    ]
    assert len({lost.fingerprint for lost, _ in made}) == len(changes)
    assert len({other.fingerprint for _, other in made}) == 1
    [lost, _] = compile_pipeline(with_process(forget="60 minutes")).views
    assert lost.fingerprint == compile_pipeline(with_process(forget="1 hour")).views[0].fingerprint
    [emitted] = compile_pipeline(replace(CARTS, views=[replace(REFUNDS, of="carts")])).views
    assert emitted.fingerprint != compile_pipeline(CARTS).views[1].fingerprint


def test_a_process_outlives_its_file() -> None:
    """A version of a view is born with its definition as text."""
    stored = from_json(to_json(CARTS))
    one, other = (compile_pipeline(each).views for each in (stored, CARTS))
    assert [view.id for view in one] == [view.id for view in other]


def test_processes_and_joins_are_of_one_pipeline() -> None:
    """Each reads the rows of its sources."""
    join = Join("twice", left="clicks", right="clicks", on={"user": "user"}, after="1 hour")
    pairs = View("pairs", of="twice", keys=["left_user"], window=HOUR, measures={"n": count()})
    found = compile_pipeline(replace(CARTS, derive=[PROCESS, join], views=[LOST, pairs])).views
    assert [(bool(view.join), bool(view.process)) for view in found] == [(False, True), (True, False)]


class Forgets(Abandoned):
    """Remembers more than its state."""

    seen: list[Any] = []  # noqa: RUF012 - that is what is wrong with it

    def row(self, state: Any, row: Any, out: Any) -> Any:
        """Emit how many rows it has ever had."""
        self.seen.append(row)
        out.emit(str(len(self.seen)), None)
        return state


def test_broken_laws_are_told_with_the_place_of_the_process() -> None:
    """Where a definition is checked, and before its stream starts."""
    assert [*list_broken_laws(compile_pipeline(CARTS))] == []
    broken = compile_pipeline(with_process(by=Forgets))
    [error] = list_broken_laws(broken)
    assert (error.field, error.file) == ("derive[carts].by", __file__)
    with pytest.raises(DefinitionError, match="Forgets"):
        require_all_lawful(broken)


class Waits(Abandoned):
    """Never comes back from a call."""

    def row(self, state: Any, row: Any, out: Any) -> Any:
        """Wait for ever."""
        while True:
            pass


def test_a_law_that_takes_for_ever_is_broken() -> None:
    """A stream starts, or says why it does not."""
    [error] = list_broken_laws(compile_pipeline(with_process(by=Waits, timeout="1 second")))
    assert error.field == "derive[carts].by"
    assert error.message.endswith(":Waits: a call took longer than the 1 s of timeout=.")
