"""Which versions of a view run, which one answers, and when another may: the decisions and their tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.shop import DAY, START, Sale, Shop, sales_pipeline

from seamline.cli import main
from seamline.kernel.kernel_result import KernelResult
from seamline.lake.publish.flipping import flip_view, flip_views
from seamline.lake.read import serving_table
from seamline.lake.read.merged_read import read_merged_answer
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.manifest_table import ManifestTable
from seamline.model.compile.compiled_pipeline import CompiledPipeline, compile_pipeline
from seamline.model.compile.fingerprint import fingerprint_view
from seamline.model.compile.live_versions import list_primary_views, live_views, stood_still
from seamline.model.compile.stored_definition import to_json
from seamline.model.definition.layers import Batch
from seamline.model.definition.sources import Rule
from seamline.model.errors import BadRange, DefinitionError, ProtocolError, PublishRefused
from seamline.model.measures import count, min
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.manifest import Act, Generation, Manifest, Statement, fold_statements
from seamline.model.protocol.offsets import Lane, OffsetRange
from seamline.model.protocol.read_request import ReadRequest
from seamline.model.protocol.seam import Status
from seamline.plan.publish.publication import (
    Candidate,
    plan_births,
    plan_flip,
    plan_publication,
    plan_retirement,
)
from seamline.spark.stream.catch_up import format_foreign_epochs
from seamline.spark.stream.epoch_writer import Writer

pytestmark = pytest.mark.slow

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OLD = sales_pipeline()
FACTS = OLD.definition
DAYS = [f"2013-01-0{day}T00:00:00Z" for day in (1, 2, 3)]


def edited(**changes: object) -> CompiledPipeline:
    return compile_pipeline(replace(FACTS, **changes))  # type: ignore[arg-type]


NEW = edited(views=[replace(FACTS.views[0], measures={"orders": count(), "least": min("amount")})])
A, B = OLD.views[0].id, NEW.views[0].id


def birth(pipeline: CompiledPipeline, manifest: Manifest, held: int, filled: str = "") -> list[Statement]:
    definitions = {view.id: to_json(pipeline.definition) for view in pipeline.views}
    return plan_births(manifest, definitions, held=held, now=NOW, filled=filled)


def state(*statements: Statement) -> Manifest:
    return fold_statements([replace(each, seq=seq) for seq, each in enumerate(statements)], len(statements))


def both(filled: str = DAYS[1]) -> Manifest:
    """A was born with the pipeline, B at epoch 10, when two days had rows."""
    first = birth(OLD, Manifest(), -1)
    return state(*first, *birth(NEW, state(*first), 9, filled))


def built(day: str, cut: int) -> Statement:
    return Statement(Act.PUBLISH, B, epoch=cut, interval=day, generation="g", certified=True)


def test_every_version_born_runs_beside_the_definitions_own() -> None:
    """One that nobody feeds any more can be neither compared nor flipped back to."""
    assert [view.id for view in live_views(NEW, both()).views] == [B, A]
    assert [view.id for view in live_views(OLD, both()).views] == [A, B]
    assert live_views(live_views(NEW, both()), both()) == live_views(NEW, both())
    assert [view.id for view in list_primary_views(live_views(NEW, both()))] == [B]
    assert stood_still(NEW, both()) == {}


@pytest.mark.parametrize(
    ("now", "why"),
    [
        (edited(rules=[Rule("paid", "amount > 0")]), "record version"),
        (edited(source=replace(FACTS.source, topic="returns")), "reads topic sales"),
        (edited(batch=Batch("12 hours", "2013-01-01")), "intervals are of 1 day"),
    ],
    ids=["rule", "topic", "interval"],
)
def test_a_version_that_other_rows_would_falsify_stands_still(now: CompiledPipeline, why: str) -> None:
    """Its slices would be made of rows that it never meant."""
    manifest = state(*birth(OLD, Manifest(), -1))
    assert live_views(now, manifest).views == now.views
    assert why in stood_still(now, manifest)[A]


@pytest.mark.parametrize(
    ("before", "after"), [("1 day", "1 hour"), ("1 hour", "1 day"), ("8 hours", "6 hours")]
)
def test_intervals_stay_as_long_as_a_log_counts_its_rows_by_them(
    before: str, after: str, tmp_path: Path
) -> None:
    """A day's rows were taken for those of its first hour: the others answered 0, and were never built."""
    layout = Layout(tmp_path, "shop")
    old, new = (edited(batch=Batch(each, "2013-01-01")) for each in (before, after))
    for token, pipeline in enumerate([old, new, old], 1):
        writer = Writer(layout, pipeline, token)
    ranges = (OffsetRange(Lane("t", 0), 0, 1),)
    facts = {"record_version": old.record_version, "committed_at": NOW, "ranges": ranges}
    writer.commit(
        Epoch(writer.take_number(), 3, accepted={DAYS[0]: 1}, **facts), KernelResult(), writer.current
    )
    Writer(layout, edited(batch=Batch(before, "2013-01-02"), rules=[Rule("paid", "amount > 0")]), 4)
    with pytest.raises(DefinitionError, match=f"by intervals of {before}, .* has an interval of {after}"):
        Writer(layout, new, 5)
    assert not any(birth > 0 and id == new.views[0].id for id, birth in births(layout).items())
    Writer(layout, old, 6)


