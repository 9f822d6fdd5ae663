"""Rules from a topic against a loop: each record meets the newest rule of each key that was read with it or before."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from seamline import Batch, KafkaSource, Lookup, Pipeline, Tumbling, View, count
from seamline.testing import Scenario

PIPELINE = Pipeline(
    name="cards",
    source=[
        KafkaSource(
            name="payments",
            topic="payments",
            schema="country STRING, amount INT, at TIMESTAMP",
            event_time="at",
            lookups=[
                Lookup(
                    "limits",
                    of="limits",
                    on={"country": "country"},
                    columns=["name", "least INT"],
                    where="amount >= limits_least",
                    every="found",
                )
            ],
        ),
        KafkaSource(
            name="limits",
            topic="limits",
            schema="country STRING, name STRING NOT NULL, least INT",
            event_time="_kafka_timestamp",
        ),
    ],
    views=[
        View(
            "v",
            of="payments",
            keys=["item"],
            window=Tumbling("1 day"),
            explode={"item": "found"},
            measures={"n": count()},
        )
    ],
    batch=Batch("1 day", "2024-01-01"),
)
COUNTRIES, KEYS = ["NO", "SE", None], ["k", "l", "m"]
Rule = tuple[str | None, str | None, int | None]
"""The country, the name, which a wrong one lacks, and the least amount."""
rules = st.tuples(
    st.sampled_from(KEYS),
    st.one_of(
        st.none(),
        st.tuples(
            st.sampled_from(COUNTRIES),
            st.sampled_from(["a", "b", None]),
            st.one_of(st.none(), st.integers(0, 3)),
        ),
    ),
)
payments = st.tuples(st.sampled_from(COUNTRIES), st.integers(0, 3))
epochs = st.lists(
    st.tuples(st.lists(rules, max_size=5), st.lists(payments, max_size=4), st.booleans()),
    min_size=1,
    max_size=4,
)


def in_force(newest: dict[str, tuple[int, Rule]]) -> list[Rule]:
    """Of rules of one country and name only the one that came last is in force."""
    last = {rule[:2]: rule for _, rule in sorted(newest.values(), key=lambda each: each[0])}
    return [rule for rule in last.values() if rule[0] is not None]


@settings(max_examples=60)
@given(epochs)
def test_a_record_has_the_rules_that_a_loop_finds(
    told: list[tuple[list[tuple[str, Rule | None]], list[tuple[str | None, int]], bool]],
) -> None:
    """Whether the epoch is held at once, or dies first and is read again with what comes next."""
    scenario = Scenario(PIPELINE, now="2024-01-02")
    newest: dict[str, tuple[int, Rule]] = {}
    waiting: list[tuple[str | None, int]] = []
    wanted, sent = Counter[str](), 0
    for changes, paid, dies in told:
        for key, rule in changes:
            value: dict[str, Any] | None = rule and dict(zip(("country", "name", "least"), rule, strict=True))
            scenario.send(value, key=key.encode(), topic="limits")
            sent += 1
            if rule is None:
                newest.pop(key, None)
            elif rule[1] is not None and (key not in newest or newest[key][1] != rule):
                newest[key] = sent, rule
        for country, amount in paid:
            scenario.send(
                {"country": country, "amount": amount, "at": "2024-01-01T10:00:00Z"}, topic="payments"
            )
        waiting += paid
        if dies:
            scenario.crash("files")
            continue
        scenario.epoch()
        for country, amount in waiting:
            wanted.update(
                name
                for of, name, least in in_force(newest)
                if name and of == country and least is not None and amount >= least
            )
        waiting = []
    assert {row["item"]: row["n"] for row in scenario.answer()} == wanted
