"""Tables of rules: all rows that match a record, in an array of it."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.unit.records import pipeline

from seamline import Lookup, Rule, Tumbling, View, count, sum
from seamline.lake.tables.lookups import lookup_tables
from seamline.lake.tables.lookups.lookup_tables import load_lookup
from seamline.model.compile.compiled_pipeline import compile_pipeline, compile_with_problems
from seamline.model.compile.fingerprint import record_version
from seamline.model.compile.stored_definition import from_json, to_json
from seamline.model.errors import LookupBroken
from seamline.testing import Scenario

SCHEMA = "country STRING, amount DECIMAL(10,2), n INT, at TIMESTAMP"
LIMITS = Lookup(
    "limits",
    "limits.csv",
    on={"country": "country"},
    columns=["name", "least DECIMAL(10,2)"],
    where="amount > limits_least",
    every="limits",
)
BY_LIMIT = View(
    "by_limit",
    keys=["limit"],
    window=Tumbling("1 day"),
    explode={"limit": "limits"},
    measures={"n": count(), "paid": sum("amount")},
)
TABLE = "country,name,least\nNO,large,100\nNO,huge,1000\nSE,large,50\nSE,any,0\n,nowhere,0\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of definitions, with a table of rules in it."""
    monkeypatch.setenv("SEAMLINE_PIPELINES", str(tmp_path))
    (tmp_path / "limits.csv").write_text(TABLE)
    return tmp_path


def payments(*lookups: Lookup, **changes: Any) -> Any:
    return pipeline(SCHEMA, **{"views": [BY_LIMIT], "lookups": lookups or [LIMITS], **changes})


def paid(country: str | None, amount: str | None, n: int = 1) -> dict[str, Any]:
    return {"country": country, "amount": amount, "n": n, "at": "2024-03-01T10:00:00Z"}


def matches(scenario: Scenario) -> list[tuple[str, int, Decimal]]:
    return [(row["limit"], row["n"], row["paid"]) for row in scenario.answer()]


def test_a_record_has_every_rule_that_matches() -> None:
    """None for another country, an amount that is too small, and where a key or an operand is missing."""
    scenario = Scenario(payments(), now="2024-03-02")
    scenario.send(paid("NO", "2000"), paid("NO", "100"), paid("NO", "500"), paid("SE", "60"), paid("DK", "9"))
    scenario.send(paid(None, "2000"), paid("SE", None), paid("NO", "101"))
    assert scenario.epoch().rows == 8
    assert matches(scenario) == [
        ("any", 1, Decimal("60.00")),
        ("huge", 1, Decimal("2000.00")),
        ("large", 4, Decimal("2661.00")),
    ]


def test_the_array_is_in_order_and_never_null() -> None:
    """A rule may say that nothing matches; which rule comes first does not depend on the table's order."""
    view = View("v", keys=["first", "some"], window=Tumbling("1 day"), measures={"n": count()})
    made = payments(select={"first": "get(limits, 0)", "some": "size(limits)"}, views=[view])
    scenario = Scenario(made, now="2024-03-02")
    scenario.send(paid("NO", "2000"), paid("NO", "1"), paid("DK", "1"), paid("SE", "200"))
    scenario.epoch()
    found = {(row["first"], row["some"]): row["n"] for row in scenario.answer()}
    assert found == {("any", 2): 1, ("huge", 2): 1, (None, 0): 2}


def test_without_a_key_each_record_meets_each_rule(folder: Path) -> None:
    """And without a condition it has all of its key."""
    everywhere = replace(LIMITS, on={})
    (folder / "limits.csv").write_text("name,least\nlarge,100\nany,0\nsome,59.99\n")
    scenario = Scenario(payments(everywhere), now="2024-03-02")
    scenario.send(paid("DK", "60"))
    scenario.epoch()
    assert [row[:2] for row in matches(scenario)] == [("any", 1), ("some", 1)]


def test_all_of_a_key_without_a_condition() -> None:
    scenario = Scenario(payments(replace(LIMITS, where="", columns=["name"])), now="2024-03-02")
    scenario.send(paid("SE", None), paid("NO", "1"))
    scenario.epoch()
    assert [row[:2] for row in matches(scenario)] == [("any", 1), ("huge", 1), ("large", 2)]