def births(layout: Layout) -> Mapping[str, int]:
    return ManifestTable.ensure(layout).read().births


def test_a_definition_that_cannot_be_read_is_named_and_stops_nobody() -> None:
    """The stream of the others goes on."""
    manifest = state(Statement(Act.BIRTH, A, epoch=0, definition='{"keys": []}'))
    assert live_views(NEW, manifest).views == NEW.views
    assert "cannot be made from its stored definition" in stood_still(NEW, manifest)[A]


def test_only_intervals_that_had_rows_at_the_birth_have_lost_some() -> None:
    """Else the open interval of a running stream could never be answered by a version born later."""
    assert [both().floor(B, day) for day in DAYS] == [9, 9, -1]
    assert [both().is_building(B, day) for day in DAYS] == [True, True, False]
    assert [both("").floor(B, day) for day in DAYS] == [9, 9, 9]
    assert [both().floor(A, day) for day in DAYS] == [-1, -1, -1]


def test_a_flip_names_the_first_interval_that_is_not_built() -> None:
    """After it, an interval without an answer would look like no sales (C5)."""
    manifest = both()
    ready = {"intervals_with_rows": DAYS, "frontiers": {A: 12, B: 12}, "now": NOW}
    with pytest.raises(PublishRefused, match=r"2013-01-01.*floor 9, and 1 more are not"):
        plan_flip(manifest, "sales", B, **ready)  # type: ignore[arg-type]
    published = dict(manifest.published)
    for day, cut in ((DAYS[0], 9), (DAYS[1], 8)):
        published[B, day] = built(day, cut)
    with pytest.raises(PublishRefused, match=r"2013-01-02.*floor 9\."):
        plan_flip(replace(manifest, published=published), "sales", B, **ready)  # type: ignore[arg-type]
    published[B, DAYS[1]] = built(DAYS[1], 11)
    [statement] = plan_flip(replace(manifest, published=published), "sales", B, **ready)  # type: ignore[arg-type]
    assert (statement.act, statement.view) == (Act.FLIP, B)


@pytest.mark.parametrize(("new", "old", "accepted"), [(11, 12, False), (12, 12, True), (13, 12, True)])
def test_a_flip_never_goes_back_in_the_log(new: int, old: int, accepted: bool) -> None:
    """Numbers that were answered would vanish."""
    asked = {"intervals_with_rows": DAYS[2:], "frontiers": {A: old, B: new}, "now": NOW}
    if accepted:
        assert plan_flip(both(), "sales", B, **asked)  # type: ignore[arg-type]
        return
    with pytest.raises(PublishRefused, match="up to epoch 11, .* up to 12"):
        plan_flip(both(), "sales", B, **asked)  # type: ignore[arg-type]


