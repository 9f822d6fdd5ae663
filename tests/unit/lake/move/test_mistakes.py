"""What a person may do wrong with a move: never two open places, and nothing left out without a word."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.unit.lake.move.conftest import NOW
from tests.unit.shop import Shop

from seamline.cli import main
from seamline.lake.move import moving
from seamline.lake.move.moving import move_warehouse, plan_move
from seamline.lake.move.undoing import undo_move
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.store.file_copies import list_found_files
from seamline.lake.store.locations import parse_location
from seamline.lake.store.moved_warehouses import read_moved
from seamline.lake.tables.control_table import ControlTable, Desired
from seamline.model.errors import BadRange, Conflict, LeaseHeld, NotFound, SetupError
from seamline.model.protocol.moving import Moved

pytestmark = pytest.mark.slow


def is_closed(warehouse: Path) -> bool:
    """Return whether the shop's stream may not be started there."""
    return ControlTable.ensure(Layout(warehouse, "shop")).read().moved is not None


@pytest.fixture
def other(shop: Shop, tmp_path: Path) -> Path:
    """Another place, to which the shop's warehouse has moved."""
    move_warehouse(shop.warehouse, tmp_path / "other", actor="ada")
    return tmp_path / "other"


def test_a_copy_that_was_given_up_is_not_opened(shop: Shop, other: Path) -> None:
    """Its mark is of the same move: to take that back there would open both places."""
    undo_move(shop.warehouse)
    with pytest.raises(BadRange, match="a copy that was given up") as refused:
        undo_move(other)
    assert str(shop.warehouse) in refused.value.hint
    assert is_closed(other) and not is_closed(shop.warehouse)


def test_a_place_that_is_not_mounted_is_not_taken_for_one_that_is_gone(shop: Shop, other: Path) -> None:
    """Neither to take a move back, nor to begin it anew with what is old by now."""
    away = other.rename(other.with_name("unmounted"))
    with pytest.raises(SetupError, match="may not be mounted"):
        undo_move(shop.warehouse)
    with pytest.raises(BadRange, match="where nothing of it is"):
        plan_move(shop.warehouse, other)
    with pytest.raises(BadRange, match="where nothing of it is"):
        move_warehouse(shop.warehouse, other, actor="ada")
    assert is_closed(shop.warehouse) and not is_closed(away)
    undo_move(shop.warehouse, lost=True)
    assert not is_closed(shop.warehouse)


def test_a_copy_that_is_not_whole_is_no_warehouse(shop: Shop, other: Path, tmp_path: Path) -> None:
    """Whoever has set it too early is told where to go on."""
    [decided] = other.glob("_move-*.json")
    decided.unlink()
    with pytest.raises(BadRange, match="is not a whole warehouse") as refused:
        move_warehouse(other, tmp_path / "third", actor="ada")
    assert f"SEAMLINE_WAREHOUSE={shop.warehouse}" in refused.value.hint
    assert not (tmp_path / "third").exists()