def test_every_step_after_it_may_use_the_array() -> None:
    made = payments(
        rules=[Rule("not huge", "NOT array_contains(limits, 'huge')")],
        side={"small": "size(limits) = 0"},
    )
    scenario = Scenario(made, now="2024-03-02")
    scenario.send(paid("NO", "2000"), paid("NO", "200"), paid("NO", "1"))
    scenario.epoch()
    assert [row[:2] for row in matches(scenario)] == [("large", 1)]
    assert [(each.offset, each.reason) for each in scenario.quarantine()] == [(0, "rule not huge")]


def test_a_condition_without_a_value_refuses_its_record(folder: Path) -> None:
    """Whichever rule it is: a record that some rule cannot judge is not counted as if that did not match."""
    divided = replace(LIMITS, columns=["name", "least INT"], where="limits_least div n >= 1")
    scenario = Scenario(payments(divided), now="2024-03-02")
    scenario.send(paid("NO", "1"), paid("NO", "1", n=0), paid("DK", "1", n=0), paid("SE", "1", n=51))
    scenario.epoch()
    assert [(each.offset, each.reason) for each in scenario.quarantine()] == [(1, "error in lookup limits")]
    assert [row[:2] for row in matches(scenario)] == [("huge", 1), ("large", 1)]


def test_rows_keep_their_places() -> None:
    """A join may turn rows around; each must still meet its own bytes."""
    scenario = Scenario(payments(rules=[Rule("own", "size(limits) = n")]), now="2024-03-02")
    scenario.send(
        *(
            paid(("NO", "SE", "DK")[at % 3], "500", n=(1, 2, 0)[at % 3])
            for at in (at * 7919 % 3000 for at in range(3000))
        )
    )
    assert dict(scenario.epoch().refused) == {}


def test_rules_that_change_change_only_what_follows(folder: Path) -> None:
    scenario = Scenario(payments(), now="2024-03-05")
    scenario.send(paid("NO", "500"))
    first = scenario.epoch().lookups["limits"]
    (folder / "limits.csv").write_text(TABLE.replace("huge,1000", "huge,400"))
    scenario.send(paid("NO", "500"))
    assert scenario.epoch().lookups["limits"] != first
    (folder / "limits.csv").write_text(TABLE)
    scenario.send(paid("NO", "500"))
    assert scenario.epoch().lookups["limits"] == first
    seen = [("huge", 1), ("large", 3)]
    assert [row[:2] for row in matches(scenario)] == seen
    scenario.send({**paid("NO", "0"), "at": "2024-03-03T00:00:00Z"})
    scenario.epoch()
    assert scenario.batch("2024-03-01")
    assert [row[:2] for row in matches(scenario)] == seen


def test_corrected_rules_are_a_restatement(folder: Path) -> None:
    scenario = Scenario(payments(), now="2024-03-05")
    scenario.send(paid("NO", "500"), {**paid("NO", "0"), "at": "2024-03-03T00:00:00Z"})
    scenario.epoch()
    (folder / "limits.csv").write_text(TABLE.replace("huge,1000", "huge,400"))
    scenario.send(paid("NO", "1"))
    scenario.epoch(edge=True)
    scenario.restate("limits", "2024-03-01", "2024-03-02")
    assert scenario.batch("2024-03-01")
    assert [row[:2] for row in matches(scenario)] == [("huge", 1), ("large", 1)]


WHEN = Lookup(
    "limits", "when.csv", on={"country": "country"}, columns=["name"], condition="when", every="limits"
)
CONDITIONS = """country,name,when
NO,large,amount > 100
NO,odd,"n % 2 = 1 AND amount IS NOT NULL"
SE,large,amount > 50
SE,any,true
DK,each,10 div n > 1
DK,any,true
"""