def test_a_flip_never_goes_back_in_an_interval_that_is_built_further_than_the_slices() -> None:
    """Both versions are behind, and a day of the served one was built to a later cut (found by a long walk)."""
    asked = {"intervals_with_rows": DAYS[2:], "frontiers": {A: 9, B: 10}, "now": NOW}
    ahead = {(A, DAYS[2]): replace(built(DAYS[2], 12), view=A)}
    with pytest.raises(PublishRefused, match=r"2013-01-03.* of sales/.* is built up to epoch 12"):
        plan_flip(replace(both(), published=ahead), "sales", B, **asked)  # type: ignore[arg-type]
    for caught in ({"frontiers": {A: 9, B: 12}}, {}):
        level = ahead if caught else {**ahead, (B, DAYS[2]): built(DAYS[2], 12)}
        assert plan_flip(replace(both(), published=level), "sales", B, **{**asked, **caught})  # type: ignore[arg-type]


def test_a_retired_version_runs_no_more_and_comes_back_only_by_a_new_birth() -> None:
    """Else every edit of a view would be computed for ever, and a flip back would serve a gap."""
    manifest = both()
    [statement] = plan_retirement(manifest, B, own={A}, reason="a trial", now=NOW)
    gone = state(*birth(OLD, Manifest(), -1), *birth(NEW, state(*birth(OLD, Manifest(), -1)), 9), statement)
    assert live_views(OLD, gone).views == OLD.views
    assert plan_retirement(gone, B, own={A}, reason="", now=NOW) == []
    asked = {"intervals_with_rows": [], "frontiers": {A: 12, B: 12}, "now": NOW}
    with pytest.raises(PublishRefused, match="is retired"):
        plan_flip(gone, "sales", B, **asked)  # type: ignore[arg-type]
    late = Candidate(Generation("g", B, OLD.grid.named(DAYS[0]), 12, 1), True, "")
    with pytest.raises(PublishRefused, match="is retired"):
        plan_publication(gone, [late], now=NOW)
    [again] = birth(NEW, gone, 40)
    back = fold_statements([*birth(OLD, Manifest(), -1), replace(statement, seq=5), replace(again, seq=6)], 6)
    assert (back.live, back.floor(B, DAYS[0])) == ((A, B), 40)


def test_what_is_served_or_declared_is_not_retired() -> None:
    """Its readers would see it stand still."""
    with pytest.raises(PublishRefused, match="is served"):
        plan_retirement(both(), A, own={B}, reason="", now=NOW)
    with pytest.raises(PublishRefused, match="what the definition declares"):
        plan_retirement(both(), B, own={B}, reason="", now=NOW)


def test_a_flip_to_what_is_served_is_nothing_and_to_what_was_never_born_is_refused() -> None:
    """A repeated task is no error; a typing error is."""
    asked = {"intervals_with_rows": DAYS, "frontiers": {A: 1}, "now": NOW}
    assert plan_flip(both(), "sales", A, **asked) == []  # type: ignore[arg-type]
    with pytest.raises(PublishRefused, match="never born"):
        plan_flip(both(), "sales", "sales/000000000000", **asked)  # type: ignore[arg-type]


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    """The old version with two days of sales; the new one born at epoch 2, with slices from there on."""
    shop = Shop(tmp_path)
    shop.state(Act.BIRTH, epoch=0, definition=to_json(FACTS))
    shop.epoch([Sale(1, amount=4), Sale(2, "b", 5)])
    shop.build(0, 0, "g")
    shop.epoch([Sale(3, amount=6)])
    return shop


def new_shop(shop: Shop) -> Shop:
    """Return the new version's tables over the same master, born now."""
    shop.manifest.read()
    shop.manifest.commit(birth(NEW, shop.manifest.read(), 1, DAYS[0]))
    return shop


def test_an_edited_definition_reads_the_served_version(shop: Shop) -> None:
    """Saving a file may not take anybody's answer away."""
    expected = read_merged_answer(shop.compiled, shop.view, shop.layout)
    found = read_merged_answer(NEW, NEW.views[0], shop.layout)
    assert found.table.equals(expected.table)
    assert (found.version, "total" in found.table.column_names) == (shop.view.fingerprint, True)
    serving_table.refresh_serving_table(NEW, shop.layout, NEW.views[0], DAYS[:1])
    assert "total" in Table.open(shop.layout.serving(shop.view)).read().column_names


def test_a_version_whose_definition_was_not_stored_is_a_clear_error(tmp_path: Path) -> None:
    """It was born under a release that kept less."""
    shop = Shop(tmp_path)
    shop.epoch([Sale(1)])
    with pytest.raises(ProtocolError, match="stored definition"):
        read_merged_answer(NEW, NEW.views[0], shop.layout)


