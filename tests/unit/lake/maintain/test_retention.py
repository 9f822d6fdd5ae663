"""Which generations may go, and that nobody serves one that is going."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.past import DAYS, NOW, build, past_of
from tests.unit.shop import DAY, START, Sale, Shop, opened, sales_pipeline

from seamline.cli import main
from seamline.lake.maintain import cleaning, retention
from seamline.lake.maintain.upkeep import maintain_tables
from seamline.lake.publish import publishing
from seamline.lake.publish.generation_history import roll_back_interval
from seamline.lake.read.merged_read import read_merged_answer
from seamline.lake.storage.delta_table import Table
from seamline.lake.store.locations import Location
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.errors import BadRange, PublishRefused
from seamline.model.protocol.manifest import Act, Statement, fold_statements
from seamline.model.protocol.read_request import ReadRequest
from seamline.model.time.intervals import Interval
from seamline.plan.maintain.retention_rules import StoredGeneration, decide_retention
from seamline.plan.maintain.unneeded import STAMP
from seamline.plan.publish.publication import Decision

pytestmark = pytest.mark.slow

MONDAY = Interval(START, START + DAY)
BACK = Decision("cli:ada", "x", rollback=True)


@pytest.fixture
def shop(tmp_path: Path, warehouse: Location, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """A day published four times, g0 to g3, a red generation before the last, and a fresh one that waits."""
    shop = opened(tmp_path, monkeypatch, warehouse)
    for number in range(4):
        shop.epoch([Sale(number, "a", 1)], watermark=START + DAY)
        if number == 3:
            build(shop, "red", cut=number, passed=False, publish=False)
        build(shop, f"g{number}", cut=number)
    build(shop, "fresh", cut=3, publish=False)
    return shop


def stay(shop: Shop, keep: int = 1, days: int = 0, now: datetime = NOW + timedelta(days=9)) -> dict[str, str]:
    """Return why each generation stays; nothing for one that may go."""
    found = retention.list_retention_verdicts(
        shop.layout,
        shop.manifest.read(),
        keep=keep,
        older_than=timedelta(days=days) if days else None,
        now=now,
    )
    return {each.kept.generation: each.why for each in found}


def test_the_interlock_says_why_each_may_not_go(shop: Shop) -> None:
    """What is deleted by mistake cannot be served again."""
    assert stay(shop) == {
        "fresh": "its run may still publish it: it is newer than what is published",
        "g0": "",
        "g1": "",
        "g2": "a rollback may go to it: it is of the last 1 that were published",
        "g3": "it is published",
        "red": "",
    }
    assert [name for name, why in stay(shop, keep=0).items() if not why] == ["g0", "g1", "g2", "red"]
    assert [name for name, why in stay(shop, keep=9).items() if not why] == ["red"]
    roll_back_interval(shop.compiled, shop.layout, "sales", MONDAY, decision=BACK)
    assert stay(shop)["g2"] == "it is published"
    assert stay(shop)["g3"].startswith("a rollback may go to it")


def test_what_a_killed_build_committed_may_go_once_nobody_waits_for_it(shop: Shop) -> None:
    """It was killed after one view's commit and before its record: no run will ever publish it."""
    name = f"{NOW - DAY:{STAMP}}-{'a' * 12}"
    shop.build(0, 3, name, publish=False)
    assert stay(shop, now=NOW)[name] == "its run may still publish it: it is newer than what is published"
    assert stay(shop, now=NOW + timedelta(days=1))[name] == ""
    forgotten = retention.forget_generations(
        shop.layout, keep=1, actor="x", reason="x", now=NOW + timedelta(days=1)
    )
    assert name in {each.generation for each in forgotten}


def test_age_counts_from_when_it_was_replaced(shop: Shop) -> None:
    """A year-old generation that was served until this morning is this morning's."""
    shop.state(Act.PUBLISH, epoch=9, interval=DAYS[0], generation="g4", rows=0, certified=True, at=NOW)
    assert (
        stay(shop, keep=0, days=2, now=NOW + timedelta(days=1))["g3"]
        == "it was replaced less than 2 days ago"
    )
    assert stay(shop, keep=0, days=2, now=NOW + timedelta(days=3))["g3"] == ""
    assert stay(shop, keep=0, days=2, now=NOW + timedelta(days=1))["red"].startswith("its run may")


names = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=9)


@given(history=names, keep=st.integers(0, 4))
def test_what_is_published_and_the_last_before_it_always_stay(history: list[str], keep: int) -> None:
    """Whatever was published, rolled back and published again."""
    said = [
        Statement(
            Act.PUBLISH, "v/1", epoch=at, interval=DAYS[0], generation=name, seq=at, at=START + at * DAY
        )
        for at, name in enumerate(history)
    ]
    held = [StoredGeneration("v/1", DAYS[0], name, 1, START) for name in set(history)]
    found = decide_retention(fold_statements(said, 9), held, keep=keep, now=NOW)
    free = {each.kept.generation for each in found if each.free}
    assert history[-1] not in free
    assert len(set(history)) - len(free) == min(len(set(history)), keep + 1)
    more = decide_retention(fold_statements(said, 9), held, keep=keep + 1, now=NOW)
    assert {each.kept.generation for each in more if each.free} <= free


