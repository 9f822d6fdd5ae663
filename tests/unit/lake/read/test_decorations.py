"""Look-ups that only decorate: what is shown beside the keys, of which version, and when the table changes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.records import pipeline
from tests.unit.shop import Sale, Shop, sales_pipeline

from seamline import Lookup, Tumbling, View, count
from seamline.lake.read import serving_table
from seamline.lake.read.decorations import _known
from seamline.lake.read.merged_read import read_merged_answer
from seamline.lake.storage.delta_table import Table
from seamline.lake.store.locations import Location
from seamline.model.compile.compiled_pipeline import CompiledPipeline, compile_pipeline, compile_with_problems
from seamline.model.protocol.read_request import ReadRequest
from seamline.spark.stream.serving_refresher import Refresher
from seamline.testing import Scenario

pytestmark = pytest.mark.slow

PEOPLE = Lookup("people", "people.csv", on={"id": "customer"}, columns=["name", "born DATE"])
SIZES = Lookup("sizes", "sizes.csv", on={"n": "length(customer)"}, columns=["word"])
TABLE = "id,name,born\na,Ada,1815-12-10\nb,Bob,\n"
DAYS = ["2013-01-01T00:00:00Z", "2013-01-02T00:00:00Z"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of definitions, with tables in it."""
    monkeypatch.setenv("SEAMLINE_PIPELINES", str(tmp_path))
    (tmp_path / "people.csv").write_text(TABLE)
    (tmp_path / "sizes.csv").write_text("n,word\n1,short\n")
    return tmp_path


def decorated(*lookups: Lookup) -> CompiledPipeline:
    made = sales_pipeline("1 hour")
    return compile_pipeline(replace(made.definition, lookups=lookups or (PEOPLE, SIZES)))


def opened(warehouse: Location) -> Shop:
    """Three hours of three people, one unknown and one without a name, over two days."""
    shop = Shop(warehouse, decorated())
    shop.epoch([Sale(1), Sale(2, "b"), Sale(3, None), Sale(25 * 60, "zz")])
    return shop


def shown(shop: Shop, **asked: Any) -> list[tuple[Any, ...]]:
    rows = read_merged_answer(shop.compiled, shop.view, shop.layout, ReadRequest(**asked)).table.to_pylist()
    return [(row["customer"], row["people_name"], row["people_born"], row["sizes_word"]) for row in rows]


def served(shop: Shop) -> list[Mapping[str, Any]]:
    rows: list[Mapping[str, Any]] = Table.open(shop.layout.serving(shop.view)).read().to_pylist()
    return sorted(rows, key=lambda row: (row["window_start"], row["customer"] or "none"))


def test_columns_stand_behind_the_keys(folder: Path) -> None:
    """One row for a row, in the same order, whatever is found."""
    shop = opened(folder / "warehouse")
    found = read_merged_answer(shop.compiled, shop.view, shop.layout)
    assert found.table.column_names[:5] == [
        "customer", "people_name", "people_born", "sizes_word", "window_start"
    ]  # fmt: skip
    assert [(name, word) for _, name, _, word in shown(shop)] == [
        ("Ada", "short"), ("Bob", "short"), (None, None), (None, None)
    ]  # fmt: skip
    assert str(shown(shop)[0][2]) == "1815-12-10"
    plain = Shop(folder / "plain", sales_pipeline("1 hour"))
    plain.epoch([Sale(1), Sale(2, "b"), Sale(3, None), Sale(25 * 60, "zz")])
    bare = read_merged_answer(plain.compiled, plain.view, plain.layout)
    assert found.table.select(bare.table.column_names).equals(bare.table)
    assert shown(shop, where="customer = 'b'") == shown(shop)[1:2]
    assert shown(shop, where="customer = 'nobody'") == []


def test_it_changes_no_number() -> None:
    """A version of a view is told by what it counts."""
    plain = sales_pipeline("1 hour")
    assert decorated().record_version == plain.record_version
    assert decorated().views[0].fingerprint == plain.views[0].fingerprint


