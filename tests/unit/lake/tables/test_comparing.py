"""What a generation changes of the answer before it: found key by key, and explained or an alarm."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from tests.unit.past import build
from tests.unit.shop import DEFINITION, Sale, Shop, sales_pipeline

from seamline.lake.audit.generation_comparing import compare_generations, present_interval_states
from seamline.lake.engine.duckdb_connections import register_tables
from seamline.lake.log.epoch_log import known_epochs
from seamline.lake.read.side_by_side import INTERVAL, difference_evidence_sql, side_by_side_sql
from seamline.lake.storage.arrow_types import INSTANT, partial_schema
from seamline.lake.storage.fenced_commits import build_commit_properties
from seamline.lake.store.locations import Location
from seamline.lake.tables.builds_table import Builds
from seamline.lake.tables.comparisons_table import Comparisons
from seamline.lake.tables.reprocessed import rows_schema
from seamline.model.protocol.comparison import Change, Comparison
from seamline.plan.batch.attribution import ChangeCause
from seamline.quality.run_comparing import compare_run


@pytest.fixture
def shop(warehouse: Location) -> Shop:
    """Two epochs over two days and two customers."""
    made = Shop(warehouse)
    made.epoch([Sale(1, "a", 10), Sale(2, "b", 5), Sale(1500, "a", 1)])
    made.epoch([Sale(3, "a", 7), Sale(70, "b", 2)])
    return made


def changes(shop: Shop, id: str, cut: int) -> Comparison:
    """Build the first day, not published, and compare it."""
    build(shop, id, cut=cut, publish=False)
    rows = Builds.ensure(shop.layout).of(f"run-{id}")
    [found] = compare_generations(shop.compiled, shop.view, shop.layout, rows, known_epochs(shop.layout))
    return found


def test_two_layers_that_agree(shop: Shop) -> None:
    """Three places, by slices alone and then by a generation with slices above it."""
    first = changes(shop, "g1", 1)
    assert (first.equal, first.differing, first.causes, first.alarm) == (3, 0, {}, "")
    assert (first.former, first.until) == ("", 1)
    shop.publish(shop.interval(Sale(0)), 1, "g1", 3)
    shop.epoch([Sale(5, "c", 1)])
    again = changes(shop, "g2", 2)
    assert (again.equal, again.differing, again.former) == (4, 0, "g1")


@pytest.mark.everywhere
def test_a_duplicate_that_the_batch_removed_is_told(shop: Shop) -> None:
    """The speed layer counts it, a generation does not."""
    shop.epoch([Sale(4, "a", 10, id=0)])
    shop.events[2].clear()
    found = changes(shop, "g", 2)
    assert (found.equal, found.changed, found.alarm) == (2, 1, "")
    assert found.causes == {ChangeCause.DUPLICATE.value: 1}
    assert found.measures == {
        "orders": Change(1, pytest.approx(-1 / 3)),
        "total": Change(1, pytest.approx(-10 / 27)),
        "largest": Change(0, None),
    }


def test_a_number_that_was_zero_is_counted(shop: Shop) -> None:
    """It has changed by no share: where all of them were zero, nobody would be asked."""
    shop.epoch([Sale(4, "a", -17, id=0)])
    shop.events[2].clear()
    found = changes(shop, "g", 2)
    assert found.measures["total"] == Change(1, None, 1)
    assert Comparison.from_json(found.to_json()) == found


def test_a_view_that_was_behind_is_told(shop: Shop) -> None:
    """The records are in the master, and in no slice that counts."""
    shop.epoch([Sale(6, "c", 4), Sale(6, "b", 4)], frontier=1)
    found = changes(shop, "g", 2)
    assert (found.until, found.equal, found.changed, found.extra) == (1, 2, 1, 1)
    assert found.causes == {ChangeCause.BEHIND.value: 2}


def test_slices_of_a_dead_epoch_were_no_answer(shop: Shop) -> None:
    """Its records came again with the next number."""
    dead = next(shop.numbers)
    shop.slices.append(shop.partials([Sale(6, "c", 4)]), from_epoch=dead, to_epoch=dead)
    shop.epoch([Sale(6, "c", 4)])
    found = changes(shop, "g", 3)
    assert (found.equal, found.differing) == (4, 0)


def test_a_record_that_a_layer_lost_is_an_alarm(shop: Shop) -> None:
    """Nothing explains it, and the place is named."""
    del shop.events[1][0]
    found = changes(shop, "g", 1)
    assert found.causes == {ChangeCause.NONE.value: 1}
    assert found.alarm == (
        "customer=a, pane=2013-01-01T00:00:00Z: 2 records before, 1 after, 0 repeated, 0 not in slices; "
        "other orders, total"
    )


def test_slices_that_were_tampered_with_are_an_alarm(shop: Shop) -> None:
    """As many records, another total."""
    shop.slices.table.handle.delete("from_epoch = 1", commit_properties=build_commit_properties({}))
    shop.slices.table.refresh()
    shop.slices.append(shop.partials([Sale(3, "a", 6), Sale(70, "b", 2)]), from_epoch=1, to_epoch=1)
    found = changes(shop, "g", 1)
    assert found.causes == {ChangeCause.NONE.value: 1} and found.alarm.endswith("other total")
    assert found.measures["total"].most == pytest.approx(1 / 16)


def test_a_comparison_takes_no_name_from_a_definition(tmp_path: Path) -> None:
    """A field may have any name without an underscore, and a key or a measure all but a few."""
    names = ("kind", "was", "made", "measures", "changes", "spare", "unsliced")
    view = sales_pipeline(
        text=DEFINITION.replace("customer STRING", ", ".join(f"{name} STRING" for name in (*names, "pane")))
        .replace('["customer"]', str(list(names[:3])))
        .replace("orders", "spare")
        .replace("total", "changes")
        .replace("largest", "measures")
    )
    [asked] = view.views
    answer = present_interval_states(
        asked, partial_schema(asked).append(pa.field(INTERVAL, INSTANT)).empty_table()
    )
    marks = pa.table(
        {INTERVAL: pa.array([], INSTANT)}
        | {name: pa.array([], pa.int64()) for name in ("_before", "_until", "_cut")}
    )
    with register_tables(
        before=answer, after=answer, marks=marks, blank=rows_schema(view).empty_table()
    ) as con:
        differing = con.sql(side_by_side_sql(asked)).to_arrow_table()
        with register_tables(differing=differing):
            found = con.sql(difference_evidence_sql(view, asked, [])).to_arrow_table()
    assert len(set(differing.column_names)) == len(differing.column_names)
    assert found.column_names == [*differing.column_names, "_spare", "_unsliced"]


def test_what_a_run_changes_is_kept(shop: Shop) -> None:
    """Before it is published, for whoever asks later."""
    build(shop, "g", cut=1, publish=False)
    found = compare_run(shop.compiled, shop.layout, "run-g")
    assert found == Comparisons.ensure(shop.layout).of(shop.view.id)
    assert [each.interval for each in found] == ["2013-01-01T00:00:00Z"]
    assert Comparisons.ensure(shop.layout).of(shop.view.id, "2013-01-02T00:00:00Z") == []
