"""The generations of a day, and serving an earlier one: who, why, until when."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from tests.unit.past import DAYS, build, past_of, query
from tests.unit.shop import START, Sale, Shop, opened

from seamline.cli import main
from seamline.lake.publish import publishing
from seamline.lake.publish.generation_history import roll_back_interval
from seamline.lake.publish.planning import job_of, plan_run
from seamline.lake.read.merged_read import read_merged_answer
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.fenced_commits import build_commit_properties
from seamline.lake.store.locations import Location
from seamline.lake.tables.manifest_table import ManifestTable, parse_statements
from seamline.model.errors import BadRange, NotFound, Overtaken, PublishRefused
from seamline.model.protocol.job_arguments import BuildJob
from seamline.model.protocol.manifest import Act, Statement
from seamline.model.protocol.seam import Status
from seamline.model.time.intervals import Interval
from seamline.plan.publish.generation_fates import find_predecessor
from seamline.plan.publish.publication import Decision

pytestmark = pytest.mark.slow

BACK = Decision("cli:ada", "wrong prices", rollback=True)
DAY = Interval(START, START.replace(day=2))


@pytest.fixture
def shop(tmp_path: Path, warehouse: Location, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """One day with three generations: 'one' to epoch 0, 'two' to epoch 1, and a 'red' one that was held back."""
    shop = opened(tmp_path, monkeypatch, warehouse)
    shop.epoch([Sale(1, "a", 4), Sale(2, "b", 5)], watermark=DAY.end)
    build(shop, "one", cut=0)
    shop.epoch([Sale(3, "a", 6)], watermark=DAY.end)
    build(shop, "two", cut=1)
    build(shop, "red", cut=1, passed=False, publish=False)
    return shop


def total(shop: Shop) -> dict[str, int]:
    found = read_merged_answer(shop.compiled, shop.view, shop.layout)
    return {row["customer"]: int(row["total"]) for row in found.table.to_pylist()}


def status(shop: Shop) -> Status:
    return read_merged_answer(shop.compiled, shop.view, shop.layout).intervals[DAYS[0]].status


def test_history_tells_every_generation_of_a_day(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    """Also those that nobody ever saw: why a number did not change is asked as often as why it did."""
    assert [(each.generation.id, each.fate.value) for each in past_of(shop)] == [
        ("one", "superseded"),
        ("two", "served"),
        ("red", "held back"),
    ]
    assert main(["history", "shop.sales", "2013-01-01"]) == 0
    told = capsys.readouterr().out
    assert "two  served" in told and "cut 1  2 rows" in told
    assert "by run run-two: build two" in told
    assert "certificate not passed: all: 1 too few" in told
    assert main(["history", "shop.sales", "2013-01-01", "--format", "json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["generation"], row["kept"], len(row["published"])) for row in rows] == [
        ("one", True, 1),
        ("two", True, 1),
        ("red", True, 0),
    ]


def test_a_generation_without_a_build_row_is_told_too(warehouse: Location) -> None:
    """The manifest alone says that it was served."""
    shop = Shop(warehouse)
    shop.epoch([Sale(1)])
    shop.build(0, 0, "g")
    [only] = past_of(shop)
    assert not shop.layout.table("builds").exists() and not shop.layout.table("certificates").exists()
    assert (only.generation.id, only.built, only.kept, only.fate.value) == ("g", None, True, "served")


@pytest.mark.everywhere
def test_a_rollback_serves_the_earlier_generation_and_counts_later_rows_from_speed(shop: Shop) -> None:
    """Going back loses no event: what the earlier one had not seen is in slices still."""
    assert total(shop) == {"a": 10, "b": 5}
    done = roll_back_interval(shop.compiled, shop.layout, "sales", DAY, decision=BACK)
    assert (done.generation, done.epoch, done.actor, done.reason) == ("one", 0, "cli:ada", "wrong prices")
    found = read_merged_answer(shop.compiled, shop.view, shop.layout)
    assert {
        (r["customer"], r["batch_part"], r["speed_part"], int(r["total"])) for r in found.table.to_pylist()
    } == {
        ("a", 1, 1, 10),
        ("b", 1, 0, 5),
    }
    assert (status(shop), found.final) == (Status.HELD, False)
    assert "rolled back" in found.summary()
    rows = Table.open(shop.layout.serving(shop.view)).read().to_pylist()
    assert {(row["customer"], row["certified"]) for row in rows} == {("a", False), ("b", True)}
    fates = {each.generation.id: each.fate.value for each in past_of(shop)}
    assert fates == {"one": "served", "two": "rolled back", "red": "held back"}


def test_a_second_rollback_goes_one_further_back_and_not_to_where_it_came_from() -> None:
    """Twice back from three is one, whatever was published meanwhile."""

    def told(*names: str) -> list[Statement]:
        return [Statement(Act.PUBLISH, "v/1", generation=name) for name in names]

    assert find_predecessor(told("one", "two", "three"), "three") == "two"
    assert find_predecessor(told("one", "two", "three", "two"), "two") == "one"
    assert find_predecessor(told("one", "two", "one"), "one") == ""


def test_a_rollback_passes_over_what_is_forgotten() -> None:
    """Nobody may serve it: it was withdrawn, or its files go."""
    told = [Statement(Act.PUBLISH, "v/1", interval="i", generation=name) for name in ("one", "two", "three")]
    assert find_predecessor(told, "three", {("v/1", "i", "two")}) == "one"
    assert find_predecessor(told, "three", {("v/1", "i", "two"), ("v/1", "i", "one")}) == ""
    assert find_predecessor(told, "three", {("v/2", "i", "two")}) == "two"


def test_what_was_withdrawn_is_not_what_a_rollback_goes_to(shop: Shop) -> None:
    """It was the one before; a person accepted that the log has lost epochs of it."""
    shop.state(Act.WITHDRAW, epoch=1, interval=DAYS[0], generation="two")
    build(shop, "three", cut=1)
    assert roll_back_interval(shop.compiled, shop.layout, "sales", DAY, decision=BACK).generation == "one"
    with pytest.raises(PublishRefused, match="No kept generation was published before one"):
        roll_back_interval(shop.compiled, shop.layout, "sales", DAY, decision=BACK)


@pytest.mark.parametrize(
    ("to", "why", "error"),
    [
        ("two", "is already published", PublishRefused),
        ("red", "has no passed certificate", PublishRefused),
        ("three", "no generation 'three'", NotFound),
    ],
)
def test_what_cannot_be_served_is_refused(shop: Shop, to: str, why: str, error: type[Exception]) -> None:
    """Each refusal says why, and nothing is written."""
    version = ManifestTable.ensure(shop.layout).read().version
    with pytest.raises(error, match=why):
        roll_back_interval(shop.compiled, shop.layout, "sales", DAY, to=to, decision=BACK)
    assert ManifestTable.ensure(shop.layout).read().version == version


def test_one_that_is_gone_or_below_the_floor_is_refused(shop: Shop) -> None:
    """A reader would start again for ever, or miss rows."""
    table = Table.open(shop.layout.generations(shop.view))
    table.handle.delete("generation = 'one'", commit_properties=build_commit_properties({}))
    with pytest.raises(PublishRefused, match="is gone: 0 of its 2 rows"):
        roll_back_interval(shop.compiled, shop.layout, "sales", DAY, decision=BACK)
    build(shop, "three", cut=1)
    shop.state(Act.FLOOR, epoch=2, interval=DAYS[0])
    with pytest.raises(PublishRefused, match="below the floor 2"):
        roll_back_interval(shop.compiled, shop.layout, "sales", DAY, decision=BACK)


def test_one_that_is_not_certified_is_served_only_despite_that_and_says_so(shop: Shop) -> None:
    """A person may know better; everybody after him must see it."""
    despite = replace(BACK, despite=True)
    done = roll_back_interval(shop.compiled, shop.layout, "sales", DAY, to="red", decision=despite)
    assert (done.certified, status(shop)) == (False, Status.UNCERTIFIED)
    assert query(shop, "certified") == [False, False]


def test_no_dirty_run_undoes_a_rollback_and_a_run_that_is_asked_for_does(shop: Shop) -> None:
    """Else the night's run would bring the wrong numbers back and nobody would notice."""
    roll_back_interval(shop.compiled, shop.layout, "sales", DAY, decision=BACK)

    def plan(asked: Interval | None, dirty: bool) -> tuple[list[str], list[str]]:
        found = plan_run(shop.compiled, shop.layout, asked=asked, dirty=dirty)
        return [each.reason for each in found.builds], [each.reason for each in found.left_out]

    assert plan(None, True) == ([], ["rolled back by cli:ada: wrong prices"])
    assert plan(DAY, True) == ([], ["rolled back by cli:ada: wrong prices"])
    assert plan(DAY, False) == (["asked for, 1 late row"], [])
    build(shop, "asked", cut=1)
    publishing.publish_run(shop.compiled, shop.layout, "run-asked")
    assert status(shop) is Status.CERTIFIED
    assert plan(None, True) == ([], [])


