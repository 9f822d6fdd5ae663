"""Tables of rules against a loop: each record has the names of all rules of its key whose condition is true."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.records import pipeline

from seamline import Lookup, Tumbling, View, count
from seamline.testing import Scenario

COUNTRIES, NAMES = ["NO", "SE", "DK", None], ["a", "b", "c", "B"]
CONDITIONS: dict[str, Callable[[str | None, int | None], bool]] = {
    "true": lambda country, amount: True,
    "amount % 2 = 0": lambda country, amount: amount is not None and amount % 2 == 0,
    "country <> 'SE'": lambda country, amount: country is not None and country != "SE",
}
Rule = tuple[str | None, str, int | None, int | None, str]
"""The country, the name, the bounds of an amount, None where it has none, and a condition of its own."""
Payment = tuple[str | None, int | None]
bound = st.one_of(st.none(), st.integers(-3, 3))
rules = st.lists(
    st.tuples(
        st.sampled_from(COUNTRIES), st.sampled_from(NAMES), bound, bound, st.sampled_from([*CONDITIONS])
    ),
    max_size=8,
    unique_by=lambda rule: rule[:2],
)
payments = st.lists(st.tuples(st.sampled_from(COUNTRIES), bound), max_size=6)
epochs = st.lists(st.tuples(rules, payments), min_size=1, max_size=3)


def declare(*, keyed: bool) -> Any:
    limits = Lookup(
        "limits",
        "limits.csv",
        on={"country": "country"} if keyed else {},
        columns=["name", "least INT", "most INT"],
        where="amount >= limits_least AND (limits_most IS NULL OR amount <= limits_most)",
        condition="when",
        every="found",
    )
    return pipeline("country STRING, amount INT, at TIMESTAMP", lookups=[limits], views=[ITEMS])


ITEMS = View("v", keys=["item"], window=Tumbling("1 day"), measures={"n": count()}, explode={"item": "found"})


def match(rules: Iterable[Rule], payment: Payment, *, keyed: bool) -> list[str]:
    country, amount = payment
    return [
        name
        for of, name, least, most, when in rules
        if CONDITIONS[when](country, amount)
        if not keyed or (of is not None and of == country)
        if amount is not None and least is not None and amount >= least and (most is None or amount <= most)
    ]


def write(folder: Path, rules: Iterable[Rule]) -> None:
    with (folder / "new.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["country", "name", "least", "most", "when"])
        writer.writerows(["" if each is None else each for each in rule] for rule in rules)
    (folder / "new.csv").replace(folder / "limits.csv")


@pytest.mark.parametrize("keyed", [True, False])
@settings(max_examples=12)
@given(epochs=epochs)
def test_a_record_has_what_a_loop_finds(
    tmp_path_factory: pytest.TempPathFactory, keyed: bool, epochs: list[tuple[list[Rule], list[Payment]]]
) -> None:
    """With the rules that its epoch has read, in the stream and in the build."""
    folder = tmp_path_factory.mktemp("rules")
    expected = Counter[str]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEAMLINE_PIPELINES", str(folder))
        write(folder, [])
        scenario = Scenario(declare(keyed=keyed), now="2024-01-05")
        for own, some in epochs:
            named = own if keyed else list({rule[1]: rule for rule in own}.values())
            write(folder, named)
            scenario.send(
                *({"country": of, "amount": n, "at": "2024-01-01T10:00:00Z"} for of, n in some),
            )
            scenario.epoch()
            expected.update(name for each in some for name in match(named, each, keyed=keyed))
        found = [{row["item"]: row["n"] for row in scenario.answer(side="speed")}]
        scenario.send({"country": "DK", "amount": None, "at": "2024-01-03T00:00:00Z"})
        scenario.epoch(edge=True)
        scenario.batch("2024-01-01")
        found.append({row["item"]: row["n"] for row in scenario.answer(side="batch")})
    assert found == [dict(expected)] * 2
