"""What is served though it is not certified: by a person's decision, or because the day is still open."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.past import DAYS, NOW, build
from tests.unit.shop import DAY, START, Sale, Shop, opened, sales_pipeline

from seamline.cli import main
from seamline.lake.publish.planning import plan_run
from seamline.lake.publish.publishing import publish_run
from seamline.lake.read.merged_read import read_merged_answer
from seamline.lake.storage.delta_table import Table
from seamline.lake.store.locations import Location
from seamline.lake.tables.builds_table import BuildRow, Builds
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.compile.stored_definition import from_json, to_json
from seamline.model.definition.layers import Batch
from seamline.model.errors import PublishRefused
from seamline.model.protocol.certificate_checks import Certificate
from seamline.model.protocol.manifest import How
from seamline.model.protocol.seam import Status
from seamline.quality.certify import certify_run, require_passed

pytestmark = pytest.mark.slow

SPOKEN = "published despite its certificate by cli:"


@pytest.fixture
def shop(tmp_path: Path, warehouse: Location, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """Two days: the first is certified, of the second there is a generation that was held back."""
    shop = opened(tmp_path, monkeypatch, warehouse)
    shop.epoch([Sale(1, "a", 4), Sale(25 * 60, "b", 5)], watermark=START + 2 * DAY)
    build(shop, "one", cut=0)
    build(shop, "red", cut=0, day=1, passed=False, publish=False)
    return shop


def test_a_person_may_publish_what_was_held_back_and_everybody_sees_it(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    """A number that nobody proved must say so wherever it is read."""
    argv = ["publish", "shop", "--run", "run-red"]
    assert main(argv) == PublishRefused.exit_code
    assert "No interval of run 'run-red' is certified" in capsys.readouterr().err
    assert main([*argv, "--despite-certificate"]) == 2
    capsys.readouterr()
    assert main([*argv, "--despite-certificate", "--reason", "the check is too strict"]) == 0
    assert f"2013-01-02T00:00:00Z red cut 0 {SPOKEN}" in capsys.readouterr().out
    stated = shop.manifest.read().published[shop.view.id, DAYS[1]]
    assert (stated.certified, stated.how, stated.reason) == (False, How.DESPITE, "the check is too strict")

    assert main(["status", "shop"]) == 0
    told = capsys.readouterr().out
    assert "1 certified, 1 not certified" in told and SPOKEN in told
    assert main(["history", "shop.sales", "2013-01-02"]) == 0
    assert SPOKEN in capsys.readouterr().out
    assert main(["query", "shop.sales"]) == 0
    footer = capsys.readouterr().err
    assert "not certified: 2013-01-02" in footer and f"2013-01-02 {SPOKEN}" in footer
    assert main(["explain", "shop.sales", "--key", "customer=b", "--window", "2013-01-02T01:00"]) == 0
    assert SPOKEN in capsys.readouterr().out
    rows = Table.open(shop.layout.serving(shop.view)).read().to_pylist()
    assert {row["customer"]: row["certified"] for row in rows} == {"a": True, "b": False}
    assert main([*argv, "--despite-certificate", "--reason", "again"]) == 0
    assert "Nothing was published" in capsys.readouterr().out


def test_a_green_run_is_published_as_it_always_was(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    """The publish task may have died: the command does what it would have done."""
    build(shop, "two", cut=0, publish=False)
    argv = ["publish", "shop", "--run", "run-two"]
    assert main([*argv, "--interval", "2013-01-02"]) == 4
    assert "has not built 2013-01-02" in capsys.readouterr().err
    assert main([*argv, "--interval", "2013-01-01"]) == 0
    stated = shop.manifest.read().published[shop.view.id, DAYS[0]]
    assert (stated.generation, stated.certified, stated.how, stated.actor) == ("two", True, How.CERTIFIED, "")
    assert main(["publish", "shop", "--run", "none"]) == 4


@pytest.fixture
def early(warehouse: Location) -> Shop:
    """A pipeline that publishes open days, with a first run over the first day, which is open."""
    plain = sales_pipeline().definition
    shop = Shop(warehouse, compile_pipeline(replace(plain, batch=replace(plain.batch, provisional=True))))
    shop.epoch([Sale(1, "a", 4)], watermark=START)
    built(shop, "g0", 0)
    return shop


def built(shop: Shop, id: str, cut: int, *, rows_read: int = 1) -> list[Certificate]:
    """Build the first day as a run would, and certify it."""
    interval = shop.build(0, cut, id, publish=False)
    manifest = shop.manifest.read()
    current = manifest.published.get((shop.view.id, interval.id))
    row = BuildRow(
        id, shop.view.id, interval.id, id, cut, 1, 1, rows_read, 0, 0, current.generation if current else "",
        1.0, "", NOW, planned=manifest.version,
    )  # fmt: skip
    Builds.ensure(shop.layout).append([row])
    return certify_run(shop.compiled, shop.layout, id)


def test_an_open_day_is_published_as_provisional_where_the_definition_says_so(early: Shop) -> None:
    """It is no failure, and it is not certified either."""
    publish_run(early.compiled, early.layout, "g0")
    stated = early.manifest.read().published[early.view.id, DAYS[0]]
    assert (stated.how, stated.certified) == (How.PROVISIONAL, False)
    found = read_merged_answer(early.compiled, early.view, early.layout)
    assert found.intervals[DAYS[0]].status is Status.PROVISIONAL
    assert [(row["batch_part"], row["certified"]) for row in found.table.to_pylist()] == [(1, False)]
    assert plan_run(early.compiled, early.layout, asked=None, dirty=True).builds == ()

    early.epoch([], watermark=START + DAY)
    [due] = plan_run(early.compiled, early.layout, asked=None, dirty=True).builds
    assert due.reason == "closed since it was published"
    require_passed(built(early, "g1", 1))
    publish_run(early.compiled, early.layout, "g1")
    found = read_merged_answer(early.compiled, early.view, early.layout)
    assert (found.intervals[DAYS[0]].status, found.final) == (Status.CERTIFIED, True)


def test_only_the_watermark_may_be_red(early: Shop) -> None:
    """An open day whose counts are wrong is wrong, not early."""
    require_passed(certify_run(early.compiled, early.layout, "g0"))
    [wrong] = built(early, "g1", 0, rows_read=2)
    assert (wrong.good, wrong.provisional) == (False, False)
    with pytest.raises(PublishRefused, match="No interval of run 'g1' is certified"):
        publish_run(early.compiled, early.layout, "g1")
    assert Certificate.from_json(wrong.to_json()) == wrong


def test_the_wish_changes_no_version_and_is_kept() -> None:
    """Else trying it would build the year again."""
    plain = sales_pipeline().definition
    early = replace(plain, batch=Batch(plain.batch.interval, plain.batch.start, provisional=True))
    assert compile_pipeline(early).views[0].id == compile_pipeline(plain).views[0].id
    assert from_json(to_json(early)).batch.provisional
    older = to_json(plain).replace(',"provisional":false', "")
    assert "provisional" not in older and from_json(older).batch == plain.batch
