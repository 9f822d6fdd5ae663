"""Tables of rules that a topic makes: the newest record of each key is a rule for all that is read with it or after."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from seamline import Batch, KafkaSource, Lookup, Pipeline, Rule, Tumbling, View, count, sum
from seamline.lake.tables.lookups import rule_versions
from seamline.model.compile.compiled_pipeline import compile_pipeline, compile_with_problems
from seamline.model.compile.stored_definition import from_json, to_json
from seamline.model.protocol.restatement import Restatement, carry_restatements
from seamline.model.time.intervals import Interval
from seamline.testing import Scenario

LIMITS = KafkaSource(
    name="limits",
    topic="limits",
    schema="country STRING, name STRING, least DECIMAL(10,2), when STRING, active BOOLEAN",
    event_time="_kafka_timestamp",
    where="active IS NOT FALSE",
)
LOOKUP = Lookup(
    "limits",
    of="limits",
    on={"country": "country"},
    columns=["name", "least DECIMAL(10,2)"],
    where="amount > limits_least",
    condition="when",
    every="limits",
)
PAYMENTS = KafkaSource(
    name="payments",
    topic="payments",
    schema="country STRING, amount DECIMAL(10,2), at TIMESTAMP",
    event_time="at",
    lookups=[LOOKUP],
)
BY_LIMIT = View(
    "by_limit",
    of="payments",
    keys=["limit"],
    window=Tumbling("1 day"),
    explode={"limit": "limits"},
    measures={"n": count(), "paid": sum("amount")},
)


def card_limits(payments: KafkaSource = PAYMENTS, limits: KafkaSource = LIMITS, **changes: Any) -> Pipeline:
    made = Pipeline(
        name="card_limits",
        source=[payments, limits],
        views=[BY_LIMIT],
        batch=Batch("1 day", "2024-01-01"),
    )
    return replace(made, **changes)


class Cards:
    """The pipeline, with words for what is sent to it."""

    def __init__(self, declared: Pipeline | None = None) -> None:
        self.scenario = Scenario(declared or card_limits(), now="2024-03-05")

    def rule(self, key: str, name: str | None = None, least: str = "0", **more: Any) -> None:
        """Send a rule, or a tombstone where it has no name."""
        value = (
            {"country": "NO", "name": name, "least": least, "when": "true", **more} if name or more else None
        )
        self.scenario.send(value, key=key.encode(), topic="limits")

    def pay(self, *amounts: int, country: str = "NO", day: int = 1) -> None:
        for amount in amounts:
            self.scenario.send(
                {"country": country, "amount": amount, "at": f"2024-03-0{day}T10:00:00Z"}, topic="payments"
            )

    def close(self) -> None:
        """Let the first day close."""
        self.pay(1, country="DK", day=4)
        self.scenario.epoch()
        self.scenario.wait("1 hour")

    def found(self) -> dict[str, tuple[int, Decimal]]:
        return {row["limit"]: (row["n"], row["paid"]) for row in self.scenario.answer()}

    @property
    def refused(self) -> list[tuple[str, str]]:
        return [(row["_reason"], row["_detail"]) for row in self.scenario.engine.quarantine()]


def test_rules_are_in_force_for_what_is_read_with_them_or_after() -> None:
    """Also where the epoch reads the payment from an earlier place; what was read before has none."""
    cards = Cards()
    cards.pay(500)
    cards.scenario.epoch()
    cards.pay(500)
    cards.rule("a", "large", "100")
    first = cards.scenario.epoch()
    cards.pay(500)
    second = cards.scenario.epoch()
    assert cards.found() == {"large": (2, Decimal(1000))}
    assert first.lookups == second.lookups != {}


def test_the_newest_record_of_a_key_is_its_rule() -> None:
    """In the middle of an epoch, back and forth; a tombstone takes it out, and what follows one is a rule again."""
    cards = Cards()
    cards.rule("a", "large", "100")
    cards.rule("a", "large", "1000")
    cards.pay(500)
    with_both = cards.scenario.epoch().lookups
    assert cards.found() == {}
    cards.rule("a", "large", "100")
    cards.pay(500)
    cards.scenario.epoch()
    cards.rule("a")
    cards.pay(500)
    cards.scenario.epoch()
    assert cards.found() == {"large": (1, Decimal(500))}
    cards.rule("a", "large", "1000")
    cards.rule("a")
    cards.rule("a", "huge", "400")
    cards.rule("b", "none", "1")
    cards.rule("b")
    cards.pay(500)
    assert cards.scenario.epoch().lookups != with_both
    assert cards.found() == {"large": (1, Decimal(500)), "huge": (1, Decimal(500))}


def test_what_is_no_rule_is_refused_and_leaves_the_last_of_its_key_in_force() -> None:
    """Each by its own name; a record that is not selected takes the rule out instead, and need not be one."""
    cards = Cards()
    cards.rule("a", "large", "100")
    cards.rule("b", "any", "0")
    cards.scenario.epoch()
    cards.rule("a", "large", "100", when="amount >")
    cards.rule("a", "large", "100", when=None)
    cards.rule("a", "large", "100", when="nothing > 1")
    cards.rule("a", None, "100", when="true")
    cards.rule("a", "large", "a lot")
    cards.scenario.send({"country": "NO", "name": "keyless", "least": 1, "when": "true"}, topic="limits")
    cards.rule("b", active=False)
    cards.pay(500)
    cards.scenario.epoch()
    assert cards.found() == {"large": (1, Decimal(500))}
    assert [reason for reason, _ in cards.refused] == [
        "mistyped field least",
        *["error in lookup limits"] * 4,
        "rule without a key",
    ]
    details = [detail for _, detail in cards.refused]
    assert details[1].startswith("large: when: 'amount >'")
    assert details[2].startswith("large: no when; write true")
    assert "nothing" in details[3]
    assert details[4] == "no name, which names the rule"


def test_of_two_keys_that_name_one_rule_the_newer_is_in_force() -> None:
    """When it goes, the older one is in force again; a rule without a country matches nothing."""
    cards = Cards()
    cards.rule("a", "large", "100")
    cards.rule("b", "large", "1000")
    cards.rule("c", "large", "0", country="SE")
    cards.rule("d", "large", "0", country=None)
    cards.pay(500, 5000)
    cards.scenario.epoch()
    assert cards.found() == {"large": (1, Decimal(5000))}
    cards.rule("b")
    cards.pay(500)
    cards.scenario.epoch()
    assert cards.found() == {"large": (2, Decimal(5500))}


def test_beyond_the_bounds_the_oldest_rules_are_in_force(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A warning names the first that is not; it comes into force when there is room."""
    monkeypatch.setattr(rule_versions, "MOST_RULES", 2)
    monkeypatch.setattr(rule_versions, "MOST_CONDITIONS", 2)
    cards = Cards()
    cards.rule("a", "a", when="amount > 1")
    cards.rule("b", "b", when="amount > 2")
    cards.rule("c", "c", when="amount > 1")
    cards.rule("d", "d", when="amount > 3", country="SE")
    cards.pay(5)
    cards.pay(5, country="SE")
    cards.scenario.epoch()
    assert sorted(cards.found()) == ["a", "b"]
    assert "2 rules are not in force in look-up limits" in caplog.text
    assert "The first is 'c'." in caplog.text
    cards.rule("b")
    cards.pay(5)
    cards.pay(5, country="SE")
    cards.scenario.epoch()
    assert {name: n for name, (n, _) in cards.found().items()} == {"a": 2, "b": 1, "c": 1, "d": 1}


