"""Changelogs in definitions: what they carry, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.model.changes.test_row_changes import ACCOUNTS

from seamline import (
    Batch,
    Changelog,
    ExpectRows,
    Global,
    Lookup,
    Pipeline,
    Tumbling,
    View,
    avg,
    count,
    max,
    sum,
)
from seamline.model.compile.compiled_pipeline import compile_pipeline, compile_with_problems
from seamline.model.compile.stored_definition import from_json, to_json
from seamline.plan.wording.source_text import list_source_facts

BY_COUNTRY = View(
    "by_country",
    of="open",
    keys=["country"],
    window=Global(),
    measures={"n": count(), "total": sum("balance")},
)
BANK = Pipeline(
    name="bank",
    source=[ACCOUNTS],
    derive=[Changelog("open", of="accounts")],
    views=[BY_COUNTRY],
    batch=Batch("1 day", "2026-01-01"),
)
BY_LOG = replace(BANK, name="as_read", source=[replace(ACCOUNTS, order="")])


def list_problems(pipeline: Pipeline) -> list[tuple[str | None, str]]:
    """List the fields and messages of what is wrong."""
    _, problems = compile_with_problems(pipeline)
    assert all(each.hint for each in problems)
    return [(each.field, each.message) for each in problems]


def with_view(**changes: Any) -> Pipeline:
    """Return the bank with another view."""
    return replace(BANK, views=[replace(BY_COUNTRY, **changes)])


def with_source(**changes: Any) -> Pipeline:
    """Return the bank with another source."""
    return replace(BANK, source=[replace(ACCOUNTS, **changes)])


def test_a_changelog_carries_what_views_count_by() -> None:
    """Of all columns those of the key, the order, and those that any view uses are read."""
    wide = replace(BY_COUNTRY, name="b", where="note <> 'x'", keys=[], measures={"n": count(), "m": avg("n")})
    source = replace(ACCOUNTS, schema=f"{ACCOUNTS.schema}, note STRING, n INT, more STRING")
    pipeline = compile_pipeline(replace(BANK, source=[source], views=[BY_COUNTRY, wide]))
    for view in pipeline.views:
        assert view.changelog and view.derived is view.changelog and view.netted
        assert [each.name for each in view.changelog.columns] == ["country", "balance", "note", "n"]
        [side] = view.changelog.sides
        assert [each.name for each in side.columns] == [
            *("id", "version", "country", "balance", "note", "n", "_deleted")
        ]
    assert len({view.changelog and view.changelog.id for view in pipeline.views}) == 1


def test_a_definition_with_a_changelog_is_stored_and_told() -> None:
    """It comes back as it was, and a page says what is derived."""
    again = from_json(to_json(BANK))
    assert compile_pipeline(again).views[0].fingerprint == compile_pipeline(BANK).views[0].fingerprint
    assert ("changelog open", "the table after all changes of accounts") in list_source_facts(BANK)


@pytest.mark.parametrize("changes", [{"order": ""}, {"deleted": "op = 'x'"}, {"key": ["id", "country"]}])
def test_what_makes_another_table_makes_another_version(changes: dict[str, Any]) -> None:
    """Of its views; views of the source itself go on."""
    seen = replace(BY_COUNTRY, name="seen", of="accounts", window=Tumbling("1 hour"))
    one, other = (
        compile_pipeline(replace(each, views=[BY_COUNTRY, seen])) for each in (BANK, with_source(**changes))
    )
    assert one.views[0].fingerprint != other.views[0].fingerprint
    assert one.views[1].fingerprint == other.views[1].fingerprint


@pytest.mark.parametrize(
    ("pipeline", "field", "said"),
    [
        (
            with_view(window=Tumbling("1 hour")),
            "views[by_country].window",
            "A change may replace a row of any age, so the rows of a time window would not be what the table had then.",
        ),
        (
            with_view(measures={"top": max("balance")}),
            "views[by_country].measures[top]",
            (
                "max(balance) counts rows that can be withdrawn, and cannot subtract them: the row that is withdrawn "
                "may have had the largest value, and nobody knows the next one."
            ),
        ),
        (
            with_view(expect=ExpectRows(at_least=1)),
            "views[by_country].expect",
            "An interval of a changelog has only what its changes add and take away, not what the table has.",
        ),
        (
            with_view(where="1 / version > 2"),
            "views[by_country].where",
            "'1 / version > 2' can fail: (1 / `version`) divides by zero.",
        ),
        (with_view(keys=["town"]), "views[by_country].keys", "There is no column 'town'."),
        (
            with_source(key=(), order="", deleted=""),
            "derive[open].of",
            "'accounts' does not say which row of the table a record changes.",
        ),
        (
            with_source(event_id=["id"], dedup_within="1 hour"),
            "derive[open].of",
            "event_id=['id'] is the same for all changes of a row, so all but its first are copies.",
        ),
        (
            with_source(
                lookups=[Lookup("rates", "tables/rates.csv", on={"country": "country"}, columns=["tax INT"])],
                select={"taxed": "rates_tax"},
            ),
            "derive[open].of",
            (
                "The source has a look-up 'rates': to restate it would change what each row was before all of its "
                "later changes."
            ),
        ),
        (
            replace(BANK, derive=[Changelog("open", of="people")]),
            "derive[open].of",
            "There is no source 'people'.",
        ),
        (
            replace(BANK, derive=[Changelog("accounts", of="accounts")]),
            "derive[accounts].name",
            "'accounts' is the name of a source, too.",
        ),
    ],
)
def test_what_a_changelog_cannot_have_is_refused(pipeline: Pipeline, field: str, said: str) -> None:
    """Each problem is named by its field, and the hint says what to do instead."""
    assert (field, said) in list_problems(pipeline)


def test_copies_are_left_out_where_ids_differ() -> None:
    """An event id that tells the changes of a row apart is one by which a copy is known."""
    pipeline = with_source(event_id=["id", "version"], dedup_within="1 hour")
    view = compile_pipeline(pipeline).views[0]
    assert view.derived and view.derived.copies and view.changelog and view.changelog.selective
