"""Which variable says where a pipeline's tables are."""

from __future__ import annotations

from pathlib import Path

import pytest

from seamline.lake.storage.layout import (
    Layout,
    find_warehouse,
    list_pipelines_apart,
    list_warehouses,
    locate_tables,
    name_warehouse,
    shared_warehouse,
    variable_of,
    warehouse_settings,
)
from seamline.lake.store.object_path import ObjectPath
from seamline.model.errors import SetupError
from seamline.model.protocol.warehouse_names import WarehouseName


@pytest.fixture(autouse=True)
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The shared warehouse is in a folder, that of a pipeline in a bucket."""
    monkeypatch.setenv("SEAMLINE_WAREHOUSE", str(tmp_path / "shared"))
    monkeypatch.setenv("SEAMLINE_WAREHOUSE_WEB_ORDERS", "s3://lake/orders")


def test_a_pipeline_is_where_its_own_variable_says_and_others_are_where_the_shared_one_does(
    tmp_path: Path,
) -> None:
    """Neither is to be looked for in the place of the other."""
    assert locate_tables("web_orders") == Layout(ObjectPath.parse("s3://lake/orders"), "web_orders")
    assert locate_tables("orders") == Layout(tmp_path / "shared", "orders")
    assert shared_warehouse() == tmp_path / "shared"
    assert [variable_of(name) for name in ("web_orders", "orders")] == [
        "SEAMLINE_WAREHOUSE_WEB_ORDERS",
        "SEAMLINE_WAREHOUSE",
    ]


def test_a_place_that_is_given_wins(tmp_path: Path) -> None:
    """Whoever names a warehouse in a call means that one."""
    for given in (tmp_path / "given", str(tmp_path / "given")):
        assert locate_tables("web_orders", given) == Layout(tmp_path / "given", "web_orders")


@pytest.mark.parametrize("empty", ["SEAMLINE_WAREHOUSE", "SEAMLINE_WAREHOUSE_WEB_ORDERS"])
def test_an_empty_variable_is_as_if_it_were_not_set(
    empty: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Compose files pass on what is not set as an empty text; the folder of the process is nobody's warehouse."""
    there = locate_tables("web_orders"), locate_tables("orders")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(empty, "")
    monkeypatch.setenv("SEAMLINE_WAREHOUSE_NEW", "")
    found = locate_tables("web_orders"), locate_tables("orders")
    if empty == "SEAMLINE_WAREHOUSE":
        assert found == (there[0], Layout(tmp_path / ".seamline" / "warehouse", "orders"))
    else:
        assert found == (Layout(tmp_path / "shared", "web_orders"), there[1])
    assert "new" not in list_pipelines_apart()


def test_what_is_no_pipeline_has_no_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The resident driver serves all pipelines; a name in lower case is a mistake that doctor tells of."""
    for name in ("_DRIVER", "web_orders", "9", ""):
        monkeypatch.setenv(f"SEAMLINE_WAREHOUSE_{name}", "s3://lake/other")
    assert list_pipelines_apart() == ["web_orders"]
    assert find_warehouse("_driver") == tmp_path / "shared"


def test_two_pipelines_may_share_a_place_that_is_not_the_shared_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is one warehouse: whoever moves it has to know of both variables."""
    monkeypatch.setenv("SEAMLINE_WAREHOUSE_RETURNS", "s3://lake/orders/")
    assert len(list_warehouses()) == 2
    both = ("SEAMLINE_WAREHOUSE_RETURNS", "SEAMLINE_WAREHOUSE_WEB_ORDERS")
    named = name_warehouse(find_warehouse("returns"))
    assert named == WarehouseName(both, "returns")
    assert named.set_to("/w") == f"set {both[0]}=/w and {both[1]}=/w"
    assert named.migrate("--undo") == "seamline migrate returns --undo"


def test_a_warehouse_is_named_by_the_variables_that_say_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hint that names another variable moves another pipeline's tables."""
    assert name_warehouse(tmp_path / "shared") == WarehouseName() == name_warehouse(tmp_path / "unknown")
    monkeypatch.setenv("SEAMLINE_WAREHOUSE_WEB_ORDERS", str(tmp_path / "shared"))
    named = name_warehouse(tmp_path / "shared")
    assert named == WarehouseName(("SEAMLINE_WAREHOUSE", "SEAMLINE_WAREHOUSE_WEB_ORDERS"))
    assert named.migrate("--to /x") == "seamline migrate --to /x"


def test_a_variable_that_names_no_place_is_named_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """There may be ten of them; the other pipelines are not concerned."""
    monkeypatch.setenv("SEAMLINE_WAREHOUSE_WEB_ORDERS", "ftp://lake")
    with pytest.raises(SetupError) as told:
        locate_tables("web_orders")
    assert "ftp://lake" in told.value.message
    assert told.value.hint.startswith("correct SEAMLINE_WAREHOUSE_WEB_ORDERS: name a folder")
    assert locate_tables("orders").pipeline == "orders"
    assert name_warehouse(shared_warehouse()) == WarehouseName()


def test_an_environment_is_read_in_order() -> None:
    """Which variable is named first is not to change from process to process."""
    given = {"SEAMLINE_WAREHOUSE_B": "/b", "SEAMLINE_WAREHOUSE_A": "/a", "SEAMLINE_WAREHOUSEMAN": "/x"}
    assert [*warehouse_settings(given)] == [
        "SEAMLINE_WAREHOUSE",
        "SEAMLINE_WAREHOUSE_A",
        "SEAMLINE_WAREHOUSE_B",
    ]
