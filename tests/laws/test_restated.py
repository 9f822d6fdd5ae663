"""Restatements in any order between epochs and builds: every row says what its epoch's table, or a decision, says."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.records import pipeline

from seamline import Lookup, Tumbling, View, count
from seamline.kernel.restated_rows import RowReprocessing
from seamline.model.errors import BadRange
from seamline.testing import Scenario
from seamline.testing.plain import Plain

SHOPS, DAYS = "ab", (1, 2, 3)
DECLARED = pipeline(
    "shop STRING, at TIMESTAMP",
    lookups=[Lookup("cities", "cities.csv", on={"shop": "shop"}, columns=["name"])],
    views=[View("by_city", keys=["cities_name"], window=Tumbling("1 day"), measures={"n": count()})],
)
Table = dict[str, str]
table = st.fixed_dictionaries({shop: st.sampled_from(["Oslo", "Rome", "Bern"]) for shop in SHOPS})
rows = st.lists(st.tuples(st.sampled_from(SHOPS), st.sampled_from(DAYS)), min_size=1, max_size=4)
days = st.sampled_from([(1, 2), (2, 3), (3, 4), (1, 3), (2, 4), (1, 4)])
step = st.one_of(
    st.tuples(st.just("read"), rows, st.booleans()),
    st.tuples(st.just("table"), table),
    st.tuples(st.just("restate"), days),
    st.tuples(st.just("build")),
)
steps = st.lists(step, min_size=3, max_size=12)


class Oracle:
    """Rows and decisions as lists: (epoch, shop, day, city), (days, epoch, table)."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, str, int, str]] = []
        self.decided: list[tuple[tuple[int, int], int, Table]] = []

    def city(self, row: tuple[int, str, int, str], known: int | None = None) -> str:
        epoch, shop, day, found = row
        for (first, last), until, table in self.decided[:known]:
            if first <= day < last and epoch <= until:
                found = table[shop]
        return found

    def counts(self, known: dict[int, tuple[int, int]]) -> Counter[tuple[int, str]]:
        """Count by day and city; ``known`` is the cut of a day that was built, and the decisions of then."""
        found = Counter[tuple[int, str]]()
        for row in self.rows:
            cut, decided = known.get(row[2], (-1, 0))
            found[row[2], self.city(row, decided) if row[0] <= cut else row[3]] += 1
        return found


@settings(max_examples=30)
@given(steps, table)
def test_a_row_says_what_its_table_or_the_newest_decision_says(
    tmp_path_factory: pytest.TempPathFactory, told: list[Any], first: Table
) -> None:
    """One row under the wrong city makes two answers wrong, and no total shows it."""
    folder = tmp_path_factory.mktemp("tables")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEAMLINE_PIPELINES", str(folder))
        live(folder, told, first)


def live(folder: Path, told: list[Any], now: Table) -> None:
    write(folder, now)
    scenario, oracle = Scenario(DECLARED, now="2024-01-09"), Oracle()
    known: dict[int, tuple[int, int]] = {}
    # A record of a later day lets the watermark pass those that are looked at.
    scenario.send({"shop": "z", "at": "2024-01-08T00:00:00Z"})
    edge = scenario.epoch().number
    for kind, *what in told:
        if kind == "table":
            write(folder, now := what[0])
        elif kind == "read":
            values, is_edge = what
            scenario.send(*({"shop": shop, "at": f"2024-01-0{day}T01:00:00Z"} for shop, day in values))
            number = scenario.epoch(edge=is_edge).number
            edge = number if is_edge else edge
            oracle.rows += [(number, shop, day, now[shop]) for shop, day in values]
        elif kind == "restate":
            (first, last) = what[0]
            try:
                scenario.restate("cities", f"2024-01-0{first}", f"2024-01-0{last}")
            except BadRange:
                continue
            oracle.decided.append(((first, last), edge, dict(now)))
        else:
            built = {int(id[8:10]) for id in scenario.batch() if int(id[8:10]) in DAYS}
            known |= dict.fromkeys(built, (edge, len(oracle.decided)))
            assert scenario.batch() == []
    found = Counter[tuple[int, str]]()
    for row in scenario.answer():
        if row["window_start"].day in DAYS:
            found[row["window_start"].day, row["cities_name"]] += row["n"]
    assert found == oracle.counts(known)
    plain = scenario.engine
    assert isinstance(plain, Plain)
    again = RowReprocessing.of(scenario.pipeline, plain.layout, plain.epochs, plain.restated)
    made = again(pa.concat_tables([each.accepted for each in plain.read]))
    by_kernel = Counter(
        (row["_epoch"], row["_event_time"].day, row["cities_name"]) for row in made.to_pylist()
    )
    by_hand = Counter((row[0], row[2], oracle.city(row)) for row in oracle.rows)
    assert by_kernel - Counter({(0, 8, None): 1}) == by_hand


def write(folder: Path, table: Table) -> None:
    lines = ["shop,name", *(f"{shop},{city}" for shop, city in table.items()), ""]
    (folder / "new.csv").write_text("\n".join(lines))
    (folder / "new.csv").replace(folder / "cities.csv")
