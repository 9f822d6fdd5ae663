"""Power is lost while another system is asked: each row keeps one answer, and what was lost is asked again."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.e2e.asked_world import opened
from tests.faults.rig.disks import Disk, run
from tests.faults.rig.network import wait_out
from tests.faults.rig.trial import Trial

from seamline.kafka.connections import KafkaConnection

CUTS, AT_ONCE = 5, 20


@pytest.mark.timeout(900)
def test_power_cuts_while_asking(
    disk: Disk, kafka: KafkaConnection, tmp_path: Path, trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker's machine stays up: it may have answers to rows that the master has lost, and reads again."""
    monkeypatch.setenv("SEAMLINE_FSYNC", "on")
    with opened(disk.place / "home", tmp_path / "code", kafka) as shop:
        lost = 0
        for _ in range(CUTS):
            shop.stack.start()
            held = shop.stack.epoch()
            while shop.stack.epoch() == held:
                shop.pay(AT_ONCE)
                wait_out(0.2)
            for _ in range(trial.chance.randint(1, 5)):
                shop.pay(AT_ONCE)
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
        shop.pay(AT_ONCE)
        shop.wait_for_answers()
        trial.prove("epochs were lost", lost)
        trial.measure("epochs lost", lost)
        trial.measure("calls a row", sum(shop.calls().values()) / len(shop.asked))
        assert {id: len(some) for id, some in shop.answers().items()} == dict.fromkeys(shop.asked, 1)
        assert shop.read_served() == shop.expect_served()
        assert shop.stack.stop() == 0