def test_a_rule_may_have_a_condition_of_its_own(folder: Path) -> None:
    """As a text in the table; which records meet it is asked once, for all countries that have it."""
    (folder / "when.csv").write_text(CONDITIONS)
    scenario = Scenario(payments(WHEN), now="2024-03-02")
    scenario.send(paid("NO", "200"), paid("NO", "1", n=2), paid("SE", "60", n=0), paid("SE", None, n=0))
    scenario.send(paid("DK", "1", n=5), paid("DK", "1", n=10), paid("DK", "1", n=0), paid("XX", "500"))
    scenario.epoch()
    assert [row[:2] for row in matches(scenario)] == [("any", 4), ("each", 1), ("large", 2), ("odd", 1)]
    [refused] = scenario.quarantine()
    assert (refused.offset, refused.reason) == (6, "error in lookup limits")
    assert refused.detail.startswith("each: ")


def test_rules_see_what_kafka_knows_of_a_record(folder: Path) -> None:
    """Its key was no column of the query, or NULL, where nothing but a rule named it."""
    (folder / "when.csv").write_text("name,when\na,_key = 'a'\nb,_key = 'b'\nnew,_offset > 0\n")
    for rules in (
        replace(WHEN, on={}),
        replace(LIMITS, on={}, table="when.csv", columns=["name"], where="_key = limits_name OR _offset > 0"),
    ):
        scenario = Scenario(payments(rules), now="2024-03-02")
        scenario.send(paid("NO", "1"), key=b"a")
        scenario.send(paid("NO", "1"), key=b"c")
        scenario.epoch()
        found = {row[0]: row[1] for row in matches(scenario)}
        assert found == ({"a": 1, "new": 1} if rules.condition else {"a": 2, "b": 1, "new": 1})


def test_conditions_of_rules_change_with_the_table(folder: Path) -> None:
    """Without keys, beside a condition on both, and where a table has no rule at all."""
    table = folder / "when.csv"
    table.write_text("name,least,when\na,100,n = 1\nb,100,n = 2\n")
    both = replace(
        WHEN, on={}, columns=["name", "least DECIMAL(10,2)"], where="amount >= limits_least", every="limits"
    )
    scenario = Scenario(payments(both), now="2024-03-02")
    scenario.send(
        paid("NO", "100", n=1), paid("NO", "99", n=1), paid("NO", "100", n=2), paid("NO", "100", n=3)
    )
    scenario.epoch()
    assert [row[:2] for row in matches(scenario)] == [("a", 1), ("b", 1)]
    table.write_text("name,least,when\n")
    scenario.send(paid("NO", "100", n=1))
    scenario.epoch()
    table.write_text("name,least,when\na,0,n = 3\n")
    scenario.send(paid("NO", "100", n=1), paid("NO", "100", n=3))
    scenario.epoch()
    assert [row[:2] for row in matches(scenario)] == [("a", 2), ("b", 1)]


@pytest.mark.parametrize(
    ("when", "said"),
    [
        ("amount >", "a wrong 'when' where name = 'huge'"),
        ("amount", "where name = 'huge': 'amount' is DECIMAL(10,2), not a condition"),
        ("limits_least > 1", "where name = 'huge': There is no column 'limits_least'"),
        ("", "where name = 'huge': It is empty"),
        ("rand() > 0", "a wrong 'when' where name = 'huge'"),
        ("(" * 3000 + "true" + ")" * 3000, "nests too many levels"),
        ("NOT " * 3000 + "true", "nests too many levels"),
        (" AND ".join(["n > 1"] * 3000), "nests too many levels"),
    ],
)
def test_a_wrong_condition_leaves_the_rules_of_before(folder: Path, when: str, said: str) -> None:
    (folder / "when.csv").write_text("country,name,when\nNO,large,amount > 100\n")
    scenario = Scenario(payments(WHEN), now="2024-03-02")
    (folder / "when.csv").write_text(f"country,name,when\nNO,large,true\nNO,huge,{when}\n")
    with pytest.raises(LookupBroken) as broken:
        load_lookup(scenario.pipeline.lookups[0])
    assert said in str(broken.value)
    scenario.send(paid("NO", "500"), paid("NO", "5"))
    scenario.epoch()
    assert [row[:2] for row in matches(scenario)] == [("large", 1)]


