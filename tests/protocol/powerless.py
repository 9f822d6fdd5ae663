"""What a power cut leaves of the shipped tables, and what a start makes of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.protocol.shipped import VIEW, Mortal, Stream, caught_up

from seamline.lake.log import pinned_log
from seamline.lake.log.master import Master
from seamline.lake.read.answer_cache import REMEMBERED
from seamline.lake.read.merged_read import read_merged_answer
from seamline.lake.storage import log_entries, log_store
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.kept import cached_table
from seamline.lake.storage.layout import Layout
from seamline.plan.maintain.repair_steps import Acceptance

TABLES = ("master", "quarantine", "ledger", "slices")
HOW = ("gone", "empty", "cut at a line", "torn", "zeros", "no file", "short file")
"""What becomes of an entry, or of the data files that it adds, where it adds any."""


def root(layout: Layout, table: str) -> Path:
    """Return a table's folder."""
    return layout.slices(VIEW) if table == "slices" else layout.table(table)


def versions(layout: Layout) -> dict[str, int]:
    """Return the newest version of each table."""
    return {table: Table.open(root(layout, table)).version for table in TABLES}


def lose(folder: Path, kept: int, how: str) -> None:
    """Let a table lose its entries above a version, as a power cut does."""
    version = kept + 1
    while (file := log_store.entry_path(folder, version)).exists():
        data = file.read_bytes()
        adds = log_entries.parse_entry(version, data).adds
        match how:
            case "gone":
                file.unlink()
            case "cut at a line":
                file.write_bytes(b"".join(data.splitlines(keepends=True)[:-1]))
            case "torn":
                file.write_bytes(data[: len(data) // 2])
            case "zeros":
                file.write_bytes(b"\0" * len(data))
            case "no file" if adds:
                for each in adds:
                    (folder / each["path"]).unlink()
            case "short file" if adds:
                for each in adds:
                    path = folder / each["path"]
                    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
            case _:
                file.write_bytes(b"")
        version += 1


def copied(stream: Stream, home: Path) -> Stream:
    """Return the same stream on a copy of its tables."""
    shutil.copytree(stream.home, home)
    return Stream(home, topic=list(stream.topic), held=list(stream.held), token=stream.token)


def right_so_far(stream: Stream) -> None:
    """Whoever reads before anybody has repaired gets an error, or no number that claims what is not there."""
    try:
        found = read_merged_answer(stream.pipeline, VIEW, stream.layout)
    except Exception:  # noqa: BLE001 - whichever engine meets the damage
        return
    counts = dict(zip(*found.table.select(["id", "n"]).to_pydict().values(), strict=True))
    held = {number for number, _ in stream.held if number <= Master.open(stream.layout).epoch}
    assert counts == {at: 1 for number, at in stream.held if number <= found.until and number in held}


def rebooted() -> None:
    """Forget what a process knows of tables: none of them outlives a power cut."""
    for known in (cached_table._held, pinned_log._known, REMEMBERED.answers):
        known.clear()


def start(
    stream: Stream, *, boot: int, patch: pytest.MonkeyPatch, acceptance: Acceptance | None = None
) -> Mortal:
    """Start as the shipped driver does, after a run of the machine of its own; or repair as a person does."""
    patch.setattr("seamline.lake.maintain.repair.read_boot_number", lambda: boot)
    rebooted()
    return stream.start(acceptance)


def reads_on(stream: Stream, writer: Mortal, patch: Callable[..., None]) -> None:
    """Catch the view up and read the topic to its end."""
    while writer.behind:
        assert caught_up(writer, patch)
    if stream.position(writer) < len(stream.topic):
        stream.epoch(writer)


def is_right(stream: Stream) -> None:
    """Compare answers, master, quarantine and ledger with the topic, all of which has been read."""
    accepted = [at for at, day in enumerate(stream.topic) if day is not None]
    refused = [at for at, day in enumerate(stream.topic) if day is None]
    assert stream.answered() == dict.fromkeys(accepted, 1)
    master = Table.open(root(stream.layout, "master")).read(["_epoch", "_offset"])
    assert sorted(master["_offset"].to_pylist()) == accepted
    rows = Table.open(root(stream.layout, "quarantine")).read(["_epoch", "_offset"]).to_pydict()
    held = [each.number for each in Master.open(stream.layout).missing(-1)]
    there = zip(rows["_epoch"], rows["_offset"], strict=True)
    assert sorted(at for number, at in there if number in held) == refused
    ledger = Table.open(root(stream.layout, "ledger")).read(["epoch"])["epoch"].to_pylist()
    assert sorted(ledger) == held


def cut(stream: Stream, kept: Mapping[str, int], how: str) -> None:
    """Let each table lose what is above a version, and every process end."""
    for table, version in kept.items():
        lose(root(stream.layout, table), version, how)
    rebooted()
