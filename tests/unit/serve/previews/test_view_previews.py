"""A preview: published numbers beside those that a definition, or late rows, would make of the same records."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.unit.shop import DAY, DEFINITION, START, Sale, Shop, sales_pipeline

from seamline.lake.publish.planning import plan_run
from seamline.lake.storage import data_files
from seamline.lake.storage.arrow_types import QUARANTINE
from seamline.lake.storage.delta_table import Table
from seamline.lake.store.locations import Location, list_all_files
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.stored_definition import to_json
from seamline.model.protocol.manifest import Act, Statement
from seamline.plan.revision import samples
from seamline.plan.revision.preview import ViewPreview
from seamline.serve.previews import sampled_rows, view_preview
from seamline.serve.previews.planned_previews import preview_plan
from seamline.serve.previews.rebuild_size import has_log, size_rebuild
from seamline.serve.previews.view_preview import Wanted, preview_view

pytestmark = pytest.mark.slow


class RawShop(Shop):
    """A shop whose records have the bytes that their rows were made of."""

    def records(self, sales: list[Sale], number: int) -> data_files.DataFile:
        written = super().records(sales, number)
        path = f"{self.master.table.root}/{written.path}"
        table = pq.read_table(path, partitioning=None)
        texts = [
            json.dumps({"id": row["id"], "customer": row["customer"], "amount": row["amount"],
                        "sold_at": f"{row['sold_at']:%Y-%m-%dT%H:%M:%SZ}"}).encode()
            for row in table.to_pylist()
        ]  # fmt: skip
        at = table.schema.get_field_index("_value")
        table = table.set_column(at, table.schema.field(at), pa.array(texts, table.schema.field(at).type))
        return data_files.write_data_file(table, self.master.table.root, f"{number:06d}-raw.parquet")


def opened_shop(place: Location, kind: type[Shop] = Shop) -> Shop:
    """Two days published at epoch 0, of which the first has got two rows since."""
    shop = kind(place)
    shop.state(Act.BIRTH, epoch=0, definition=to_json(shop.compiled.definition))
    sales = [Sale(1, "a", 4), Sale(2, "a", 5), Sale(3, "z", 9), Sale(3, "z", 9, id=2), Sale(25 * 60, "b", 7)]
    shop.epoch(sales, watermark=START + 2 * DAY)
    # Of two sales with one id a build counts the first.
    shop.events[0] = [each for at, each in enumerate(sales) if at != 3]
    shop.build(0, 0, "one")
    shop.build(1, 0, "two")
    shop.epoch([Sale(4, "a", 10), Sale(5, "c", 1)], watermark=START + 2 * DAY)
    return shop


@pytest.fixture
def shop(warehouse: Location) -> Shop:
    """A shop of parsed rows."""
    return opened_shop(warehouse)


def edited(before: str, after: str) -> CompiledPipeline:
    """Edit the definition."""
    assert before in DEFINITION
    text = DEFINITION.replace(before, after, 1).replace("Tumbling, ", "Rule, Tumbling, ", 1)
    return sales_pipeline(text=text)


def previewed(shop: Shop, pipeline: CompiledPipeline, wanted: Wanted | None = None) -> ViewPreview:
    """Preview the one view of a definition."""
    return preview_view(pipeline, pipeline.views[0], shop.layout, wanted or Wanted(5))


@pytest.mark.everywhere
def test_the_same_definition_changes_nothing_and_nothing_is_written(shop: Shop) -> None:
    """Rows that came since are no change of the definition, and a repeated id counts once."""
    before = sorted(map(str, list_all_files(shop.warehouse)))
    found = previewed(shop, shop.compiled)
    assert (found.differs, found.equal, len(found.intervals), found.published) == (False, 3, 2, 2)
    assert sorted(map(str, list_all_files(shop.warehouse))) == before


def test_a_measure_that_changes_is_shown_row_by_row(shop: Shop) -> None:
    """By how much, as a share too, and where most."""
    found = previewed(shop, edited('sum("amount")', 'sum("amount + 1")'))
    [total] = found.measures
    assert (found.changed, found.gone, found.new, found.equal) == (3, 0, 0, 0)
    assert (total.name, total.rows, total.absolute, total.relative) == ("total", 3, 2.0, pytest.approx(2 / 9))
    first = total.examples[0]
    assert (first.place["customer"], first.before, first.after) == ("a", "9", "11")
    assert found.before == shop.view.id != found.after
    hidden = previewed(shop, edited('sum("amount")', 'sum("amount + 1")'), Wanted(1, examples=False))
    assert hidden.measures[0].examples == () and len(hidden.intervals) == 1


def test_rows_come_and_go_with_a_condition(shop: Shop) -> None:
    """A row that is not there any more has no number to compare."""
    found = previewed(shop, edited('keys=["customer"]', 'keys=["customer"], where="customer = \'b\'"'))
    assert (found.gone, found.changed, found.new, found.equal) == (2, 0, 0, 1)


def test_measures_that_come_and_go_are_named(shop: Shop) -> None:
    """They have nothing to be compared with."""
    found = previewed(shop, edited('"largest": max("amount")', '"most": max("amount")'))
    assert (found.lost, found.added, found.changed, found.differs) == (("largest",), ("most",), 0, True)


@pytest.mark.everywhere
def test_late_rows_are_shown_before_they_are_built(shop: Shop) -> None:
    """The plan says how many rows came; the preview says which numbers they move."""
    plan = plan_run(shop.compiled, shop.layout, asked=None, dirty=True)
    [found] = preview_plan(shop.compiled, shop.layout, plan, sample=5, examples=True)
    assert [each.interval.id for each in plan.builds] == [each.interval for each in found.intervals]
    assert (found.changed, found.new, found.gone, found.equal) == (1, 1, 0, 1)
    assert {each.name: each.absolute for each in found.measures} == {"orders": 1, "total": 10, "largest": 5}
    shop.build(0, 1, "three")
    clean = plan_run(shop.compiled, shop.layout, asked=None, dirty=True)
    assert preview_plan(shop.compiled, shop.layout, clean, sample=5, examples=True) == ()


def test_the_limit_is_that_of_the_definition_as_it_is_now(shop: Shop) -> None:
    """A served version was stored when nobody had set one; what is published next obeys the file."""
    now = edited('sum("amount")', 'sum("amount + 1")')
    limited = replace(
        now, definition=replace(now.definition, batch=replace(now.definition.batch, approve_change=0.5))
    )
    plan = plan_run(limited, shop.layout, asked=None, dirty=True)
    [found] = preview_plan(limited, shop.layout, plan, sample=5, examples=True)
    assert (found.before, found.after) == (shop.view.id, shop.view.id)
    assert (found.limit, found.waits) == (0.5, True)


def test_a_version_that_cannot_be_made_hides_no_other(shop: Shop) -> None:
    """It was stored by a later release, or its author's code is gone."""
    gone = "gone/000000000000"
    shop.manifest.read()
    shop.manifest.commit(
        [
            Statement(Act.BIRTH, gone, epoch=0, definition="{}"),
            Statement(Act.FLIP, gone, epoch=0),
        ]
    )
    plan = plan_run(shop.compiled, shop.layout, asked=None, dirty=True)
    found = {
        each.view: each for each in preview_plan(shop.compiled, shop.layout, plan, sample=5, examples=True)
    }
    assert "cannot be made" in found["shop.gone"].why and found[shop.view.qualified].differs


