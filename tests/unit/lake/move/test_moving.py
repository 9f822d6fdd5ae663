"""A warehouse moves whole, or not at all: whoever is killed, in the way, or damages a file."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.unit.lake.move.conftest import NOW
from tests.unit.shop import DAY, START, Sale, Shop

from seamline import read
from seamline.cli import main
from seamline.cli.machine_checks import check_moved
from seamline.lake.log.master import Master
from seamline.lake.maintain.upkeep import maintain_tables
from seamline.lake.move import destination, holding, moving, transferring
from seamline.lake.move.moving import move_warehouse, plan_move
from seamline.lake.move.table_comparing import TableFacts
from seamline.lake.move.undoing import undo_move
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.store import store_probe
from seamline.lake.store.file_copies import digest_file, list_found_files
from seamline.lake.store.locations import Location, parse_location
from seamline.lake.store.moved_warehouses import decide_move, read_moved, read_origin
from seamline.lake.tables.claims_table import claim_intervals
from seamline.lake.tables.control_table import ControlTable, Desired, Lease
from seamline.lake.tables.renewing import keep_renewing
from seamline.model.errors import (
    BadRange,
    Conflict,
    DiskFull,
    FenceLost,
    IntervalRunning,
    LeaseHeld,
    MovedAway,
    NotFound,
    OutOfStep,
    SetupError,
)
from seamline.model.time.intervals import Interval
from seamline.plan.maintain.transfers import FoundFile, Transfer

pytestmark = pytest.mark.slow

Rows = list[dict[str, object]]


def answer(warehouse: Location) -> Rows:
    """Return what the shop's view answers there."""
    found: pa.Table = read("shop.sales", warehouse=warehouse)
    return sorted(found.to_pylist(), key=repr)


def move(source: Location, to: Location) -> moving.MoveReport:
    return move_warehouse(source, to, actor="ada")


def digests(warehouse: Location) -> dict[str, str]:
    """Return the digest of each file of a warehouse, but for its marks and what is written when it opens."""
    return {
        way: digest_file(warehouse / way, each.size)
        for way, each in list_found_files(warehouse).items()
        if not way.startswith("_") and way.split("/")[1] not in ("control", "manifest")
    }


def test_a_warehouse_moves_and_moves_back(shop: Shop, tmp_path: Path) -> None:
    """Every file and every answer is the same, and the stream goes on there under a newer token."""
    answered, here = answer(shop.warehouse), shop.warehouse
    place = tmp_path / "other"
    # Somebody's own table, and a file, beside the pipelines.
    Table.ensure(here / "mine", pa.schema([("x", pa.int64())]))
    (here / "shop" / "notes.txt").write_text("x")
    before = digests(here)
    token = ControlTable.ensure(shop.layout).read().token
    plan = plan_move(here, place)
    assert (plan.copied, plan.compared, plan.begun) == (plan.files, 0, False)
    assert list_found_files(place) == {}
    report = move(here, place)
    assert report.pipelines == {"shop": 15} and report.copied >= plan.copied
    assert answer(place) == answered == answer(here) != []
    assert before.items() <= digests(place).items()
    there = Layout(place, "shop")
    found = ControlTable.ensure(there).read()
    assert (found.moved, found.lease, found.desired, found.actor) == (None, None, Desired.STOPPED, "ada")
    lease = ControlTable.ensure(there).take("there", now=NOW)
    assert lease.token > token
    ControlTable.ensure(there).release(lease)
    assert move(here, place).before
    back = move(place, tmp_path / "back")
    assert back.pipelines == {"shop": 15}
    assert answer(tmp_path / "back") == answered
    assert read_moved(place) and not read_moved(tmp_path / "back")


