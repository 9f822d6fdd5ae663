"""Tables are not made inside of a table of somebody else's, whose clean-up would delete them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from seamline.cli.machine_checks import check_neighbours
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.control_table import ControlTable
from seamline.lake.tables.occupied_places import require_free_place
from seamline.lake.tables.table_format import require_format
from seamline.model.errors import SetupError

ROW = pa.table({"n": [1]})


@pytest.mark.parametrize("place", ["lake", "lake/w", "lake/w/orders"])
def test_a_pipeline_is_not_put_into_a_table(place: str, tmp_path: Path) -> None:
    """VACUUM deletes what its table does not name, however deep."""
    write_deltalake(str(tmp_path / place), ROW)
    with pytest.raises(SetupError, match=f"{place}, which is not Seamline's"):
        require_format(Layout(tmp_path / "lake" / "w", "orders"))


def test_a_warehouse_is_not_put_into_a_pipeline(tmp_path: Path) -> None:
    """Its owner may fork, clear or copy the whole folder."""
    ControlTable.ensure(Layout(tmp_path, "orders"))
    with pytest.raises(SetupError, match="tables of a pipeline of another warehouse"):
        require_free_place(Layout(tmp_path / "orders", "more"))
    require_free_place(Layout(tmp_path, "more"))


def test_what_else_is_in_a_warehouse_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipeline of the same name in another project would be taken for ours."""
    monkeypatch.setenv("SEAMLINE_WAREHOUSE", str(tmp_path))
    ControlTable.ensure(Layout(tmp_path, "orders"))
    assert not [*check_neighbours(["orders"])]
    ControlTable.ensure(Layout(tmp_path, "theirs"))
    (tmp_path / "photos").mkdir()
    [pipelines, things] = check_neighbours(["orders"])
    assert pipelines.note and pipelines.found.endswith("not defined here: theirs")
    assert things.note and things.found.endswith("not Seamline's: photos")
    write_deltalake(str(tmp_path / "new"), ROW)
    [found] = check_neighbours(["orders", "new"])
    assert not found.good and "is inside of the Delta table" in found.found