def test_a_corrected_table_shows_at_the_next_refresh_in_every_row(folder: Path, warehouse: Location) -> None:
    """Not only in the intervals that have new rows."""
    shop = opened(warehouse)
    serving_table.refresh_serving_table(shop.compiled, shop.layout, shop.view, DAYS[:1])
    assert [row["people_name"] for row in served(shop)] == ["Ada", "Bob", None, None]
    before = Table.open(shop.layout.serving(shop.view)).version
    serving_table.refresh_serving_table(shop.compiled, shop.layout, shop.view, [])
    assert Table.open(shop.layout.serving(shop.view)).version == before
    (folder / "people.csv").write_text(TABLE.replace("Ada", "Ada Lovelace") + "zz,Zoe,\n")
    serving_table.refresh_serving_table(shop.compiled, shop.layout, shop.view, [])
    assert [row["people_name"] for row in served(shop)] == ["Ada Lovelace", "Bob", None, "Zoe"]
    assert [row["orders"] for row in served(shop)] == [1, 1, 1, 1]
    told = json.loads(Table.open(shop.layout.serving(shop.view)).metadata()[serving_table.LOOKUPS])
    assert told == dict(read_merged_answer(shop.compiled, shop.view, shop.layout).lookups)


def test_the_stream_notices_a_corrected_table_without_a_new_row(folder: Path) -> None:
    """A topic may be silent for days."""
    shop = opened(folder / "warehouse")
    refresher = Refresher(shop.compiled, shop.layout)
    refresher.refresh()
    first = Table.open(shop.layout.serving(shop.view)).version
    refresher.refresh()
    (folder / "sizes.csv").write_text("n,word\n1,one letter\n")
    refresher.close()
    assert [row["sizes_word"] for row in served(shop)] == ["one letter", "one letter", None, None]
    assert Table.open(shop.layout.serving(shop.view)).version == first + 1


def test_a_view_is_decorated_after_its_birth(folder: Path) -> None:
    """A look-up that is added, changed or dropped needs no new version and no backfill."""
    plain = sales_pipeline("1 hour")
    shop = Shop(folder / "warehouse", plain)
    shop.epoch([Sale(1)])
    serving_table.refresh_serving_table(plain, shop.layout, shop.view, DAYS)
    shop.compiled = decorated()
    shop.view = shop.compiled.views[0]
    serving_table.refresh_serving_table(shop.compiled, shop.layout, shop.view, [])
    assert [(row["people_name"], row["orders"]) for row in served(shop)] == [("Ada", 1)]
    shop.view = plain.views[0]
    serving_table.refresh_serving_table(plain, shop.layout, shop.view, [])
    assert "people_name" not in served(shop)[0]