def test_a_table_has_few_conditions(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each record meets each: what differs in a number belongs into a column."""
    monkeypatch.setattr(lookup_tables, "MOST_CONDITIONS", 2)
    (folder / "when.csv").write_text(CONDITIONS)
    with pytest.raises(LookupBroken, match="5 different conditions, and 2 are the most"):
        load_lookup(compile_pipeline(payments(WHEN)).lookups[0])


@pytest.mark.parametrize(
    ("table", "lookup", "said"),
    [
        ("country,name,least\nNO,large,1\nNO,large,2\n", LIMITS, "country = 'NO', name = 'large'"),
        ("country,name,least\nNO,,1\n", LIMITS, "a row without a value of 'name'"),
        ("country,name,least\nNO,large,much\n", LIMITS, "'least' of 'limits.csv' is string"),
        ("country,name,least\nNO,a,1\nNO,b,2\nNO,c,2\n", LIMITS, "3 rules with one key, and 2 are the most"),
        ("country,name,least\nNO,a,1\nSE,b,2\n", replace(LIMITS, on={}), "2 rules and no key, and 1 are the"),
    ],
)
def test_a_wrong_table_leaves_the_rules_of_before(
    folder: Path, monkeypatch: pytest.MonkeyPatch, table: str, lookup: Lookup, said: str
) -> None:
    monkeypatch.setattr(lookup_tables, "MOST_RULES", 2)
    monkeypatch.setattr(lookup_tables, "MOST_OF_ALL", 1)
    (folder / "limits.csv").write_text("country,name,least\nNO,large,100\n")
    scenario = Scenario(payments(lookup), now="2024-03-02")
    (folder / "limits.csv").write_text(table)
    with pytest.raises(LookupBroken) as broken:
        load_lookup(scenario.pipeline.lookups[0])
    assert said in str(broken.value)
    scenario.send(paid("NO", "500"))
    scenario.epoch()
    assert [row[:2] for row in matches(scenario)] == [("large", 1)]


def wrong(changes: dict[str, Any]) -> Any:
    """Return a pipeline of which nothing but the look-up is wrong."""
    lookup = replace(LIMITS, **changes)
    counted = View("v", keys=["country"], window=Tumbling("1 day"), measures={"n": count()})
    used = replace(BY_LIMIT, explode={"limit": lookup.every or "limits"})
    return payments(lookup, views=[counted if lookup.every == "others" else used])


WRONG = {
    "rules: a condition alone": (wrong({"every": ""}), "lookups[limits].where", "selects any number of rows"),
    "rules: conditions alone": (
        wrong({"every": "", "where": "", "condition": "when"}),
        "lookups[limits].condition",
        "selects any number of rows",
    ),
    "rules: a column": (wrong({"every": "amount"}), "lookups[limits].every", "'amount' already exists"),
    "rules: their column": (wrong({"every": "limits_name"}), "lookups[limits].every", "already exists"),
    "rules: no name": (wrong({"every": "2"}), "lookups[limits].every", "'2' is not a valid name"),
    "rules: no condition": (wrong({"where": "limits_least"}), "lookups[limits].where", "not a condition"),
    "rules: unknown": (wrong({"where": "limits_most > 1"}), "lookups[limits].where", "'limits_most'"),
    "rules: nested": (
        wrong({"columns": ["name ARRAY<STRING>"]}),
        "lookups[limits].columns",
        "is ARRAY<STRING>",
    ),
    "rules: unused": (wrong({"every": "others"}), "lookups[limits].every", "Nothing uses 'others'"),
}


@pytest.mark.parametrize(("made", "place", "said"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_is_named(made: Any, place: str, said: str) -> None:
    _, problems = compile_with_problems(made)
    assert [each for each in problems if each.field == place and said in each.message], problems


def test_rules_are_part_of_the_record_version() -> None:
    """A look-up of before there were rules keeps its version; a definition is stored with all that it says."""
    made = payments()
    other = payments(replace(LIMITS, where="amount >= limits_least"))
    assert record_version(made) != record_version(other)
    assert from_json(to_json(made)) == made
    assert compile_pipeline(made).views[0].fingerprint != compile_pipeline(other).views[0].fingerprint