def test_a_served_version_with_a_key_that_is_refused_by_now_stops_nobody(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An earlier release took it. The stream goes on, answers say what is wrong, and the flip is the way out."""
    schema = FACTS.source.schema.replace("customer", "Rows")
    before = replace(FACTS, source=replace(FACTS.source, schema=schema))
    before = replace(before, views=[replace(FACTS.views[0], keys=["Rows"])])
    old = f"sales/{fingerprint_view(before, before.views[0])}"
    shop.manifest.read()
    shop.manifest.commit(
        [
            Statement(Act.RETIRE, A, epoch=1),
            Statement(Act.BIRTH, old, epoch=0, definition=to_json(before)),
            Statement(Act.FLIP, old, epoch=1),
        ]
    )
    assert "'Rows' is a name that Seamline uses" in stood_still(NEW, shop.manifest.read())[old]
    Writer(shop.layout, NEW, 1)
    with pytest.raises(ProtocolError, match="'Rows' is a name that Seamline uses") as told:
        read_merged_answer(NEW, NEW.views[0], shop.layout)
    assert "seamline flip" in told.value.hint
    assert [each.id for each in live_views(NEW, shop.manifest.read()).views] == [B]
    for day in DAYS[:1]:
        shop.manifest.read()
        shop.manifest.commit(
            [Statement(Act.PUBLISH, B, epoch=1, interval=day, generation="e", certified=True)]
        )
    assert len(flip_view(NEW, shop.layout, "sales")) == 1


def test_a_later_version_answers_new_intervals_at_once(shop: Shop) -> None:
    """Only what happened before its birth needs a build; the stream's own days do not."""
    new_shop(shop)
    for sales in ([Sale(4)], [Sale(50 * 60)]):
        shop.epoch(sales)
    found = read_merged_answer(NEW, NEW.views[0], shop.layout, ReadRequest(version=NEW.views[0].fingerprint))
    assert [each.status for each in found.intervals.values()] in ([], [Status.BUILDING])
    assert shop.manifest.read().floor(B, shop.compiled.grid.of(START + 2 * DAY).id) == -1


def test_the_serving_table_changes_its_columns_with_the_flip(shop: Shop) -> None:
    """Rows of two versions in one table would be added up by somebody."""
    serving_table.refresh_serving_table(OLD, shop.layout, shop.view, DAYS[:1])
    new_shop(shop)
    shop.state(Act.PUBLISH, epoch=1, interval=DAYS[1], generation="x")
    with pytest.raises(PublishRefused, match="2013-01-01"):
        flip_view(NEW, shop.layout, "sales")
    with pytest.raises(BadRange, match="matches 0 versions"):
        flip_view(NEW, shop.layout, "sales", to="f00")
    shop.manifest.read()
    empty = Statement(Act.PUBLISH, B, epoch=1, interval=DAYS[0], generation="e", certified=True)
    shop.manifest.commit([empty])
    assert len(flip_view(NEW, shop.layout, "sales")) == 1
    served = Table.open(shop.layout.serving(shop.view))
    assert (served.read().num_rows, "least" in served.read().column_names) == (0, True)
    flip_view(NEW, shop.layout, "sales", to=shop.view.fingerprint[:5])
    back = Table.open(shop.layout.serving(shop.view)).read()
    assert sorted(int(row["total"]) for row in back.to_pylist()) == [5, 10]
    version = Table.open(shop.layout.serving(shop.view)).version
    flip_view(NEW, shop.layout, "sales", to=shop.view.fingerprint)
    assert Table.open(shop.layout.serving(shop.view)).version == version


def test_views_are_flipped_together_or_not_at_all(tmp_path: Path) -> None:
    """A restore that served half of what was served then would be neither."""
    two = TWO_VIEWS.format(more="")
    for token, text in enumerate([two, TWO_VIEWS.format(more=', "most": max("amount")')], 1):
        names: dict[str, Any] = {}
        exec(text, names)
        pipeline = compile_pipeline(names["shop"])
        writer = Writer(Layout(tmp_path, "shop"), pipeline, token)
    table = ManifestTable.ensure(writer.layout)
    before = table.read()
    assert len(before.births) == 4
    with pytest.raises(BadRange, match="matches 0 versions of visits"):
        flip_views(pipeline, writer.layout, {"sales": "", "visits": "f00"})
    assert table.read().serving == before.serving
    held = table.table.version
    assert len(flip_views(pipeline, writer.layout, {"sales": "", "visits": ""})) == 2
    assert table.read().serving == {view.name: view.id for view in pipeline.views}
    assert table.table.version == held + 1


TWO_VIEWS = """
from seamline import Batch, KafkaSource, Pipeline, Tumbling, View, count, max

shop = Pipeline(
    name="shop",
    source=KafkaSource(topic="sales", schema="amount BIGINT, sold_at TIMESTAMP NOT NULL", event_time="sold_at"),
    views=[
        View(name, keys=[], window=Tumbling("1 hour"), measures={{"orders": count(){more}}})
        for name in ("sales", "visits")
    ],
    batch=Batch(interval="1 day", start="2013-01-01"),
)
"""
DEFINITION = """
from seamline import Batch, KafkaSource, Pipeline, Tumbling, View, count, min

shop = Pipeline(
    name="shop",
    source=KafkaSource(
        topic="sales",
        schema="id BIGINT NOT NULL, customer STRING, amount BIGINT, sold_at TIMESTAMP NOT NULL",
        event_time="sold_at",
        event_id=["id"],
    ),
    views=[View("{name}", keys=["customer"], window=Tumbling("1 hour"),
                measures={{"orders": count(), "least": min("amount")}})],
    batch=Batch(interval="1 day", start="2013-01-01"),
)
"""


def test_the_command_line_flips_and_tells(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """People flip by hand, and see in the status why not yet; a view taken out of the file still answers."""
    definitions = tmp_path / "definitions"
    definitions.mkdir()
    monkeypatch.setenv("SEAMLINE_PIPELINES", str(definitions))
    monkeypatch.setenv("SEAMLINE_WAREHOUSE", str(tmp_path))
    (definitions / "shop.py").write_text(DEFINITION.format(name="sales"))
    old, new = A.partition("/")[2], B.partition("/")[2]
    assert main(["status", "shop"]) == 0
    printed = capsys.readouterr().out
    assert f"shop.sales {new} (of the definition, not born yet: start the stream): " in printed
    assert f"shop.sales {old} (served): " in printed
    assert main(["flip", "shop.sales"]) == 32
    assert "never born" in capsys.readouterr().err
    new_shop(shop)
    assert main(["flip", "shop.sales"]) == 32
    assert "not built to its floor" in capsys.readouterr().err
    assert main(["flip", "shop.sales", "--to", old]) == 0
    assert "already" in capsys.readouterr().out
    shop.manifest.read()
    shop.manifest.commit([Statement(Act.PUBLISH, B, epoch=1, interval=DAYS[0], generation="e")])
    assert main(["flip", "shop.sales"]) == 0
    assert f"served as version {new} instead of {A}" in capsys.readouterr().out
    assert main(["query", "shop.sales", "--version", old, "--format", "csv"]) == 0
    assert "total" in capsys.readouterr().out
    (definitions / "shop.py").write_text(DEFINITION.format(name="purchases"))
    assert main(["query", "shop.sales", "--format", "csv"]) == 0
    assert "least" in capsys.readouterr().out


def test_a_view_does_not_catch_up_over_rows_that_another_definition_judged(tmp_path: Path) -> None:
    """A rule that is taken back must not leave slices of rows that it had refused."""
    writer = SimpleNamespace(pipeline=OLD, layout=Layout(tmp_path, OLD.name))
    ours, theirs = (
        Epoch(number, 1, NOW, version, accepted={DAYS[0]: 1})
        for number, version in ((4, OLD.record_version), (5, "other"))
    )
    empty = Epoch(6, 1, NOW, "other")
    assert format_foreign_epochs(writer, [ours, empty], 3) == ""  # type: ignore[arg-type]
    assert "epochs 5..5 were validated by record version other" in format_foreign_epochs(
        writer, [ours, theirs], 3
    )  # type: ignore[arg-type]
    assert format_foreign_epochs(writer, [ours, theirs], 5) == ""  # type: ignore[arg-type]