def test_a_rollback_whose_generation_is_withdrawn_holds_its_interval_still(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    """The next dirty run would publish what somebody has taken away, and nobody was told."""
    roll_back_interval(shop.compiled, shop.layout, "sales", DAY, decision=BACK)
    for name in ("one", "two"):
        shop.state(Act.WITHDRAW, epoch=1, interval=DAYS[0], generation=name)
    shop.epoch([Sale(4, "a", 1)], watermark=DAY.end)
    made = plan_run(shop.compiled, shop.layout, asked=None, dirty=True)
    assert (made.builds, [each.reason for each in made.left_out]) == (
        (),
        ["rolled back by cli:ada: wrong prices"],
    )
    assert total(shop) == {"a": 11, "b": 5}
    assert main(["history", "shop.sales", "2013-01-01"]) == 0
    assert "held since" in capsys.readouterr().out
    build(shop, "asked", cut=2)
    publishing.publish_run(shop.compiled, shop.layout, "run-asked")
    assert status(shop) is Status.CERTIFIED
    assert not shop.manifest.read().held


def test_a_run_that_was_planned_before_the_rollback_does_not_publish_over_it(shop: Shop) -> None:
    """It expects the very generation that is published again, so that alone would let it through."""
    build(shop, "early", cut=1, expected="one", publish=False)
    roll_back_interval(shop.compiled, shop.layout, "sales", DAY, decision=BACK)
    with pytest.raises(PublishRefused, match="rolled it back after the run was planned: wrong prices"):
        publishing.publish_run(shop.compiled, shop.layout, "run-early")
    assert status(shop) is Status.HELD


def test_the_command_line_rolls_back_and_releases(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    """One command each, and the status tells in between."""
    argv = ["rollback", "shop.sales", "2013-01-01", "--reason", "wrong prices"]
    assert main(argv) == 0
    assert "generation one, cut 0" in capsys.readouterr().out
    assert main(["status", "shop"]) == 0
    assert "1 rolled back" in capsys.readouterr().out
    assert main(["query", "shop.sales"]) == 0
    assert "rolled back: 2013-01-01" in capsys.readouterr().err
    assert main(["history", "shop.sales", "2013-01-01"]) == 0
    assert "held since" in capsys.readouterr().out
    assert main([*argv, "--release"]) == 0
    capsys.readouterr()
    assert main(["plan", "shop"]) == 0
    assert "1 late row" in capsys.readouterr().out
    assert main([*argv, "--release"]) == 32
    assert "is not held" in capsys.readouterr().err
    assert main(["rollback", "shop.sales", "2013-01-01T06:00", "--reason", "x"]) == BadRange.exit_code
    assert main([*argv, "--release", "--to", "one"]) == 2


def test_a_rollback_lost_to_somebody_else_is_decided_again(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stream's catch-up of a birth may commit in between."""
    real, lost = ManifestTable.commit, iter([True])

    def commit(table: ManifestTable, statements: list[Statement]) -> int:
        if next(lost, False):
            raise Overtaken("somebody was first")
        return real(table, statements)

    monkeypatch.setattr(ManifestTable, "commit", commit)
    assert roll_back_interval(shop.compiled, shop.layout, "sales", DAY, decision=BACK).generation == "one"


def test_a_job_carries_the_version_it_was_planned_on(shop: Shop) -> None:
    """Without it a build cannot be told from one that knew the rollback."""
    roll_back_interval(shop.compiled, shop.layout, "sales", DAY, decision=BACK)
    made = plan_run(shop.compiled, shop.layout, asked=DAY, dirty=False)
    job = job_of(shop.compiled, made, run="r", reason="--dash", actor="cli:ada")
    assert job.planned == ManifestTable.ensure(shop.layout).read().version
    assert BuildJob.parse(job.to_argv()) == job


def test_manifests_of_earlier_releases_are_read(warehouse: Location) -> None:
    """Their rows have no actor, and all that was published was certified."""
    [birth, _] = Shop(warehouse).manifest.statements()
    row = {**vars(birth), "actor": None, "how": None, "restated": None}
    assert parse_statements(pa.Table.from_pylist([row])) == [birth]
    old = {name: value for name, value in row.items() if name not in ("actor", "how", "restated")}
    assert parse_statements(pa.Table.from_pylist([old])) == [birth]