def test_an_epoch_that_dies_takes_its_rules_with_it() -> None:
    """They are read again, with what has come meanwhile."""
    cards = Cards()
    cards.rule("a", "large", "100")
    cards.pay(500)
    assert cards.scenario.crash("files") is None
    cards.rule("a")
    cards.pay(500)
    cards.scenario.epoch()
    assert cards.found() == {}
    cards.rule("a", "large", "100")
    cards.scenario.crash("master")
    cards.pay(500)
    cards.scenario.epoch()
    assert cards.found() == {"large": (1, Decimal(500))}


def test_a_corrected_rule_is_a_restatement() -> None:
    """Of the intervals that somebody names, with the table as the last epoch has it."""
    cards = Cards()
    cards.rule("a", "large", "1000")
    cards.pay(500)
    cards.scenario.epoch()
    cards.rule("a", "large", "100")
    cards.close()
    assert cards.found() == {}
    assert cards.scenario.batch("2024-03-01")
    cards.scenario.restate("limits", "2024-03-01", "2024-03-02")
    assert cards.scenario.batch("2024-03-01")
    assert cards.found() == {"large": (1, Decimal(500))}


def test_another_definition_reads_all_rules_anew() -> None:
    """What was refused may be a rule, and each epoch meets those that were read with it or before."""
    strict = replace(LIMITS, rules=[Rule("low", "least < 1000")])
    cards = Cards(card_limits(limits=strict))
    cards.rule("a", "large", "100")
    cards.pay(5000)
    cards.scenario.epoch()
    cards.rule("a", "large", "4000")
    cards.rule("b", "huge", "100", when="amount < 10")
    cards.pay(500, 5)
    cards.scenario.epoch()
    assert cards.found() == {"large": (2, Decimal(5500))}
    cards.scenario.redefine(card_limits(replace(PAYMENTS, lookups=[replace(LOOKUP, condition="")])))
    cards.pay(500)
    cards.close()
    assert cards.scenario.batch("2024-03-01")
    assert cards.found() == {"large": (1, Decimal(5000)), "huge": (2, Decimal(1000))}


