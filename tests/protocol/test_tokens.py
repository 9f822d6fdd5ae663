"""Fencing tokens when the control table comes back from a backup: it has forgotten those that it gave out since."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from shutil import copytree, rmtree

import pytest
from tests.protocol.powerless import rebooted
from tests.protocol.shipped import PIPELINE, Mortal, Stream

from seamline.lake.maintain.repair import find_contradictions
from seamline.lake.storage.delta_table import Table
from seamline.lake.tables.control_table import ControlTable
from seamline.lake.tables.fencing_tokens import newest_token
from seamline.model.errors import FenceLost

NOW = datetime(2026, 3, 1, tzinfo=UTC)
FOLDERS = ("control", "master", "quarantine", "ledger")


def started(stream: Stream, *, renewals: int = 0) -> tuple[int, Mortal]:
    """Start under the token that the control table gives out, and give the lease back; give token and driver."""
    control = ControlTable.ensure(stream.layout)
    lease = control.take("here:1:1", now=NOW)
    for _ in range(renewals):
        lease = control.renew(lease, now=NOW)
    writer = Mortal(stream.layout, PIPELINE, lease.token)
    writer.repair_ledger()
    control.release(lease)
    return lease.token, writer


@pytest.fixture
def stream(tmp_path: Path) -> Stream:
    """Four starts; control, master, quarantine and ledger were kept aside after the first."""
    stream = Stream(tmp_path / "home", topic=[0, 0, 0])
    started(stream)
    for name in FOLDERS:
        copytree(stream.layout.table(name), tmp_path / "backup" / name)
    for end in (1, 2, 3):
        stream.epoch(started(stream, renewals=4)[1], end)
    return stream


def restore(stream: Stream, *names: str) -> None:
    """Bring some tables back as they were."""
    for name in names:
        rmtree(stream.layout.table(name))
        copytree(stream.home.parent / "backup" / name, stream.layout.table(name))
    rebooted()


@pytest.mark.parametrize("back", [FOLDERS[:1], FOLDERS[:2], FOLDERS], ids="-".join)
def test_a_token_is_above_those_of_all_tables(stream: Stream, back: tuple[str, ...]) -> None:
    """A day of renewals is 17,000 versions: start after start was told that a newer writer runs."""
    carried = newest_token(stream.layout.table("master").parent)
    restore(stream, *back)
    [why] = [each for each in find_contradictions(stream.layout) if "control" in each]
    assert why.endswith(f"but the tables carry {carried}")
    token = ControlTable.ensure(stream.layout).take("here:1:1", now=NOW).token
    assert token == carried + 1
    assert not [each for each in find_contradictions(stream.layout) if "control" in each]


def test_a_control_table_that_is_gone_gives_out_higher_tokens(stream: Stream) -> None:
    """It is made anew, and its versions begin at nothing; what the stream holds is there."""
    rmtree(stream.layout.table("control"))
    rebooted()
    first, _ = started(stream)
    second, writer = started(stream)
    assert second > first
    assert stream.position(writer) == 3
    assert stream.answered() == {0: 1, 1: 1, 2: 1}


def test_no_token_is_given_out_twice(stream: Stream) -> None:
    """Nobody has carried the one before to a table: its driver may come to that yet."""
    restore(stream, "control")
    control = ControlTable.ensure(stream.layout)
    lease = control.take("here:1:1", now=NOW)
    control.release(lease)
    again = control.take("there:1:1", now=NOW)
    assert again.token == lease.token + 1
    writer = Mortal(stream.layout, PIPELINE, again.token)
    with pytest.raises(FenceLost):
        Mortal(stream.layout, PIPELINE, lease.token)
    assert writer.master.table.txn("seamline.token") == again.token


def test_a_table_that_nobody_can_open_has_no_say(stream: Stream) -> None:
    """The lease is taken, and the driver says what is wrong."""
    folder = stream.layout.table("ledger")
    for file in (folder / "_delta_log").iterdir():
        file.write_bytes(b"")
    rebooted()
    assert newest_token(folder.parent) == Table.open(stream.layout.table("master")).txn("seamline.token")