@pytest.mark.parametrize("text", ["id,name\na,Eve\n", TABLE + "a,Eve,\n", None])
def test_a_broken_table_is_shown_as_it_was(
    folder: Path, text: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    """Numbers do not wait for names; a process that never saw the table finds it as it was last served."""
    shop = opened(folder / "warehouse")
    serving_table.refresh_serving_table(shop.compiled, shop.layout, shop.view, DAYS)
    before = shown(shop)
    (folder / "people.csv").unlink()
    if text:
        (folder / "people.csv").write_text(text)
    assert shown(shop) == shown(shop) == before
    _known.clear()
    assert shown(shop) == before
    assert caplog.text.count("is shown") == 2


def test_a_table_that_never_was_shows_nothing(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The numbers are there all the same."""
    (folder / "people.csv").unlink()
    shop = opened(folder / "warehouse")
    assert [row[1:3] for row in shown(shop)] == [(None, None)] * 4
    assert "None of its columns are shown" in caplog.text
    (folder / "people.csv").write_text(TABLE)
    assert shown(shop)[0][1] == "Ada"


def test_a_key_without_a_value_finds_nothing(folder: Path) -> None:
    """There is no record to refuse any more."""
    (folder / "sizes.csv").write_text("n,word\n4,two\n0,none\n")
    other = replace(SIZES, on={"n": "4 div (length(customer) - 1)"})
    shop = Shop(folder / "warehouse", decorated(other))
    shop.epoch([Sale(1), Sale(2, None), Sale(3, "zz")])
    rows = read_merged_answer(shop.compiled, shop.view, shop.layout).table.to_pylist()
    assert {row["customer"]: row["sizes_word"] for row in rows} == {"a": None, "zz": "two", None: None}


def test_grouping_sets_show_it_where_the_key_is() -> None:
    """The total over all shops has no name of a shop."""
    names = Lookup("zones", "people.csv", on={"id": "shop"}, columns=["name"])
    cities = Lookup("cities", "people.csv", on={"id": "city", "name": "shop"}, columns=["born"])
    view = View(
        "v",
        keys=["shop", "city"],
        grouping_sets=[["shop"], ["city"], []],
        window=Tumbling("1 day"),
        measures={"n": count()},
    )
    other = View("w", keys=["city"], window=Tumbling("1 day"), measures={"n": count()})
    made = pipeline("shop STRING, city STRING, at TIMESTAMP", views=[view, other], lookups=[names, cities])
    scenario = Scenario(made, now="2024-03-02")
    scenario.send({"shop": "a", "city": "b", "at": "2024-03-01T10:00:00Z"})
    scenario.epoch()
    rows = [(row["grouping"], row["zones_name"], row["cities_born"]) for row in scenario.answer("v")]
    assert sorted(rows) == [("()", None, None), ("(city)", None, None), ("(shop)", "Ada", None)]
    assert [join.name for join in compile_pipeline(made).views[1].decorations] == []


def wrong(*lookups: Lookup, **changes: Any) -> Any:
    """Make a definition with look-ups of which nothing is named."""
    view = View("by_shop", keys=["shop"], window=Tumbling("1 day"), measures={"n": count()})
    schema = "shop STRING, size DOUBLE, at TIMESTAMP"
    return pipeline(schema, **{"views": [view], "lookups": list(lookups), **changes})


SHOPS = Lookup("shops", "shops.csv", on={"id": "shop"}, columns=["name"])
WRONG: dict[str, tuple[Any, str, str]] = {
    "no use": (wrong(replace(SHOPS, on={"id": "at"})), "lookups[shops]", "no view has the keys"),
    "unknown": (wrong(replace(SHOPS, on={"id": "shopp"})), "lookups[shops].on[id]", "'shopp'"),
    "inexact": (wrong(replace(SHOPS, on={"id": "size"})), "lookups[shops].on[id]", "is DOUBLE"),
    "inexact key": (
        wrong(replace(SHOPS, on={"id": "CAST(length(shop) AS DOUBLE)"})),
        "lookups[shops].on[id]",
        "is DOUBLE",
    ),
    "measure": (
        wrong(replace(SHOPS, prefix="n", columns=["n"]), views=[
            View("v", keys=["shop"], window=Tumbling("1 day"), measures={"nn": count()})
        ]),
        "lookups[shops].columns",
        "A column 'nn' already exists",
    ),
    "reserved": (
        wrong(replace(SHOPS, prefix="pha", columns=["se"])), "lookups[shops].columns", "A column 'phase' already exists"
    ),
    "another": (
        wrong(SHOPS, replace(SHOPS, name="more", prefix="shops_")), "lookups[more].columns", "'shops_name' already"
    ),
    "type": (wrong(replace(SHOPS, columns=["name NAME"])), "lookups[shops].columns", "unknown type"),
}  # fmt: skip


@pytest.mark.parametrize(("made", "field", "why"), WRONG.values(), ids=WRONG)
def test_a_wrong_decoration_is_told(made: Any, field: str, why: str) -> None:
    """It is told once, where the definition is written."""
    problems = compile_with_problems(made)[1]
    assert [each.field for each in problems].count(field) == 1
    found = next(each for each in problems if each.field == field)
    assert why in found.message
    assert found.file.endswith(".py")