def test_nothing_is_written_in_the_old_place(shop: Shop, tmp_path: Path) -> None:
    """Two warehouses that read the same offsets would go apart: whoever begins in the old one is told where it is."""
    shop.slices.table.fence(1)
    layout, manifest = shop.layout, shop.manifest
    manifest.read()
    move(shop.warehouse, tmp_path / "other")
    control = ControlTable.ensure(layout)
    new = ControlTable.ensure(Layout(shop.warehouse, "tea"))
    acts: list[Callable[[], object]] = [
        lambda: control.take("here:1:1", now=NOW),
        lambda: control.want(Desired.RUNNING, actor="bob", reason="", now=NOW),
        lambda: new.take("here:2:2", now=NOW),
        lambda: new.want(Desired.RUNNING, actor="airflow", reason="", now=NOW),
        lambda: claim_intervals(layout, "run", "bob", [Interval(START, START + DAY)]).__enter__(),
        lambda: shop.publish(Interval(START + DAY, START + 2 * DAY), 2, "g2", 1),
        lambda: maintain_tables(shop.compiled, layout),
    ]
    for act in acts:
        with pytest.raises(MovedAway, match=f"moved to {tmp_path / 'other'}, by ada") as told:
            act()
        assert "set SEAMLINE_WAREHOUSE=" in told.value.hint
    with pytest.raises(FenceLost):
        shop.slices.table.append([])
    assert answer(shop.warehouse) == answer(tmp_path / "other")


def test_who_decided_before_the_move_is_refused_after_it(shop: Shop, tmp_path: Path) -> None:
    """A publication that was decided on an earlier manifest would land in the old place only."""
    manifest = shop.manifest
    decided = manifest.read()
    move(shop.warehouse, tmp_path / "other")
    assert decided.published
    with pytest.raises(Exception, match="changed since"):
        manifest.commit(manifest.statements()[:1])
    with pytest.raises(MovedAway):
        manifest.decide(lambda _: manifest.statements()[:1])


def test_a_warehouse_in_use_is_not_moved(shop: Shop, tmp_path: Path) -> None:
    """A stream, and a build, are let finish; nothing is left in the new place that is in the way."""
    other = tmp_path / "other"
    control = ControlTable.ensure(shop.layout)
    lease = control.take("supervisor", now=NOW)
    with (
        keep_renewing(lambda: control.try_renew(lease), 0.01),
        pytest.raises(LeaseHeld, match="shop is in use"),
    ):
        move(shop.warehouse, other)
    control.release(lease)
    day = Interval(START, START + DAY)
    with (
        claim_intervals(shop.layout, "run", "bob", [day]),
        pytest.raises(IntervalRunning, match="shop is in use"),
    ):
        move(shop.warehouse, other)
    assert control.live_lease() is None and not control.read().moved
    assert [*list_found_files(other)] == ["_moved_from.json"]
    assert move(shop.warehouse, other).pipelines == {"shop": 15}


def is_closed(place: Location) -> bool:
    """Return whether no stream of the shop can be started in a place."""
    root = Layout(place, "shop").table("control")
    return not Table.exists(root) or ControlTable.ensure(Layout(place, "shop")).read().moved is not None


class Killed(BaseException):
    """As if the process had been killed."""