@pytest.mark.parametrize(
    ("lookup", "field", "said"),
    [
        (replace(LOOKUP, of="other"), "of", "There is no source 'other'."),
        (replace(LOOKUP, of="payments"), "of", "Its records would be their own rules."),
        (replace(LOOKUP, table="limits.csv"), "table", "The look-up names a table and a source."),
        (replace(LOOKUP, of=""), "table", "The look-up names no table."),
        (
            replace(LOOKUP, columns=["name", "least DECIMAL(10,2)", "most INT"]),
            "columns",
            "Source 'limits' has no column 'most'.",
        ),
        (replace(LOOKUP, columns=["name", "least INT"]), "columns", "is DECIMAL(10,2), not INT."),
        (
            replace(LOOKUP, on={"country": "amount"}),
            "on[country]",
            "Column 'country' of source 'limits' is STRING",
        ),
        (
            replace(LOOKUP, condition="least"),
            "condition",
            "Column 'least' of source 'limits' is DECIMAL(10,2)",
        ),
        (replace(LOOKUP, every="", where="", condition=""), "of", "of= needs every="),
    ],
    ids=["no source", "itself", "both", "neither", "no column", "type", "key", "condition", "no array"],
)
def test_a_source_that_cannot_be_rules_is_refused(lookup: Lookup, field: str, said: str) -> None:
    """By the look-up's place."""
    made, problems = compile_with_problems(card_limits(replace(PAYMENTS, lookups=[lookup])))
    assert made is None
    assert any(
        said in each.message and each.field.endswith(f"lookups[limits].{field}") for each in problems
    ), [(each.field, each.message) for each in problems]


def test_sources_that_share_a_table_ask_it_by_keys_of_one_type() -> None:
    """A number is no text: each record of the second source would be an error of the kernel."""
    plain = replace(LOOKUP, condition="")
    refunds = KafkaSource(
        name="refunds",
        topic="refunds",
        schema="code INT, amount DECIMAL(10,2), at TIMESTAMP",
        event_time="at",
        lookups=[replace(plain, on={"country": "code"})],
        where="size(limits) = 0",
    )
    made, problems = compile_with_problems(
        card_limits(source=[replace(PAYMENTS, lookups=[plain]), refunds, LIMITS])
    )
    assert made is None
    assert "Another source has a look-up 'limits' with another table, key or columns." in problems[0].message


def test_a_decision_about_rules_goes_on_by_what_its_epoch_names_now() -> None:
    """One about a table that somebody keeps ends: what is validated again meets the corrected table."""
    day = Interval(datetime(2024, 3, 1, tzinfo=UTC), datetime(2024, 3, 2, tzinfo=UTC))
    kept = Restatement("cities", "v", day, 3, "ada", "moved", day.end)
    rules = Restatement("limits", "old", day, 9, "ada", "too low", day.end, used=2)
    new = {2: {"limits": "new"}, 9: {"limits": "newer"}}
    assert carry_restatements([kept, rules], {"limits"}, new) == [None, replace(rules, version="new")]
    assert [Restatement.from_row(each.to_row()) for each in (kept, rules)] == [kept, rules]
    assert "used" not in kept.to_row(), "as earlier releases read it"


def test_rules_of_rules_are_refused() -> None:
    """What is a rule must not depend on a table that changes."""
    named = Lookup("names", "names.csv", on={"id": "name"}, columns=["title"])
    made, problems = compile_with_problems(
        card_limits(limits=replace(LIMITS, lookups=[named], select={"title": "names_title"}))
    )
    assert made is None
    assert "has look-ups of its own" in problems[0].message


def test_a_pipeline_of_one_source_has_no_rules_from_another() -> None:
    """It says how to write two."""
    alone = Pipeline(
        name="alone",
        source=KafkaSource(
            topic="t", schema="country STRING, amount DECIMAL(10,2), at TIMESTAMP", event_time="at"
        ),
        lookups=[LOOKUP],
        views=[replace(BY_LIMIT, of="")],
        batch=Batch("1 day", "2024-01-01"),
    )
    made, problems = compile_with_problems(alone)
    assert made is None
    assert "cannot have its rules from another one" in problems[0].message


def test_a_definition_is_stored_with_its_rules_and_named_by_them() -> None:
    """A table of that name is another record version."""
    made = card_limits()
    assert from_json(to_json(made)) == made
    by_table = card_limits(replace(PAYMENTS, lookups=[replace(LOOKUP, of="", table="limits")]))
    assert compile_pipeline(made).record_version != compile_pipeline(by_table).record_version