def test_records_that_mean_something_else_are_validated_again(warehouse: Location) -> None:
    """What is refused now is gone, and a record that was refused may be a row."""
    shop = opened_shop(warehouse, RawShop)
    quarantine = Table.ensure(shop.layout.table("quarantine"), QUARANTINE)
    refused = {
        "_topic": "sales", "_topic_id": "t", "_partition": 0, "_offset": 99, "_epoch": 0,
        "_kafka_timestamp": START, "_record_version": "old", "_reason": "rule", "_detail": "",
        "_value": b'{"id": 99, "customer": "d", "amount": 3, "sold_at": "2013-01-01T00:07:00Z"}',
    }  # fmt: skip
    rows = pa.Table.from_pylist([refused], schema=QUARANTINE)
    quarantine.append([data_files.write_data_file(rows, quarantine.root, "q.parquet")])
    ruled = edited("    batch=", '    rules=[Rule("small", "amount < 7")],\n    batch=')
    assert ruled.record_version != shop.compiled.record_version
    found = previewed(shop, ruled)
    assert (found.equal, found.changed, found.gone, found.new) == (1, 0, 2, 1)
    less = edited("    batch=", '    select={"half": "amount * 2"},\n    batch=')
    found = previewed(shop, less)
    assert (found.equal, found.changed, found.gone, found.new) == (3, 0, 0, 1)


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ('keys=["customer"]', "keys=[]", "other keys"),
        ('interval="1 day"', 'interval="1 hour"', "its intervals are others"),
        ('Tumbling("1 hour")', "CountWindow(5)", "other keys"),
        ('event_time="sold_at"', 'event_time="sold_at", dedup_within="1 hour"', "removes duplicates"),
        ("    batch=", '    select={"at": "sold_at"},\n    batch=', ""),
    ],
)
def test_what_cannot_be_compared_says_why(shop: Shop, before: str, after: str, why: str) -> None:
    """No preview is not a preview without changes."""
    text = DEFINITION.replace(before, after, 1).replace("Tumbling, ", "Tumbling, CountWindow, ")
    found = previewed(shop, sales_pipeline(text=text))
    assert why in found.why and bool(found.why) is bool(why)