def test_a_folder_that_cannot_be_listed_is_not_left_out(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest would be moved, and the old place be deleted."""
    scandir = os.scandir

    def refuse(folder: str) -> object:
        if str(folder).endswith("/master"):
            raise PermissionError(13, "Permission denied", str(folder))
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(SetupError, match="master cannot be listed: Permission denied"):
        move_warehouse(shop.warehouse, tmp_path / "other", actor="ada")


def test_tables_of_others_are_files(shop: Shop, tmp_path: Path) -> None:
    """They are carried along, and nothing is written into their folders, nor asked of them."""
    Table.ensure(shop.warehouse / "sales" / "q1", pa.schema([("x", pa.int64())]))
    (shop.warehouse / "sales" / "q1" / "_delta_log" / f"{1:020d}.json").write_text("not for us")
    (shop.warehouse / "shop" / "_status").mkdir()
    (shop.warehouse / "shop" / "_status" / "stream.json").write_text("{}")
    before = {way for way in list_found_files(shop.warehouse) if way.startswith("sales/")}
    report = move_warehouse(shop.warehouse, tmp_path / "other", actor="ada")
    assert [*report.pipelines] == ["shop"]
    found = set(list_found_files(tmp_path / "other"))
    assert before <= found
    assert "shop/_status/stream.json" not in found
    assert {way for way in list_found_files(shop.warehouse) if way.startswith("sales/")} == before


def test_a_place_inside_of_a_table_is_none(shop: Shop, tmp_path: Path) -> None:
    """Its owner's VACUUM would delete the warehouse."""
    Table.ensure(tmp_path / "table", pa.schema([("x", pa.int64())]))
    with pytest.raises(BadRange, match="inside of the Delta table"):
        move_warehouse(shop.warehouse, tmp_path / "table" / "w", actor="ada")
    Shop(tmp_path / "w2")
    with pytest.raises(BadRange, match="has the tables of a pipeline"):
        move_warehouse(shop.warehouse, tmp_path / "w2" / "shop" / "w", actor="ada")


def test_a_wish_alone_is_a_warehouse(tmp_path: Path) -> None:
    """A stream that was never started has a control table and nothing else."""
    assert ControlTable.ensure(Layout(tmp_path / "w", "shop")).read().moved is None
    move_warehouse(tmp_path / "w", tmp_path / "other", actor="ada")
    assert is_closed(tmp_path / "w") and not is_closed(tmp_path / "other")


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("s3://", "names no bucket"),
        ("s3://AKIA:se/cret@lake/w", "a user, keys or a port in it"),
        ("ftp://AKIA:se/cret@lake/w", "'ftp://lake/w' is no place"),
    ],
)
def test_a_place_is_named_without_its_keys(place: str, said: str) -> None:
    """What is refused may be in a log."""
    with pytest.raises(SetupError, match=said) as refused:
        parse_location(place)
    assert "AKIA" not in str(refused.value)


def test_a_file_is_no_place(shop: Shop, tmp_path: Path) -> None:
    """As a warehouse, and as the place to move to."""
    (tmp_path / "file").touch()
    with pytest.raises(SetupError, match="is a file"):
        move_warehouse(shop.warehouse, tmp_path / "file", actor="ada")
    with pytest.raises(SetupError, match="is a file"):
        move_warehouse(tmp_path / "file", tmp_path / "other", actor="ada")


