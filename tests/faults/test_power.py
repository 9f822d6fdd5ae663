"""Power is lost under load: a file system is shut down without a flush, and a plain start goes on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from tests.faults.rig.asked_shop import opened
from tests.faults.rig.disks import Disk, run
from tests.faults.rig.epochs_until_dark import days, pipeline
from tests.faults.rig.network import wait_out
from tests.faults.rig.trial import Trial
from tests.protocol.powerless import TABLES, is_right, reads_on, root, start
from tests.protocol.shipped import Stream

from seamline.kafka.connections import KafkaConnection
from seamline.lake.log.log_lines import LINE
from seamline.lake.log.master import Master
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.log_damage import find_log_damage
from seamline.lake.storage.log_store import entry_path

CUTS = 30
ROOT = Path(__file__).parents[2]
WRITER = "tests.faults.rig.epochs_until_dark"


@pytest.mark.timeout(3600)
@pytest.mark.seeds(1)
@pytest.mark.parametrize("durability", ["replay", "fsync"])
def test_thirty_power_cuts(
    durability: str, disk: Disk, monkeypatch: pytest.MonkeyPatch, seed: int, trial: Trial
) -> None:
    """Nothing counts twice, nothing is left out, and with fsync nothing that was told is read again."""
    monkeypatch.setenv("SEAMLINE_FSYNC", "on")
    chance, stream = Random(seed), Stream(disk.place / "home", pipeline(durability))
    lost = again = lines = 0
    for cut in range(1, CUTS + 1):
        told, before = until_dark(disk, stream, durability, 2 * cut, chance)
        gone = sum(lacks(stream, table, newest) for table, newest in before.items())
        trial.prove(f"cut {cut} lost {gone} commits", gone > 0)
        stream.token = 2 * cut
        writer = start(stream, boot=cut, patch=monkeypatch)
        held = stream.position(writer)
        if durability == "fsync":
            assert held >= told
        # One more record: an epoch states how far a view has caught up.
        stream.topic = days(max(held, told) + 1)
        reads_on(stream, writer, monkeypatch.setattr)
        is_right(stream)
        lost, again = lost + gone, again + max(told - held, 0)
        lines += Master.open(stream.layout).table.txn(LINE) == stream.token
    trial.measure("commits lost", lost)
    trial.measure("records read again", again)
    trial.measure("lines", lines)
    assert lines == CUTS
    assert (again > 0) == (durability == "replay")


@pytest.mark.timeout(900)
def test_power_cuts_while_asking(
    disk: Disk, kafka: KafkaConnection, tmp_path: Path, trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker's machine stays up: it may have answers to rows that the master has lost, and reads again."""
    monkeypatch.setenv("SEAMLINE_FSYNC", "on")
    with opened(disk.place / "home", tmp_path / "code", kafka) as shop:
        lost = 0
        for _ in range(5):
            shop.stack.start()
            held = shop.stack.epoch()
            while shop.stack.epoch() == held:
                shop.pay(20)
                wait_out(0.2)
            for _ in range(trial.chance.randint(1, 5)):
                shop.pay(20)
                wait_out(trial.chance.random())
            if trial.chance.random() < 0.3:
                run("sync", "--file-system", str(disk.place))
            before = shop.stack.epoch()
            disk.lose_power()
            shop.stack.kill()
            run("umount", str(disk.place))
            disk.mount()
            gone = before - shop.stack.epoch()
            lost += gone
        shop.stack.start()
        shop.pay(20)
        shop.wait_for_answers()
        trial.prove("epochs were lost", lost)
        trial.measure("epochs lost", lost)
        trial.measure("calls a row", sum(shop.calls().values()) / len(shop.asked))
        assert {id: len(some) for id, some in shop.answers().items()} == dict.fromkeys(shop.asked, 1)
        assert shop.read_served() == shop.expect_served()
        assert shop.stack.stop() == 0


def until_dark(
    disk: Disk, stream: Stream, durability: str, token: int, chance: Random
) -> tuple[int, dict[str, int]]:
    """Let a writer hold epochs, and take its power; give where it said that the log ends, and the tables' versions."""
    told = [str(stream.home), str(token), str(len(stream.topic)), durability]
    command = [sys.executable, "-m", WRITER, *told]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as writer:
        assert writer.stdout
        ends = [int(writer.stdout.readline()) for _ in range(chance.randint(3, 10))]
        if chance.random() < 0.3:
            # Some of it reaches the disk by itself.
            run("sync", "--file-system", str(disk.place))
        wait_out(chance.random() * 3)
        before = {table: newest(stream, table) for table in TABLES}
        disk.lose_power()
        writer.kill()
        ends += [int(line) for line in writer.stdout.read().split()]
    run("umount", str(disk.place))
    disk.mount()
    return ends[-1], before


def newest(stream: Stream, table: str) -> int:
    """Return the newest version of a table that a writer is at."""
    return Table.open(root(stream.layout, table)).version


def lacks(stream: Stream, table: str, before: int) -> int:
    """Count the commits up to a version that are not there, or not whole."""
    folder = root(stream.layout, table)
    if (found := find_log_damage(folder)) is not None:
        return max(before - found.version + 1, 0)
    return sum(
        not entry_path(folder, version).exists() for version in range(max(before - 100, 0), before + 1)
    )
