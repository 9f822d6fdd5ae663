"""Questions to other systems as definitions: what they mean, and what they cannot say."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.unit.model.refused import require_refused

from seamline import (
    Ask,
    Batch,
    Join,
    KafkaSource,
    Lookup,
    NoAnswer,
    Pipeline,
    Tumbling,
    View,
    Watermark,
    count,
    sum,
)
from seamline.model.compile.compiled_pipeline import CompiledView, compile_pipeline, compile_with_problems
from seamline.model.compile.stored_definition import from_json, to_json
from seamline.plan.wording.source_text import list_time_bounds

HOUR = Tumbling("1 hour")
Requests = Sequence[Mapping[str, Any]]


async def ask(requests: Requests) -> list[Mapping[str, Any] | NoAnswer]:
    """Ask as it should be."""
    return [{"risk": 1} for _ in requests]


def ask_and_block(requests: Requests) -> list[Mapping[str, Any]]:
    """Ask in a way that keeps all others waiting."""
    return [{"risk": 1} for _ in requests]


async def ask_one_by_one(requests: Requests) -> AsyncIterator[Mapping[str, Any]]:
    """Give answers that nobody can await together."""
    for _ in requests:
        yield {"risk": 1}


async def ask_again(requests: Requests) -> list[Mapping[str, Any]]:
    """Ask in another way."""
    return [{"risk": 2} for _ in requests]


class Client:
    """What cannot be called by its name."""

    async def __call__(self, requests: Requests) -> list[Mapping[str, Any]]:
        return []


client = Client()
HERE = ask.__module__
PAID = KafkaSource(
    name="paid", topic="paid", schema="id INT, user STRING, amount INT, at TIMESTAMP", event_time="at"
)
SCORED = Ask("scored", of="paid", by=ask, request={"user": "user"}, columns=["risk INT"])
BY_USER = View("by_user", of="scored", keys=["paid_user"], window=HOUR, measures={"n": count()})
PLAIN = View("plain", of="paid", keys=["user"], window=HOUR, measures={"n": count()})
SHOP = Pipeline(
    name="shop", source=[PAID], derive=[SCORED], views=[BY_USER, PLAIN], batch=Batch("1 day", "2026-01-01")
)


def asking(**changes: Any) -> Pipeline:
    """Return the pipeline with another question."""
    return replace(SHOP, derive=[replace(SCORED, **changes)])


def paying(**changes: Any) -> Pipeline:
    """Return the pipeline with another source."""
    return replace(SHOP, source=[replace(PAID, **changes)])


OTHER = replace(SCORED, name="owner", columns=["owner"])
RETURNED = replace(PAID, name="returned", topic="returned")
BOTH = Join("both", left="paid", right="returned", on={"user": "user"}, before="1 minute")
NUMBERS = {
    "batch": (0, 10_001),
    "at_once": (0, 10_001),
    "per_second": (-1, 1_000_001),
    "retries": (-1, 101),
}
RESERVED = ("topic_id", "partition", "offset", "at", "version", "error", "tries", "seconds", "place", "ERROR")
WRONG: Mapping[str, tuple[Pipeline, str, str]] = {
    "a wrong name": (asking(name="My"), "derive[My].name", "'My' is not a valid name"),
    "a name twice": (replace(SHOP, derive=[SCORED, SCORED]), "derive[scored].name", "declared twice"),
    "a join's name": (
        replace(SHOP, source=[PAID, RETURNED], derive=[SCORED, replace(BOTH, name="scored")]),
        "derive[scored].name",
        "declared twice",
    ),
    "a name whose answers have a source's": (
        replace(SHOP, source=[PAID, replace(RETURNED, name="scored_answers")]),
        "source.name",
        "'scored_answers' is declared twice",
    ),
    "no source": (
        asking(of="nobody"),
        "derive[scored].of",
        "no source 'nobody'. Hint: the sources are paid.",
    ),
    "its own answers": (asking(of="scored_answers"), "derive[scored].of", "the sources are paid."),
    "another's answers": (
        replace(SHOP, derive=[replace(OTHER, of="scored_answers"), SCORED]),
        "derive[owner].of",
        "the sources are paid.",
    ),
    "another's answered rows": (
        replace(SHOP, derive=[SCORED, replace(OTHER, of="scored")]),
        "derive[owner].of",
        "no source 'scored'",
    ),
    "a join": (
        replace(SHOP, source=[PAID, RETURNED], derive=[SCORED, BOTH, replace(OTHER, of="both")]),
        "derive[owner].of",
        "the sources are paid, returned.",
    ),
    "one source without a name": (
        replace(SHOP, source=replace(PAID, name=""), views=[replace(PLAIN, of="")]),
        "derive",
        "sources that have names",
    ),
    "a function that blocks": (asking(by=ask_and_block), "derive[scored].by", "holds up all others"),
    "a function that yields": (asking(by=ask_one_by_one), "derive[scored].by", "is no async function"),
    "an object": (asking(by=f"{HERE}:client"), "derive[scored].by", "of type Client, not a function"),
    "a lambda": (asking(by=lambda requests: requests), "derive[scored].by", "a lambda cannot be used"),
    "no function": (asking(by=f"{HERE}:nobody"), "derive[scored].by", "cannot be imported"),
    "no module": (asking(by="nowhere:ask"), "derive[scored].by", "cannot be imported"),
    "no name": (asking(by=""), "derive[scored].by", "does not name a function"),
    "nothing asked": (asking(request={}), "derive[scored].request", "has nothing in it"),
    "requests as a list": (asking(request=["user"]), "derive[scored].request", "is not a mapping"),
    "an unknown column in a request": (
        asking(request={"who": "nobody"}),
        "derive[scored].request[who]",
        "no column 'nobody'",
    ),
    "a request that can fail": (asking(request={"n": "id + 1"}), "derive[scored].request[n]", "can fail"),
    "a request that is another each time": (
        asking(request={"n": "rand()"}),
        "derive[scored].request[n]",
        "changes between two runs",
    ),
    "a request that is no expression": (
        asking(request={"n": "id +"}),
        "derive[scored].request[n]",
        "is not an expression",
    ),
    "no columns": (asking(columns=[]), "derive[scored].columns", "has no column"),
    "columns as a text": (asking(columns="risk"), "derive[scored].columns", 'write columns=["risk"]'),
    "an empty column": (asking(columns=[""]), "derive[scored].columns", "is not a column"),
    "a column that must be there": (
        asking(columns=["risk INT NOT NULL"]),
        "derive[scored].columns",
        "a row without an answer has none",
    ),
    "a column of no type": (asking(columns=["risk FLOOT"]), "derive[scored].columns", "unknown type 'FLOOT'"),
    "a column twice": (asking(columns=["risk INT", "RISK"]), "derive[scored].columns", "has 'RISK' already"),
    "a column with an underscore": (asking(columns=["_risk"]), "derive[scored].columns", "underscore"),
    "a condition that is none": (asking(when="amount"), "derive[scored].when", "not a condition"),
    "a condition that can fail": (asking(when="amount + 1 > 9"), "derive[scored].when", "can fail"),
    "a condition on the answer": (asking(when="scored_risk > 1"), "derive[scored].when", "no column"),
    "a condition on nobody": (asking(when="nobody > 1"), "derive[scored].when", "no column 'nobody'"),
    "a version with a blank": (asking(version="a b"), "derive[scored].version", "is not a version"),
    "a version with a quote": (asking(version="a'b"), "derive[scored].version", "is not a version"),
    "a version with a line": (asking(version="a\n"), "derive[scored].version", "is not a version"),
    "a version of a page": (asking(version="v" * 101), "derive[scored].version", "at most 100"),
    "a version that is a number": (asking(version=2), "derive[scored].version", 'write version="2"'),
    "no time": (asking(timeout=""), "derive[scored].timeout", "is not a duration"),
    "a time of nothing": (asking(timeout="0 seconds"), "derive[scored].timeout", "is not a duration"),
    "fresh for nothing": (asking(fresh="0 seconds"), "derive[scored].fresh", "is not a duration"),
    "the source's topic": (asking(topic="paid"), "source[scored_answers].topic", "of source 'paid' too"),
    "no topic's name": (asking(topic="a b"), "source[scored_answers].topic", "not the name of a topic"),
    "two questions of a topic": (
        replace(SHOP, derive=[replace(SCORED, topic="t"), replace(OTHER, topic="t")]),
        "source[owner_answers].topic",
        "of source 'scored_answers' too",
    ),
    "a side of nobody": (
        asking(side={"x": "nobody > 1"}),
        "source[scored_answers].side[x]",
        "no column 'nobody'",
    ),
    "a question by its name": (
        replace(SHOP, derive=["scored"]),  # type: ignore[list-item]
        "derive",
        "is not a Join, an AsOf, an Ask, a Process, a Pattern, a CoGroup or a Changelog",
    ),
    "two columns of a name": (
        replace(
            SHOP,
            source=[replace(PAID, name="a", schema="user STRING, b_risk INT, at TIMESTAMP")],
            derive=[replace(SCORED, name="a_b", of="a")],
            views=[replace(BY_USER, of="a_b", keys=["a_user"])],
        ),
        "derive[a_b].name",
        "are called 'a_b_risk'",
    ),
    "a watermark that is none": (paying(watermark="1 minute"), "source[paid].watermark", "not a Watermark"),
    **{
        f"{name}={value!r}": (asking(**{name: value}), f"derive[scored].{name}", "is out of range")
        for name, values in NUMBERS.items()
        for value in values
    },
    **{
        f"a column {name}": (asking(columns=[name]), "derive[scored].columns", f"has {name!r} already")
        for name in RESERVED
    },
    # What follows was found to be accepted, or to be told in words that mean something else.
    "a source's name": (
        replace(
            SHOP,
            source=[replace(PAID, schema="user STRING, moment TIMESTAMP", event_time="moment")],
            derive=[replace(SCORED, name="paid")],
            views=[replace(BY_USER, of="paid")],
        ),
        "derive[paid].name",
        "name of a source",
    ),
    "a column of bytes": (asking(columns=["x BINARY"]), "derive[scored].columns", "BINARY"),
    "bytes in a column": (asking(columns=["x ARRAY<BINARY>"]), "derive[scored].columns", "BINARY"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_question_is_refused_with_its_place(name: str) -> None:
    """Else it is the process that asks which finds out, when rows wait."""
    require_refused(*WRONG[name], __file__)


@pytest.mark.parametrize(
    "field",
    [
        "name", "of", "by", "request", "columns", "when", "version", "batch", "at_once", "per_second", "timeout",
        "retries", "fresh", "topic", "side",
    ],
)  # fmt: skip
def test_a_value_of_another_type_says_what_to_write(field: str) -> None:
    """In the words of a question: a batch of requests is no Batch, and a function is no class."""
    compiled, problems = compile_with_problems(asking(**{field: 1.5}))
    assert compiled is None
    assert problems[0].field.startswith("derive[")
    assert problems[0].field.endswith(f".{field}")
    assert f"write {field}=" in problems[0].hint
    assert not [word for word in ("dataclasses", "Batch(", "class") if word in problems[0].hint]


def test_one_source_without_a_name_is_one_problem() -> None:
    """There is no other way out than to name it."""
    _, problems = compile_with_problems(
        replace(SHOP, source=replace(PAID, name=""), views=[replace(PLAIN, of="")])
    )
    assert not [each.hint for each in problems if each.hint == "the sources are ."]


def view_of(pipeline: Pipeline, name: str = "by_user") -> CompiledView:
    """Compile a pipeline, and return a view."""
    found = compile_pipeline(pipeline).view(name)
    assert found
    return found


def test_an_answered_row_has_the_columns_of_both() -> None:
    """Each behind its name; a record that is no answer is no row."""
    [made] = compile_pipeline(SHOP).asks
    names = [field.name for field in made.join.schema.fields]
    assert {"paid_user", "paid_amount", "scored_risk", "scored_error", "scored_version"} <= {*names}
    assert len(names) == len({*names})
    assert made.join.right.where
    assert made.join.right.where.text == "`scored_error` IS NULL AND `scored_version` = ''"
    assert (made.topic, made.timeout, made.fresh) == ("shop.scored.answers", timedelta(seconds=2), None)


def test_a_record_of_an_answer_is_a_source() -> None:
    """With the settings of the one that is asked about, where they are about time."""
    marked = Watermark("20 minutes", idle_after="1 hour")
    answers = paying(watermark=marked, connection="other").sources[-1]
    assert (answers.name, answers.topics, answers.connection) == (
        "scored_answers",
        ("shop.scored.answers",),
        "other",
    )
    assert (answers.event_time, answers.max_past) == ("scored_at", "")
    assert answers.watermark == marked
    assert answers.schema == (
        "scored_topic_id STRING NOT NULL, scored_partition INT NOT NULL, scored_offset BIGINT NOT NULL, "
        "scored_at TIMESTAMP NOT NULL, scored_version STRING NOT NULL, scored_risk INT, scored_error STRING, "
        "scored_tries INT, scored_seconds DOUBLE"
    )


def test_several_questions_are_asked_of_one_pipeline() -> None:
    """Also about one source; each has a topic, a name and an index of its own."""
    more = replace(OTHER, name="checked", of="returned", topic="mine")
    views = [
        BY_USER,
        replace(BY_USER, name="owners", of="owner", measures={"n": count(), "left": count("left")}),
        replace(BY_USER, name="checks", of="checked", keys=["returned_user"]),
    ]
    made = compile_pipeline(
        replace(SHOP, source=[PAID, RETURNED], derive=[SCORED, OTHER, more, BOTH], views=views)
    )
    assert [(each.name, each.topic) for each in made.asks] == [
        ("scored", "shop.scored.answers"),
        ("owner", "shop.owner.answers"),
        ("checked", "mine"),
    ]
    assert len({each.id for each in made.asks}) == 3
    assert len({view.join.id for view in made.views if view.join}) == 3
    assert [each.source.name for each in made.by_source] == [
        "paid",
        "returned",
        "scored_answers",
        "owner_answers",
        "checked_answers",
    ]


@pytest.mark.parametrize(
    "views",
    [
        [replace(BY_USER, of="scored_answers", keys=["scored_error"])],
        [replace(BY_USER, measures={"n": count(), "left": count("left"), "open": count("unmatched")})],
        [replace(BY_USER, measures={"risk": sum("scored_risk * 1D")}, where="scored_risk > 3")],
        [PLAIN],
    ],
)
def test_views_may_be_of_rows_records_or_answered_rows(views: Sequence[View]) -> None:
    """Or of none of them: rows are asked about all the same."""
    made = compile_pipeline(replace(SHOP, views=views))
    assert [each.name for each in made.asks] == ["scored"]


TARIFF = Lookup("tariff", "tables/tariff.csv", on={"user": "user"}, columns=["rate INT"])


def test_what_was_looked_up_can_be_asked() -> None:
    """The question is then of its rows as decisions have them."""
    made = replace(
        paying(lookups=[TARIFF]),
        derive=[replace(SCORED, when="tariff_rate > 3", request={"rate": "tariff_rate"})],
    )
    [ask] = compile_pipeline(made).asks
    assert ask.join.lookups == {"tariff"}


def test_rows_that_are_known_by_an_id_can_be_asked_about() -> None:
    """Of a source that leaves copies out; a record of an answer is known by its place."""
    made = compile_pipeline(paying(event_id=["id"], dedup_within="1 hour"))
    assert made.definition.sources[-1].event_id == ("scored_place",)


SAME: Mapping[str, Mapping[str, Any]] = {
    "how long a call takes": {"timeout": "9 seconds"},
    "how many go at once": {"batch": 9, "at_once": 3, "per_second": 7, "retries": 0},
    "how long answers are fresh": {"fresh": "1 day"},
    "the function": {"by": ask_again},
    "the request": {"request": {"id": "id"}},
}
ANOTHER = {"other rows": {"when": "amount > 1"}, "another version": {"version": "2"}}


@pytest.mark.parametrize("name", SAME)
def test_how_it_asks_is_no_other_question(name: str) -> None:
    """A view that would begin anew by it would lose its past, and all rows would be asked about again."""
    before = compile_pipeline(SHOP)
    after = compile_pipeline(asking(**SAME[name]))
    assert after.record_version == before.record_version
    assert [view.id for view in after.views] == [view.id for view in before.views]
    assert after.asks[0].id == before.asks[0].id


@pytest.mark.parametrize("name", ANOTHER)
def test_what_it_asks_about_is_another_question(name: str) -> None:
    """And another version of its views; others stay what they are."""
    before, after = compile_pipeline(SHOP), compile_pipeline(asking(**ANOTHER[name]))
    assert after.record_version == before.record_version
    assert after.views[0].id != before.views[0].id
    assert after.views[1].id == before.views[1].id
    assert after.asks[0].id != before.asks[0].id


def test_a_pipeline_that_asks_nothing_is_what_it_was() -> None:
    """Its record version and its views' were made by releases that could not ask."""
    quiet = compile_pipeline(replace(SHOP, derive=[], views=[PLAIN]))
    alone = compile_pipeline(
        replace(SHOP, derive=[], source=replace(PAID, name=""), views=[replace(PLAIN, of="")])
    )
    assert (quiet.record_version, quiet.views[0].id) == ("1ee2a86166be", "plain/cfef03951846")
    assert (alone.record_version, alone.views[0].id) == ("f8e7398cd999", "plain/272f2e090e55")
    views = [PLAIN, replace(PLAIN, name="both", of="both", keys=["paid_user"])]
    joined = compile_pipeline(replace(SHOP, source=[PAID, RETURNED], derive=[BOTH], views=views))
    assert (joined.record_version, [view.id for view in joined.views]) == (
        "82a05edf1bf3",
        ["plain/3c4809de300e", "both/78a61405c4a1"],
    )
    assert joined.views[1].join
    assert joined.views[1].join.id == "both/e514b4bef987"
    assert quiet.asks == alone.asks == joined.asks == ()
    assert quiet.definition.sources == (PAID,)


def test_a_stored_definition_has_its_questions() -> None:
    """A version that is born outlives the file it was in, and the process that asks is told it so."""
    full = asking(
        when="amount > 10 AND user <> 'x'",
        version="v.2",
        batch=5,
        per_second=9,
        fresh="1 hour",
        topic="answers",
        side={"bad": "scored_error IS NOT NULL"},
    )
    for stored in (SHOP, full, replace(SHOP, derive=[SCORED, OTHER])):
        again = from_json(to_json(stored))
        assert again == stored
        assert view_of(again) == view_of(stored)
        assert [each.id for each in compile_pipeline(again).asks] == [
            each.id for each in compile_pipeline(stored).asks
        ]


def test_bounds_of_event_times_are_those_of_rows() -> None:
    """An answer has none of its own, and a reader of `seamline status` would look for 100,000 days."""
    [rows, answers] = list_time_bounds(SHOP)
    assert rows.startswith("paid: event times up to 1 day ahead")
    assert answers == "scored_answers: event times are those of the rows that are asked about"