def test_a_killed_move_goes_on(shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was copied is not copied again; until somebody goes on, the stream may too."""
    other, passed = tmp_path / "other", itertools.count(1)

    def die(point: str) -> None:
        if next(passed) == 20:
            raise Killed

    with monkeypatch.context() as dying:
        dying.setattr(transferring, "hit_failpoint", die)
        with pytest.raises(Killed):
            move(shop.warehouse, other)
    assert is_closed(other) and len(list_found_files(other)) >= 20
    plan = plan_move(shop.warehouse, other)
    assert plan.begun and plan.compared >= 15 and plan.copied
    shop.slices.table.fence(9)
    shop.epoch([Sale(4 * 1440, "a", 7)])
    answered = answer(shop.warehouse)
    report = move(shop.warehouse, other)
    assert report.compared >= 15
    assert answer(other) == answered


@pytest.mark.parametrize(
    "step",
    ["state_away", "copy_until_same", "compare_tables", "decide_move", "state_here", "state_finished"],
)
def test_at_no_step_both_places_are_open(
    shop: Shop, tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever step is the last of an attempt, the next attempt finishes what was begun."""
    other, answered = tmp_path / "other", answer(shop.warehouse)
    holder = moving.Move if hasattr(moving.Move, step) else moving
    real = getattr(holder, step)

    def die(*args: object, **kwargs: object) -> None:
        real(*args, **kwargs)
        raise Killed

    with monkeypatch.context() as dying:
        dying.setattr(holder, step, die)
        with pytest.raises(Killed):
            move(shop.warehouse, other)
    assert is_closed(shop.warehouse)
    assert is_closed(other) == (step not in ("state_here", "state_finished"))
    with pytest.raises(MovedAway):
        ControlTable.ensure(shop.layout).take("here:1:1", now=NOW)
    move(shop.warehouse, other)
    assert not is_closed(other)
    assert answer(other) == answered


def test_a_move_is_not_taken_back_while_it_opens_the_new_place(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person in another terminal would open the old place, and the move the new one a moment later."""
    other, real = tmp_path / "other", moving.decide_move

    def meddled(to: Location, id: str, *, opened: bool) -> bool:
        with pytest.raises(LeaseHeld, match="shop is in use: move"):
            undo_move(shop.warehouse)
        return real(to, id, opened=opened)

    monkeypatch.setattr(holding, "RENEWED_EVERY", 0.05)
    monkeypatch.setattr(moving, "decide_move", meddled)
    move(shop.warehouse, other)
    assert is_closed(shop.warehouse) and not is_closed(other)
    assert ControlTable.ensure(shop.layout).read().lease is None


def test_a_damaged_copy_is_found(shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the same size and with other bytes: while it is written, and when the move goes on."""
    other = tmp_path / "other"
    real = transferring.copy_file

    def spoil(place: Location, to: Location, found: FoundFile) -> str:
        digest = real(place, to, found)
        if to.suffix == ".parquet":
            to.write_bytes(bytes(found.size))
        return digest

    with monkeypatch.context() as broken:
        broken.setattr(transferring, "copy_file", spoil)
        with pytest.raises(SetupError, match="its SHA-256 is another"):
            move(shop.warehouse, other)
    assert not is_closed(shop.warehouse)
    assert move(shop.warehouse, other).pipelines == {"shop": 15}
    assert answer(other) == answer(shop.warehouse)


def test_a_table_that_is_not_the_same_is_not_opened(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Digests compare files; that a table is made of those files is another question."""
    other, real = tmp_path / "other", moving.compare_tables

    def lose(source: Location, to: Location, tables: list[str], verified: set[str]) -> dict[str, TableFacts]:
        return real(source, to, tables, {way for way in verified if "000001.parquet" not in way})

    with monkeypatch.context() as broken:
        broken.setattr(moving, "compare_tables", lose)
        with pytest.raises(OutOfStep, match=r"000001\.parquet was not verified"):
            move(shop.warehouse, other)
    assert is_closed(other)


def test_a_torn_table_is_repaired_first(shop: Shop, tmp_path: Path) -> None:
    """In a bucket nobody would look for what a power cut has torn."""
    file = next((shop.warehouse / "shop" / "master").glob("*.parquet"))
    whole = file.read_bytes()
    file.write_bytes(whole[:-20])
    with pytest.raises(OutOfStep, match="start the stream"):
        move(shop.warehouse, tmp_path / "other")
    file.write_bytes(whole)
    assert not is_closed(shop.warehouse)
    move(shop.warehouse, tmp_path / "other")


def test_a_destination_must_be_empty_or_begun_from_here(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is there is never mixed with what comes."""
    used = tmp_path / "used"
    used.mkdir()
    (used / "mine.txt").write_text("x")
    with pytest.raises(BadRange, match=r"is not empty: mine\.txt is there"):
        move(shop.warehouse, used)
    for within in (shop.warehouse, shop.warehouse / "new", tmp_path):
        with pytest.raises(BadRange, match="within the other"):
            move(shop.warehouse, within)
    lax = parse_location("s3://lax/warehouse")
    with monkeypatch.context() as store:
        store.setattr(store_probe, "probe_creation", lambda _: ("2 of 8 writers were told", "use another."))
        with pytest.raises(SetupError, match="2 of 8 writers"):
            destination.begin_destination(shop.warehouse, lax, actor="ada")
    with pytest.raises(NotFound, match="There is no warehouse"):
        move(tmp_path / "nothing", tmp_path / "other")
    with monkeypatch.context() as full:
        full.setattr(destination, "find_free_bytes", lambda _: 1 << 20)
        with pytest.raises(DiskFull, match="GB free"):
            move(shop.warehouse, tmp_path / "other")
    closed = tmp_path / "closed"
    closed.touch()
    with pytest.raises(SetupError, match="is a file"):
        move(shop.warehouse, closed / "below")
    move(shop.warehouse, tmp_path / "other")
    with pytest.raises(MovedAway):
        move(shop.warehouse, tmp_path / "third")
    Shop(tmp_path / "w2")
    with pytest.raises(BadRange, match="came from"):
        move(tmp_path / "w2", tmp_path / "other")


def test_a_move_is_taken_back_as_long_as_nothing_was_done_there(shop: Shop, tmp_path: Path) -> None:
    """One of the two is closed, whichever way; what was done in the new place is never given up without a word."""
    other = tmp_path / "other"
    with pytest.raises(NotFound, match="has not moved"):
        undo_move(shop.warehouse)
    move(shop.warehouse, other)
    undo_move(shop.warehouse)
    assert not is_closed(shop.warehouse) and is_closed(other) and not read_moved(shop.warehouse)
    shop.manifest.read()
    shop.publish(Interval(START + DAY, START + 2 * DAY), 2, "g2", 0)
    with pytest.raises(BadRange, match="the rest of a warehouse that was moved"):
        move(shop.warehouse, other)
    third = tmp_path / "third"
    move(shop.warehouse, third)
    control = ControlTable.ensure(Layout(third, "shop"))
    control.want(Desired.RUNNING, actor="bob", reason="go on", now=NOW)
    with pytest.raises(BadRange, match="shop was used"):
        undo_move(shop.warehouse)
    assert is_closed(shop.warehouse) and not is_closed(third)
    control.want(Desired.STOPPED, actor="ada", reason="to move", now=NOW)
    undo_move(shop.warehouse)
    move(shop.warehouse, tmp_path / "fourth")
    Master.open(Layout(tmp_path / "fourth", "shop")).table.fence(1 << 20)
    with pytest.raises(BadRange, match="shop/master has changed there"):
        undo_move(shop.warehouse)
    undo_move(shop.warehouse, lost=True)
    assert not is_closed(shop.warehouse)
    with pytest.raises(BadRange, match="is a warehouse of its own by now"):
        move(shop.warehouse, tmp_path / "fourth")


def test_a_move_that_was_taken_back_half_way_begins_anew(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new place has a closed control table then; its history must not be opened again entry by entry."""
    other, real = tmp_path / "other", moving.open_destination

    def die(*args: object) -> None:
        raise Killed

    with monkeypatch.context() as dying:
        dying.setattr(moving, "open_destination", die)
        with pytest.raises(Killed):
            move(shop.warehouse, other)
        undo_move(shop.warehouse)
        shop.epoch([Sale(4 * 1440, "a", 7)])
        with pytest.raises(Killed):
            move(shop.warehouse, other)
        assert is_closed(other) and is_closed(shop.warehouse)
    move(shop.warehouse, other)
    assert answer(other) == answer(shop.warehouse)
    assert real is moving.open_destination


def test_a_control_table_of_which_a_part_was_copied_keeps_no_move_away(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A move that died over it and was taken back has left a log that does not begin: it cannot be read."""
    other, real = tmp_path / "other", transferring.carry_file

    def die(place: Location, to: Location, found: FoundFile, *, there: bool) -> transferring.Carried:
        if found.way == f"shop/control/_delta_log/{0:020d}.json":
            raise Killed
        return real(place, to, found, there=there)

    with monkeypatch.context() as dying:
        dying.setattr(transferring, "carry_file", die)
        with pytest.raises(Killed):
            move(shop.warehouse, other)
    undo_move(shop.warehouse)
    shop.epoch([Sale(4 * 1440, "a", 7)])
    move(shop.warehouse, other)
    assert answer(other) == answer(shop.warehouse)


def test_who_lost_the_lease_closes_nothing(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that slept while it copied may find a stream that has gone on."""
    control, real = ControlTable.ensure(shop.layout), moving.Move.copy

    def slept(self: moving.Move, without: Collection[str]) -> Transfer:
        row = {"state": "lease taken", "actor": "eve", "reason": "", "at": NOW}
        control.decide(row, lambda found: replace(found, lease=Lease("eve", found.token + 1)), away=True)
        return real(self, without)

    monkeypatch.setattr(moving.Move, "copy", slept)
    with pytest.raises(LeaseHeld, match="lease of shop was lost"):
        move(shop.warehouse, tmp_path / "other")
    assert not is_closed(shop.warehouse) and is_closed(tmp_path / "other")


def test_a_place_that_was_opened_meanwhile_is_left_alone(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two attempts at once: what the new warehouse writes must not look like a left-over to the slower one."""
    other, real = tmp_path / "other", moving.list_destination

    def overtaken(to: Location, without: Collection[str] = ()) -> dict[str, FoundFile]:
        there = real(to, without)
        if without and (origin := read_origin(to)):
            (to / "shop" / "new.parquet").parent.mkdir(parents=True, exist_ok=True)
            (to / "shop" / "new.parquet").touch()
            decide_move(to, origin.id, opened=True)
        return there

    monkeypatch.setattr(moving, "list_destination", overtaken)
    with pytest.raises(Conflict, match="Another process has finished this move"):
        move(shop.warehouse, other)
    assert (other / "shop" / "new.parquet").exists()


def test_files_that_go_on_changing_are_no_warehouse(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever writes there is named as far as it is known; what it wrote until then is carried along."""
    real, numbers = transferring.run_transfer, iter(range(100))

    def beside(*args: Any) -> dict[str, FoundFile]:
        report = shop.warehouse / "shop" / "reports"
        report.mkdir(exist_ok=True)
        (report / f"{next(numbers)}.html").touch()
        return real(*args)

    with monkeypatch.context() as busy:
        busy.setattr(moving, "run_transfer", beside)
        with pytest.raises(Conflict, match="still being changed"):
            move(shop.warehouse, tmp_path / "other")
    move(shop.warehouse, tmp_path / "other")
    assert len([*(tmp_path / "other" / "shop" / "reports").iterdir()]) == next(numbers)


def test_the_command_moves_shows_and_takes_back(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What it says is what a person has to know, and JSON says the same."""
    other = str(tmp_path / "other")
    for wrong in (
        [],
        ["shop", "--to", other, "--undo"],
        ["--to", other, "--undo"],
        ["--undo", "--dry-run"],
        ["shop", "--lost"],
    ):
        assert main(["migrate", *wrong]) == 2
    capsys.readouterr()
    assert main(["migrate", "--to", other, "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "shop: 7 tables" in said and said.endswith("Nothing was changed.\n")
    assert main(["migrate", "--to", other, "--dry-run", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["pipelines"] == {"shop": 7}
    assert [*check_moved(shop.warehouse)] == []
    assert main(["migrate", "--to", other]) == 0
    told = capsys.readouterr()
    assert "shop: kept still" in told.err and " of " in told.err
    assert "15 rows in the master" in told.out and f"set SEAMLINE_WAREHOUSE={other}" in told.out
    assert main(["stream", "start", "shop"]) == MovedAway.exit_code == 50
    assert f"was moved to {other}" in capsys.readouterr().err
    assert main(["status", "shop"]) == 0
    assert f"moved to {other} by cli:" in capsys.readouterr().out
    [found] = check_moved(shop.warehouse)
    assert not found.good and f"SEAMLINE_WAREHOUSE={other}" in found.hint
    assert main(["migrate", "--to", other, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["before"] is True
    assert main(["migrate", "--undo"]) == 0
    assert "is open again" in capsys.readouterr().out
    assert main(["stream", "stop", "shop"]) == 0
