"""The control table: decisions are rows, and nothing that others do to the table takes one away silently."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shutil import copytree, rmtree

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from tests.unit.clocks import Clock

from seamline.lake.storage import data_files
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.fenced_commits import build_commit_properties
from seamline.lake.storage.layout import Layout
from seamline.lake.tables import decision_rows
from seamline.lake.tables.control_table import (
    APP,
    BEAT,
    PASSING,
    Control,
    ControlTable,
    Desired,
    Drained,
    Lease,
)
from seamline.lake.tables.decided import list_restatements
from seamline.model.errors import ProtocolError
from seamline.model.protocol.control import Control as State
from seamline.model.protocol.offsets import Lane

NOW = datetime(2026, 3, 1, tzinfo=UTC)
OLD = pa.schema(
    [
        ("state", pa.string()),
        ("actor", pa.string()),
        ("reason", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
    ]
)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path, "shop")


def decided(layout: Layout) -> ControlTable:
    """Decide several things, and take and renew a lease."""
    control = ControlTable.ensure(layout)
    control.want(Desired.RUNNING, actor="ada", reason="begin", now=NOW)
    control.declare_drained(Drained({Lane("t", 0): 7}, "ada", "finite"), now=NOW)
    control.restart(actor="bob", reason="again", now=NOW)
    lease = control.take("here:1:1", now=NOW)
    control.renew(lease, now=NOW + timedelta(seconds=5))
    return control


def seen(layout: Layout) -> Control:
    """Read as a process does that has never seen the table."""
    decision_rows._newest.clear()
    return ControlTable.ensure(layout).read()


def test_a_foreign_optimize_takes_nothing_away(layout: Layout) -> None:
    """Lease, wishes, holes, savepoints would all be forgotten, and a second driver started."""
    control = decided(layout)
    before = control.read()
    assert (before.desired, before.restarts, before.lease and before.lease.beat) == (Desired.RUNNING, 1, 1)
    table = DeltaTable(str(control.table.root))
    table.optimize.compact()
    table.create_checkpoint()
    table.cleanup_metadata()
    assert len(table.file_uris()) > 0
    found = seen(layout)
    assert (found.desired, found.restarts, found.drained) == (before.desired, 1, before.drained)
    assert found.lease and before.lease and found.lease.mark == before.lease.mark
    control.want(Desired.STOPPED, actor="ada", reason="", now=NOW)
    assert seen(layout).drained == before.drained


def test_a_renewal_is_a_commit_without_a_file(layout: Layout) -> None:
    """One comes every five seconds, for weeks."""
    control = decided(layout)
    version, count = control.table.version, len(list(control.table.root.glob("*.parquet")))
    lease = control.read().lease
    for _ in range(60):
        assert lease
        lease = control.renew(lease, now=NOW)
    assert control.table.version == version + 60
    assert len(list(control.table.root.glob("*.parquet"))) == count
    assert ControlTable.ensure(layout).table.txn(BEAT) == 61
    assert seen(layout).lease == lease


def test_rows_that_were_taken_away_are_missed(layout: Layout) -> None:
    """Whoever it was, and in whose name: to go by the rows that are left would forget what was decided."""
    control, ours = decided(layout), build_commit_properties({})
    DeltaTable(str(control.table.root)).restore(2, commit_properties=ours)
    with pytest.raises(ProtocolError, match="has lost decisions"):
        seen(layout)
    DeltaTable(str(control.table.root)).restore(control.table.version, commit_properties=ours)
    assert seen(layout).restarts == 1
    DeltaTable(str(control.table.root)).delete("actor = 'here:1:1'", commit_properties=ours)
    with pytest.raises(ProtocolError, match="no row of the newest decision, 4"):
        seen(layout)


def earlier(layout: Layout, **facts: object) -> Table:
    """Make a control table as an earlier release left it: the state in the newest commit's metadata."""
    table = Table.ensure(layout.table("control"), OLD)
    for number, wish in enumerate(("running", "paused")):
        row = {"state": wish, "actor": "ada", "reason": "", "at": NOW}
        file = data_files.write_data_file(
            pa.Table.from_pylist([row], schema=OLD), table.root, f"{number}.parquet"
        )
        state = {
            "desired": wish,
            "actor": "ada",
            "reason": "",
            "drained": None,
            "accepted": [],
            "lease": None,
        }
        said = json.dumps({**state, **facts})
        table.append([file], txns={APP: table.version + 1}, metadata={APP: said})
    return table


