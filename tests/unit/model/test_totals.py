"""Totals of decimals that no DECIMAL holds: exact in pieces, in any order, and never the end of a view."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Context, Decimal
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.shop import DEFINITION, Sale, Shop, sales_pipeline

from seamline.lake.audit.recounted import recount_states
from seamline.lake.engine import states
from seamline.lake.engine.duckdb_connections import open_duckdb
from seamline.lake.maintain.upkeep import maintain_tables
from seamline.lake.read import serving_table
from seamline.lake.read.merged_read import read_merged_answer
from seamline.lake.storage.arrow_types import INSTANT, arrow_type
from seamline.lake.storage.delta_table import Table
from seamline.lake.tables.committed_log import CommittedLog
from seamline.lake.tables.generations import Generations
from seamline.lake.tables.slices import Slices
from seamline.model.compile.compiled_pipeline import CompiledView, compile_pipeline
from seamline.model.definition.layers import Batch
from seamline.model.definition.pipeline import Pipeline, View
from seamline.model.definition.sources import KafkaSource
from seamline.model.definition.windows import Tumbling
from seamline.model.measures import Measure, avg, count, formula, ratio, sum
from seamline.model.measures.plain import Sum
from seamline.serve.explain import bounds_of, explain_number

SCALES = (0, 1, 10, 18, 37, 38)
MOMENT = datetime(2024, 1, 1, tzinfo=UTC)
WIDE = Context(prec=200)
MOST = 10**38 - 1
MEASURES = {"total": sum("d"), "mean": avg("d"), "some": sum("d", where="p")}
DERIVED = {"n": count("d"), "share": ratio("total", "n"), "same": formula("of", of=sum("d"))}
GROUPS = 60
Row = tuple[int, int | None]
"""A key, and a number of units of the last digit."""


def view(type: str, measures: dict[str, Measure] = MEASURES) -> CompiledView:
    """Compile a view that adds up a column by key."""
    pipeline = Pipeline(
        name="p",
        source=KafkaSource(topic="t", schema=f"k INT, d {type}, p BOOLEAN, at TIMESTAMP", event_time="at"),
        views=[View("v", keys=["k"], window=Tumbling("1 hour"), measures=measures)],
        batch=Batch(interval="1 day", start="2020-01-01"),
    )
    return compile_pipeline(pipeline).views[0]


def made(v: CompiledView, type: str, rows: Iterable[Row]) -> pa.Table:
    """Make the states of rows in DuckDB; even numbers meet the condition of ``some``."""
    scale = arrow_type(type).scale
    schema = pa.schema(
        [("k", pa.int32()), ("d", arrow_type(type)), ("p", pa.bool_()), ("_event_time", INSTANT)]
    )
    read = [
        {
            "k": key,
            "d": None if units is None else decimal(units, scale),
            "p": units is not None and units % 2 == 0,
            "_event_time": MOMENT,
        }
        for key, units in rows
    ]
    with open_duckdb() as con:
        con.register("found", pa.Table.from_pylist(read, schema=schema))
        return states.compute_row_states(con, v, "found")


def decimal(units: int, scale: int) -> Decimal:
    """Return a number of units of the last digit as a decimal."""
    return Decimal(units).scaleb(-scale, context=WIDE)


def ordered(found: pa.Table) -> pa.Table:
    """Sort states by key."""
    return found.sort_by("k").combine_chunks()


def shown(v: CompiledView, found: pa.Table) -> dict[int, dict[str, Any]]:
    """Present states by key."""
    return {row["k"]: row for row in states.present_states(v, found, ["k"]).to_pylist()}


def ugly(dice: random.Random) -> int | None:
    """Return a number of units, most often where something might overflow."""
    kinds = [
        MOST - dice.randrange(10**7),
        dice.choice([0, 1, MOST, 10**28, 10**28 - 1, 10**18, 10**18 - 1, MOST // 2 + 1]),
        dice.randrange(MOST),
        dice.randrange(10 ** dice.randint(1, 38)),
    ]
    return None if dice.random() < 0.1 else dice.choice(kinds) * dice.choice([1, -1])


def added(units: Sequence[int | None]) -> int | None:
    """Add up whole numbers; None where there are none."""
    known = [each for each in units if each is not None]
    return reduce(int.__add__, known, 0) if known else None


def even(units: Sequence[int | None]) -> list[int | None]:
    """Keep what ``some`` adds up."""
    return [each for each in units if each is not None and each % 2 == 0]


def told(units: int | None, scale: int) -> tuple[Decimal | None, str | None]:
    """Return a total as it is presented: as a number where a DECIMAL holds it, as text where none does."""
    if units is None:
        return None, None
    whole = decimal(units, scale)
    return (whole, None) if abs(units) <= MOST else (None, f"{whole:f}")


@pytest.mark.parametrize("scale", SCALES)
def test_a_total_is_exact_however_it_is_cut_and_merged(scale: int) -> None:
    """What lies between may be beyond the type as long as the end is not: 10^38 comes and goes."""
    dice, type = random.Random(scale), f"DECIMAL(38,{scale})"
    v = view(type)
    rows = [(key, ugly(dice)) for key in range(GROUPS) for _ in range(dice.randint(1, 9))]
    dice.shuffle(rows)
    cuts = sorted(dice.sample(range(1, len(rows)), 5))
    pieces = [made(v, type, rows[start:end]) for start, end in zip([0, *cuts], [*cuts, None], strict=True)]
    while len(pieces) > 1:
        several = dice.randint(2, 3)
        pieces = [*pieces[several:], states.combine_states(v, pieces[:several])]
        dice.shuffle(pieces)
    by_key: dict[int, list[int | None]] = defaultdict(list)
    for key, units in rows:
        by_key[key].append(units)
    found = shown(v, pieces[0])
    for key, own in by_key.items():
        total, some, row = added(own), added(even(own)), found[key]
        assert (row["total"], row["total__beyond"]) == told(total, scale), own
        assert (row["some"], row["some__beyond"]) == told(some, scale), own
        known = len([each for each in own if each is not None])
        mean = float(decimal(total, scale)) / known if total is not None else None
        assert row["mean"] == (mean if mean is None else pytest.approx(mean, rel=1e-15)), own
    assert any(row["total__beyond"] for row in found.values())
    assert any(row["total"] is not None for row in found.values())
    # One total has one state, whatever it came by: audits compare states.
    assert ordered(pieces[0]) == ordered(made(v, type, rows))


UNITS = st.integers(-MOST, MOST) | st.sampled_from([MOST, -MOST, 0, 1, -1])


@given(left=st.lists(UNITS, max_size=9), right=st.lists(UNITS, max_size=9))
def test_plain_totals_are_exact_too(left: list[int], right: list[int]) -> None:
    """The oracle of every engine says where a total is beyond what they hold."""
    measure = Sum("d")
    states = [measure.fold([decimal(each, 18) for each in side]) for side in (left, right)]
    state = measure.plus(*states)
    assert (measure.present(state), measure.beyond(state)) == told(added([*left, *right]), 18)


def test_what_is_made_of_a_total_is_unknown_where_it_is() -> None:
    """A ratio or a formula over a total that is not there has no value; the total is told beside."""
    v = view("DECIMAL(38,18)", {**MEASURES, **DERIVED})
    rows: list[Row] = [(1, MOST), (1, MOST), (2, 4 * 10**18), (2, 2 * 10**18)]
    found = shown(v, made(v, "DECIMAL(38,18)", rows))
    twice = "199999999999999999999.999999999999999998"
    assert found[1] == {
        "k": 1,
        "total": None,
        "mean": 1e20,
        "some": None,
        "n": 2,
        "share": None,
        "same": None,
        "total__beyond": twice,
        "some__beyond": None,
        "same__of__beyond": twice,
    }
    assert (found[2]["total"], found[2]["share"], found[2]["same"]) == (6, 3.0, 6)


@pytest.mark.parametrize(
    ("type", "parts"),
    [
        ("DECIMAL(18,2)", ["total__sum", "mean__sum", "mean__n", "some__sum"]),
        ("DECIMAL(28,2)", ["total__sum", "mean__sum", "mean__n", "some__sum"]),
        ("BIGINT", ["total__sum", "mean__sum", "mean__n", "some__sum"]),
        (
            "DECIMAL(29,2)",
            ["total__sum", "total__carry", "mean__sum", "mean__carry", "mean__n", "some__sum", "some__carry"],
        ),
    ],
)
def test_only_long_decimals_are_carried(type: str, parts: list[str]) -> None:
    """Money of 18 digits costs what it did: ten thousand million values of 28 digits fit into 38."""
    assert [part.name for part in view(type).parts] == parts


LONG = DEFINITION.replace("amount BIGINT", "amount DECIMAL(38,0)")
HALF = 6 * 10**37
DAY = "2013-01-01T00:00:00Z"


@pytest.fixture
def old(tmp_path: Path) -> Shop:
    """Make tables as a release left them that kept no carry: an epoch above a generation, one in several files."""
    with pytest.MonkeyPatch.context() as before:
        before.setattr(Sum, "carries", lambda self, input: False)
        shop = Shop(tmp_path / "w", compiled=sales_pipeline(text=LONG))
        shop.epoch([Sale(0, "a", HALF), Sale(1, "b", 1)])
        shop.build(0, cut=0, id="g0")
        shop.epoch([Sale(2, "a", 5), Sale(3, "b", 2)])
    return shop


def of_customers(shop: Shop) -> dict[str, tuple[Any, ...]]:
    """Return the totals of the only window."""
    rows = read_merged_answer(shop.compiled, shop.view, shop.layout).table.to_pylist()
    return {row["customer"]: (row["total"], row["total__beyond"]) for row in rows}


def test_a_view_of_before_goes_on_with_a_carry(old: Shop) -> None:
    """Its version is what it was: what is there is read without a carry, and what comes is written with one."""
    assert of_customers(old) == {"a": (HALF + 5, None), "b": (3, None)}
    old.slices = Slices.ensure(old.layout, old.view)
    old.epoch([Sale(4, "a", HALF)])
    assert of_customers(old) == {"a": (None, f"{2 * HALF + 5}"), "b": (3, None)}
    assert [field.name for field in old.slices.table.handle.schema().fields].count("total__carry") == 1
    again = Slices.ensure(old.layout, old.view).table
    assert again.version == old.slices.table.version


def test_what_others_do_with_tables_of_before_keeps_the_carry(old: Shop) -> None:
    """Compaction and packing, the audit, the serving table, and generations of both releases."""
    old.slices = Slices.ensure(old.layout, old.view)
    old.epoch([Sale(4, "a", HALF)], edge=False)
    old.epoch([Sale(5, "a", HALF), Sale(6, "c", 7)])
    after = {"a": (None, f"{3 * HALF + 5}"), "b": (3, None), "c": (7, None)}
    log = CommittedLog.pin(old.compiled, old.layout)
    assert recount_states(old.compiled, old.view, old.layout, log).findings == ()
    maintain_tables(old.compiled, old.layout)
    assert of_customers(old) == after
    serving_table.refresh_serving_table(old.compiled, old.layout, old.view)
    served = Table.open(old.layout.serving(old.view)).read().to_pylist()
    assert {row["customer"]: (row["total"], row["total__beyond"]) for row in served} == after
    generations = Generations.ensure(old.layout, old.view)
    assert generations.read("g0")["total__carry"].to_pylist() == [None, None]


def test_an_answer_says_which_totals_are_text(old: Shop) -> None:
    """Whoever reads NULL must not take it for nothing."""
    old.slices = Slices.ensure(old.layout, old.view)
    old.epoch([Sale(4, "a", HALF)])
    found = read_merged_answer(old.compiled, old.view, old.layout)
    assert (
        " 1 of total have more digits than a DECIMAL: NULL, and total__beyond has them as text."
        in found.summary()
    )
    [row] = explain_row(old, "a")
    assert row["total__beyond"] == str(2 * HALF + 5)
    names = {"customer": "first__beyond"}
    keyed = replace(found, table=found.table.rename_columns(names))
    assert keyed.summary() == found.summary(), "a key is no total"


def explain_row(shop: Shop, customer: str) -> list[dict[str, Any]]:
    """Take a number apart, and give what its parts make together."""
    found = explain_number(shop.compiled, shop.view, shop.layout, {"customer": customer}, bounds_of(DAY))
    assert found.proven
    return [dict(found.together)]