@pytest.mark.parametrize(
    ("place", "hint"),
    [
        ("ftp://lake", "s3://, gs://"),
        ("S3://lake/w", "write s3:// in small letters"),
        ("File:///w", "write file:// in small letters"),
        ("~/w", "write the whole path"),
    ],
)
def test_a_place_that_is_nearly_one_is_told_what_it_lacks(place: str, hint: str) -> None:
    """A folder named ~ is somewhere in the working folder, and nobody looks for tables there."""
    with pytest.raises(SetupError) as refused:
        parse_location(place)
    assert place in refused.value.message and hint in refused.value.hint


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--undo", "--format", "json"], "--format json needs --to"),
        (["--dry-run"], "--dry-run needs --to"),
        (["shop", "--lost"], "--lost needs --undo"),
        (["--to", "/w", "--undo"], "pass one of them"),
        ([], "name a PIPELINE"),
    ],
)
def test_options_are_told_what_they_belong_to(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What has no effect is refused, not ignored."""
    assert main(["migrate", *words]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["", "--to", "PLACE"], "PIPELINE is empty"),
        (["", "--undo"], "PIPELINE is empty"),
        (["shop", "--to", ""], "--to is empty"),
    ],
)
def test_a_variable_of_the_shell_that_is_not_set_is_no_other_command(
    shop: Shop, words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The shared warehouse was moved for a pipeline's own, and the format migrated for a move."""
    place = tmp_path / "other"
    assert main(["migrate", *(str(place) if word == "PLACE" else word for word in words)]) == 2
    assert said in capsys.readouterr().err
    assert not place.exists() and not is_closed(shop.warehouse)


def test_a_move_is_taken_back_where_it_began(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By then the variable names the new place, and not the old one."""
    monkeypatch.setenv("SEAMLINE_WAREHOUSE", str(shop.warehouse))
    assert main(["migrate", "--undo"]) == NotFound.exit_code
    assert "there is nothing to take back" in capsys.readouterr().err
    move_warehouse(shop.warehouse, tmp_path / "other", actor="ada")
    monkeypatch.setenv("SEAMLINE_WAREHOUSE", str(tmp_path / "other"))
    assert main(["migrate", "--undo"]) == NotFound.exit_code
    assert f"set SEAMLINE_WAREHOUSE={shop.warehouse}, and run `seamline" in capsys.readouterr().err


@pytest.mark.parametrize("step", ["decide_move", "state_here"])
def test_an_attempt_that_has_slept_opens_nothing_that_was_taken_back(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """It has looked at the mark, and its lease has run out: whoever takes the move back sees nobody."""
    other, real = tmp_path / "other", getattr(moving, step)
    control = ControlTable.ensure(shop.layout)
    taken_back: list[Moved] = []

    def wake(*given: Any, **named: Any) -> Any:
        if not taken_back:
            row = {"state": "lease released", "actor": "time", "reason": "", "at": NOW}
            control.decide(row, lambda found: replace(found, lease=None), away=True)
            taken_back.append(undo_move(shop.warehouse))
        return real(*given, **named)

    monkeypatch.setattr(moving, step, wake)
    # One that was opened is closed again by the other; one that was not finds that it was given up.
    with pytest.raises(Conflict, match="was taken back") if step == "decide_move" else nullcontext():
        move_warehouse(shop.warehouse, other, actor="ada")
    assert taken_back
    assert is_closed(other) and not is_closed(shop.warehouse)
    assert read_moved(shop.warehouse) is None
    monkeypatch.undo()
    if step == "decide_move":
        # The same place may be moved to again.
        move_warehouse(shop.warehouse, other, actor="ada")
        assert not is_closed(other) and is_closed(shop.warehouse)


def let_the_lease_run_out(shop: Shop) -> None:
    """Have the lease of whoever moves the shop run out, as while its machine is suspended."""
    row = {"state": "lease released", "actor": "time", "reason": "", "at": NOW}
    ControlTable.ensure(shop.layout).decide(row, lambda found: replace(found, lease=None), away=True)


def test_who_says_that_a_place_is_lost_stops_whoever_is_about_to_open_it(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is there after all: both would be open."""
    other, real, said = tmp_path / "other", moving.decide_move, list[Moved]()

    def wake(*given: Any, **named: Any) -> Any:
        if not said:
            let_the_lease_run_out(shop)
            said.append(undo_move(shop.warehouse, lost=True))
        return real(*given, **named)

    monkeypatch.setattr(moving, "decide_move", wake)
    with pytest.raises(Conflict, match="was taken back"):
        move_warehouse(shop.warehouse, other, actor="ada")
    assert is_closed(other) and not is_closed(shop.warehouse)


def test_an_attempt_that_has_slept_takes_no_control_table_from_the_one_that_was_faster(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was decided in the new place since would be gone."""
    other, real, faster = tmp_path / "other", moving.Move.forget_control, list[str]()

    def wake(self: moving.Move, names: Iterable[str]) -> None:
        if not faster:
            faster.append("eve")
            let_the_lease_run_out(shop)
            move_warehouse(shop.warehouse, other, actor="eve")
            control = ControlTable.ensure(Layout(other, "shop"))
            control.want(Desired.PAUSED, actor="eve", reason="in use", now=NOW)
        real(self, names)

    monkeypatch.setattr(moving.Move, "forget_control", wake)
    with pytest.raises((Conflict, LeaseHeld, BadRange)):
        move_warehouse(shop.warehouse, other, actor="ada")
    assert ControlTable.ensure(Layout(other, "shop")).read().desired is Desired.PAUSED


def test_an_attempt_that_has_slept_writes_no_mark_over_another_move_s(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was taken back, and another move has closed the place: nobody could get out of it any more."""
    other, third = tmp_path / "other", tmp_path / "third"
    real, slept = moving.state_finished, list[object]()

    def wake(*given: Any) -> None:
        real(*given)
        if not slept:
            slept.append("slept")
            let_the_lease_run_out(shop)
            undo_move(shop.warehouse)
            move_warehouse(shop.warehouse, third, actor="eve")

    monkeypatch.setattr(moving, "state_finished", wake)
    move_warehouse(shop.warehouse, other, actor="ada")
    found = read_moved(shop.warehouse)
    assert found and found.to == str(third)
    assert is_closed(other) and not is_closed(third)