def test_a_table_of_an_earlier_release_is_read_until_a_row_is_written(layout: Layout) -> None:
    """A warehouse goes on with the next release, also where somebody has packed the table in between."""
    until = {"holder": "old:1:1", "token": 2, "until": "2026-03-01T00:00:15Z"}
    table = earlier(layout, lease=until, restarts=3)
    assert seen(layout).desired is Desired.PAUSED
    DeltaTable(str(table.root)).optimize.compact()
    found = seen(layout)
    assert (found.desired, found.restarts) == (Desired.PAUSED, 3)
    assert found.lease and (found.lease.holder, found.lease.token) == ("old:1:1", 2)
    control, clock = ControlTable.ensure(layout), Clock()
    control.want(Desired.RUNNING, actor="bob", reason="", now=NOW)
    assert (seen(layout).restarts, seen(layout).desired) == (3, Desired.RUNNING)
    assert control.take("new:1:1", now=NOW, clock=clock, wait=clock.wait).token > 2
    assert sum(clock.waits) == 15
    assert sorted(table.refresh().read(["state"])["state"].to_pylist()) == [
        "lease taken",
        "paused",
        "running",
        "running",
    ]


def test_an_earlier_state_that_is_gone_is_an_error(layout: Layout) -> None:
    """Nothing decided is what a table says that was never decided on, and no other."""
    assert ControlTable.ensure(layout).read() == State()
    table = earlier(Layout(layout.warehouse, "old"))
    DeltaTable(str(table.root)).optimize.compact()
    DeltaTable(str(table.root)).create_checkpoint()
    for version in range(3):
        (table.root / "_delta_log" / f"{version:020d}.json").unlink()
    with pytest.raises(ProtocolError, match="no commit still contains the state"):
        ControlTable(Table.open(table.root)).read()


def test_upkeep_packs_old_rows_and_leaves_the_newest(layout: Layout) -> None:
    """A state in every row for ever would grow with the square of what was decided."""
    control = decided(layout)
    for number in range(12):
        control.release(control.take(f"here:{number}:1", now=NOW)) if number % 2 else control.want(
            Desired.PAUSED, actor="ada", reason=str(number), now=NOW
        )
        if lease := control.read().lease:
            control.release(lease)
    before, version = control.read(), control.table.version
    done = decision_rows.compact_decision_rows(control.decisions, passing=PASSING)
    assert done.packed["control"] > 8 and not done.refused
    assert control.table.refresh().version == version + 1
    assert seen(layout) == before
    rows = control.table.read().to_pylist()
    assert sum(row["whole"] is not None for row in rows) == 1
    assert [
        row["reason"] for row in sorted(rows, key=lambda row: row["seq"]) if row["actor"] != "here:11:1"
    ] == [
        "begin",
        "finite",
        "again",
        *map(str, range(0, 12, 2)),
    ]
    assert decision_rows.compact_decision_rows(control.decisions, passing=PASSING).packed == {}
    control.want(Desired.RUNNING, actor="ada", reason="on", now=NOW)
    assert seen(layout).desired is Desired.RUNNING


def test_what_was_restated_is_read_beside_renewals(layout: Layout) -> None:
    """Answers look at the decisions each time: a renewal must not make them read rows again."""
    control = decided(layout)
    assert list_restatements(layout) == ()
    lease = control.read().lease
    assert isinstance(lease, Lease)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decision_rows, "found_in", lambda *_: pytest.fail("a row was read"))
        control.renew(lease, now=NOW)
        assert list_restatements(layout) == ()


def test_a_decision_after_a_backup_is_not_taken_for_the_one_of_its_number(
    layout: Layout, tmp_path: Path
) -> None:
    """A process that outlives it read the decision that is gone, and would have written it again with its next."""
    place = layout.table("control")
    ControlTable.ensure(layout)
    copytree(place, tmp_path / "backup")
    ControlTable.ensure(layout).want(Desired.RUNNING, actor="ada", reason="gone", now=NOW)
    assert ControlTable.ensure(layout).read().actor == "ada"
    rmtree(place)
    copytree(tmp_path / "backup", place)
    ControlTable.ensure(layout).want(Desired.STOPPED, actor="bob", reason="since", now=NOW)
    found = ControlTable.ensure(layout).read()
    assert (found.desired, found.actor) == (Desired.STOPPED, "bob")
