"""A fork goes on with the imports that its log has registered, and knows which rows they have taken."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from seamline.lake.publish.forking import copy_imports
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.control_table import ControlTable
from seamline.lake.tables.decided import ask_for_import, list_imports
from seamline.model.protocol.epoch import Epoch, EpochKind
from seamline.model.protocol.imported.imports import Import

AT = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_fork_has_the_imports_of_its_log(tmp_path: Path) -> None:
    """One that was asked for later is none of the fork's; copied twice, as after a kill, each is there once."""
    layout, to = Layout(tmp_path, "orders"), Layout(tmp_path, "trial")
    control = ControlTable.ensure(layout)
    for id in ("one", "two"):
        ask_for_import(control, Import(id, "orders", "/lake", 5, "ada", "", AT), control.read().imports, ())
    one, _ = list_imports(layout)
    held = [Epoch(0, 1, AT, "v", kind=EpochKind.HOLE, ranges=(one.range,))]
    for _ in range(2):
        copy_imports(layout, to, held)
    assert list_imports(to) == (one,)