def test_what_was_withdrawn_takes_no_place_of_what_a_rollback_may_go_to() -> None:
    """Nobody may serve it: the only way back was free to go."""
    told = [
        Statement(Act.PUBLISH, "v/1", epoch=at, interval=DAYS[0], generation=name, seq=at, at=START)
        for at, name in enumerate(["g0", "g1", "lost"])
    ]
    told.append(Statement(Act.WITHDRAW, "v/1", interval=DAYS[0], generation="lost", seq=3, at=START))
    told.append(Statement(Act.PUBLISH, "v/1", epoch=9, interval=DAYS[0], generation="g2", seq=4, at=START))
    held = [StoredGeneration("v/1", DAYS[0], name, 1, START) for name in ("g0", "g1", "g2")]
    found = decide_retention(fold_statements(told, 4), held, keep=1, now=NOW)
    assert {each.kept.generation for each in found if each.free} == {"g0"}


def test_what_is_forgotten_is_served_by_nobody_and_leaves_in_two_steps(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Manifest, table, disk, in this order: cut short anywhere nothing is named that is not there."""
    root = shop.layout.generations(shop.view)
    build(shop, "sleeping", cut=3, publish=False)
    before = read_merged_answer(shop.compiled, shop.view, shop.layout).table
    forgotten = retention.forget_generations(shop.layout, keep=1, actor="cli:ada", reason="full disk")
    assert {each.generation for each in forgotten} == {"g0", "g1", "red"}
    with pytest.raises(PublishRefused, match="is forgotten"):
        roll_back_interval(shop.compiled, shop.layout, "sales", MONDAY, to="g1", decision=BACK)

    swept = retention.clean_generations(shop.layout, shop.manifest.read())
    assert swept.left == {"files of forgotten generations: a reader may have pinned them": 3}
    assert set(Table.open(root).read(["generation"])["generation"].to_pylist()) == {
        "g2",
        "g3",
        "fresh",
        "sleeping",
    }
    assert len(list(root.glob("*.parquet"))) == 7
    assert read_merged_answer(shop.compiled, shop.view, shop.layout).table.equals(before)
    assert {each.generation.id: each.fate.value for each in past_of(shop)}["g0"] == "forgotten"

    monkeypatch.setattr(retention, "PINNED_HOURS", 0)
    assert retention.clean_generations(shop.layout, shop.manifest.read()).deleted == {
        "of forgotten generations": 3
    }
    assert len(list(root.glob("*.parquet"))) == 4
    assert retention.clean_generations(shop.layout, shop.manifest.read()).deleted == {}
    assert cleaning.PINNED_HOURS == 24


def test_a_run_that_slept_cannot_publish_what_was_forgotten(shop: Shop) -> None:
    """It expects what is published, and its certificate is green."""
    build(shop, "asleep", cut=3, publish=False, at=NOW - DAY)
    retention.forget_generations(shop.layout, keep=1, actor="upkeep", reason="test")
    with pytest.raises(PublishRefused, match="is forgotten"):
        publishing.publish_run(shop.compiled, shop.layout, "run-asleep")


def test_the_past_is_answered_without_what_was_forgotten_or_refused(shop: Shop) -> None:
    """As of an epoch slices tell the same; what was served then can no longer be read."""
    before = read_merged_answer(shop.compiled, shop.view, shop.layout, ReadRequest(as_of=1)).table.select(
        ["customer", "orders", "total"]
    )
    retention.forget_generations(shop.layout, keep=0, actor="cli:ada", reason="full disk")
    retention.clean_generations(shop.layout, shop.manifest.read())
    after = read_merged_answer(shop.compiled, shop.view, shop.layout, ReadRequest(as_of=1)).table.select(
        ["customer", "orders", "total"]
    )
    assert after.equals(before)
    with pytest.raises(BadRange, match="can no longer be read"):
        read_merged_answer(
            shop.compiled, shop.view, shop.layout, ReadRequest(served_at=past_of(shop)[1].published[0].at)
        )


def test_upkeep_keeps_as_many_as_the_definition_says(shop: Shop) -> None:
    """And all of them where it says nothing."""
    assert "forgotten" not in str(maintain_tables(shop.compiled, shop.layout))
    plain = sales_pipeline().definition
    wish = compile_pipeline(replace(plain, batch=replace(plain.batch, keep_generations=2)))
    assert wish.views[0].id == shop.view.id
    assert "forgotten: 2 generations" in str(maintain_tables(wish, shop.layout))
    assert {each.generation.id for each in past_of(shop) if each.fate.value == "forgotten"} == {"g0", "red"}


@pytest.mark.everywhere
def test_the_command_shows_first_and_deletes_when_told(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody deletes by looking."""
    assert main(["retention", "shop"]) == 0
    told = capsys.readouterr().out
    assert "3 of 6 generations may be deleted, 3 rows" in told
    assert "1 stay: it is published" in told
    assert main(["retention", "shop", "--delete"]) == 2
    assert main(["retention", "shop", "--older-than", "soon"]) == 3
    capsys.readouterr()
    assert main(["retention", "shop", "--delete", "--reason", "full disk"]) == 0
    assert "Forgotten: 3 generations." in capsys.readouterr().out
    assert main(["retention", "shop"]) == 0
    assert "0 of 3 generations may be deleted" in capsys.readouterr().out