def test_another_clock_may_move_any_record(shop: Shop) -> None:
    """Records of a day that was not sampled may be of one that was."""
    text = DEFINITION.replace('event_time="sold_at"', 'event_time="at"').replace(
        "    batch=", '    select={"at": "sold_at + INTERVAL \'1\' HOUR"},\n    batch='
    )
    found = previewed(shop, sales_pipeline(text=text))
    assert "the event time is made in another way" in found.why


def test_large_intervals_are_left_alone(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A workflow's machine is small: what was not looked at is named."""
    monkeypatch.setattr(view_preview, "MOST_ROWS", 2)
    found = previewed(shop, shop.compiled)
    assert [*found.skipped] == ["2013-01-01T00:00:00Z"] and len(found.intervals) == 1
    assert "4 rows, more than the 2" in found.skipped["2013-01-01T00:00:00Z"]
    assert samples.MOST_ROWS > 1_000_000 and sampled_rows.MOST_REFUSED > 100_000


def test_a_view_that_nobody_serves_has_no_preview(shop: Shop) -> None:
    """A new view has nothing to compare with."""
    found = previewed(shop, edited('"sales",\n            keys', '"new",\n            keys'))
    assert found.why == "nothing is served of it"
    renamed = edited('"sales",\n            keys', '"new",\n            keys')
    again = preview_view(renamed, renamed.views[0], shop.layout, Wanted(5), served="sales")
    assert (again.differs, again.equal) == (False, 3)


def test_a_version_that_is_not_born_is_sized(shop: Shop, tmp_path: Path) -> None:
    """Before the stream has even started with it: intervals, rows, bytes, and records to validate again."""
    pipeline = edited('sum("amount")', 'sum("amount + 1")')
    size = size_rebuild(pipeline, shop.layout, [pipeline.views[0].id])
    assert size.intervals == {pipeline.views[0].id: 2}
    assert (len(size.plan.builds), size.plan.rows, size.plan.again, size.plan.seconds) == (2, 7, 0, None)
    assert size.plan.bytes > 0
    ruled = edited("    batch=", '    rules=[Rule("small", "amount < 7")],\n    batch=')
    assert size_rebuild(ruled, shop.layout, [ruled.views[0].id]).plan.again == 7
    assert has_log(shop.layout)
    own = size_rebuild(shop.compiled, shop.layout, [shop.view.id])
    assert own.plan.builds == () and own.intervals == {shop.view.id: 0}
