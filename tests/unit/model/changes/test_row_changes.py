"""What a source says of the table whose changes its records are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from seamline import Batch, Changelog, Global, KafkaSource, Pipeline, Tumbling, View, count
from seamline.model.compile.compiled_pipeline import compile_with_problems
from seamline.model.compile.fingerprint import record_version
from seamline.model.compile.stored_definition import from_json, to_json

ACCOUNTS = KafkaSource(
    name="accounts",
    topic="accounts",
    schema="id BIGINT, country STRING, balance DECIMAL(12,2), version BIGINT, op STRING, rate DOUBLE, at TIMESTAMP",
    event_time="at",
    key=["id"],
    order="version",
    deleted="op = 'd'",
)
BANK = Pipeline(
    name="bank",
    source=[ACCOUNTS],
    views=[View("seen", of="accounts", keys=["country"], window=Tumbling("1 hour"), measures={"n": count()})],
    batch=Batch("1 day", "2026-01-01"),
)


def list_problems(**changes: object) -> list[tuple[str, str, str]]:
    """List the fields, messages and hints of what is wrong with the accounts, changed so."""
    _, problems = compile_with_problems(replace(BANK, source=[replace(ACCOUNTS, **changes)]))  # type: ignore[arg-type]
    return [(each.field, each.message, each.hint) for each in problems]


def test_changes_are_stored_and_do_not_change_what_a_record_means() -> None:
    """The three fields come back from a stored definition, and no record is read again because of them."""
    compiled, problems = compile_with_problems(BANK)
    assert compiled and not problems
    again = from_json(to_json(BANK))
    [source] = again.sources
    assert (list(source.key), source.order, source.deleted) == (["id"], "version", "op = 'd'")
    plain = replace(BANK, source=[replace(ACCOUNTS, key=(), order="", deleted="")])
    assert record_version(BANK) == record_version(plain)


@pytest.mark.parametrize(
    ("changes", "field", "said"),
    [
        ({"key": ["nr"]}, "source[accounts].key", "There is no column 'nr'."),
        ({"key": ["rate"]}, "source[accounts].key", "rate is DOUBLE."),
        ({"key": ["id", "id"]}, "source[accounts].key", "key=['id', 'id'] names a column twice."),
        ({"order": "when"}, "source[accounts].order", "There is no column 'when'."),
        (
            {"order": "rate"},
            "source[accounts].order",
            "rate is DOUBLE, which cannot be used as order=.",
        ),
        ({"deleted": "op"}, "source[accounts].deleted", "'op' is STRING, not a condition."),
        (
            {"deleted": "1 / version > 2"},
            "source[accounts].deleted",
            "'1 / version > 2' can fail: (1 / `version`) divides by zero.",
        ),
    ],
)
def test_what_no_engine_could_follow_is_refused(changes: dict[str, object], field: str, said: str) -> None:
    """A wrong column or condition is named with its field, and the hint says what to write."""
    found = list_problems(**changes)
    assert [(name, message) for name, message, _ in found] == [(field, said)]
    assert found[0][2]


def test_order_and_deletions_need_a_key() -> None:
    """Without a key nobody knows of which row a change is."""
    found = list_problems(key=())
    assert [name for name, _, _ in found] == ["source[accounts].order", "source[accounts].deleted"]


def test_a_tombstone_deletes_whatever_else_a_definition_says() -> None:
    """Else its row would stay, with nothing in it but its key."""
    flagged = replace(ACCOUNTS, schema=f"{ACCOUNTS.schema}, __deleted BOOLEAN")
    there = replace(BANK.views[0], of="open", window=Global())
    bank = replace(BANK, source=[flagged], derive=[Changelog("open", of="accounts")], views=[there])
    compiled, problems = compile_with_problems(bank)
    assert compiled and not problems
    [view] = compiled.views
    assert view.changelog and view.changelog.changes.deleted
    assert view.changelog.changes.deleted.columns == {"op", "__deleted"}
