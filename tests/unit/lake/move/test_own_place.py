"""The warehouse of one pipeline's own variable, moved: nothing that is said of it names the shared one."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.shop import Shop

from seamline.cli import main
from seamline.cli.machine_checks import check_moved
from seamline.lake.move.moving import plan_move
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.control_table import ControlTable
from seamline.model.errors import BadRange, MovedAway

pytestmark = pytest.mark.slow


@pytest.fixture
def shared(shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The shared warehouse, which has another pipeline; where the shop is, its own variable says."""
    monkeypatch.setenv("SEAMLINE_WAREHOUSE", str(tmp_path / "shared"))
    monkeypatch.setenv("SEAMLINE_WAREHOUSE_SHOP", str(shop.warehouse))
    ControlTable.ensure(Layout(tmp_path / "shared", "others"))
    return tmp_path / "shared"


def test_a_move_of_its_own_warehouse_names_its_variable(
    shop: Shop,
    shared: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Whoever sets the shared one, as told, would lose sight of all other pipelines."""
    before = sorted(shared.rglob("*"))
    assert main(["migrate", "shop", "--to", str(tmp_path / "other")]) == 0
    told = capsys.readouterr().out
    assert f"set SEAMLINE_WAREHOUSE_SHOP={tmp_path / 'other'} wherever" in told
    assert "seamline migrate shop --undo" in told and "SEAMLINE_WAREHOUSE=" not in told
    assert main(["stream", "start", "shop"]) == MovedAway.exit_code
    said = capsys.readouterr().err
    assert f"set SEAMLINE_WAREHOUSE_SHOP={tmp_path / 'other'}. `seamline migrate shop --undo`" in said
    [found] = check_moved(shop.warehouse)
    assert found.name == "the warehouse of shop" and "SEAMLINE_WAREHOUSE_SHOP=" in found.hint
    assert main(["migrate", "shop", "--undo"]) == 0
    assert main(["stream", "stop", "shop"]) == 0
    assert sorted(shared.rglob("*")) == before, "the shared one has nothing to do with it"


def test_the_shared_warehouse_is_moved_without_what_is_elsewhere(
    shop: Shop, shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A pipeline with a place of its own stays there."""
    assert main(["migrate", "--to", str(tmp_path / "other"), "--dry-run"]) == 0
    told = capsys.readouterr().out
    assert "others: 1 table\n" in told and "shop" not in told.replace(str(tmp_path), "")


def test_a_pipeline_of_the_shared_warehouse_is_not_moved_by_itself(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A move closes a whole place: what else is there would be closed, too."""
    for own in ("", str(shop.warehouse)):
        monkeypatch.setenv("SEAMLINE_WAREHOUSE_SHOP", own)
        assert main(["migrate", "shop", "--to", str(tmp_path / "other")]) == BadRange.exit_code
        assert "shop has no warehouse of its own" in capsys.readouterr().err
    assert main(["migrate", "--to", str(tmp_path / "other"), "--dry-run"]) == 0


def test_a_warehouse_is_not_moved_with_another_within(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be copied while it is in use, and deleted with the old place."""
    monkeypatch.setenv("SEAMLINE_WAREHOUSE_INNER", str(shop.warehouse / "inner"))
    with pytest.raises(BadRange, match="is within the one at") as refused:
        plan_move(shop.warehouse, tmp_path / "other")
    assert "`seamline migrate inner --to`" in refused.value.hint
    monkeypatch.setenv("SEAMLINE_WAREHOUSE_INNER", str(shop.warehouse.with_name("wider")))
    assert plan_move(shop.warehouse, tmp_path / "other").pipelines == {"shop": 7}
