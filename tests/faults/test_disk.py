"""No space is left where tables or checkpoints are: nothing is half there, and once there is some it goes on."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.faults.rig.line import Line
from tests.faults.rig.network import wait_out
from tests.faults.rig.trial import Trial, eventually

from seamline.kafka.connections import KafkaConnection

PLACES = {"warehouse": "warehouse", "checkpoint": "streams"}
FULL = 20.0
LITTLE = 0.01
"""The share of a full disk that may be free again, since old files were deleted: an epoch needs more."""


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Callable[[Path], Path]]:
    """Mount small file systems, which only root can."""
    mounted: list[Path] = []

    def mount(place: Path) -> Path:
        place.mkdir(parents=True)
        command = ["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", str(place)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"a small file system needs root: {done.stderr.strip()}")
        mounted.append(place)
        return place

    yield mount
    for place in mounted:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(place: Path) -> Path:
    """Leave no byte."""
    ballast = place / "ballast"
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"\0" * 4096)
    return ballast


def free(place: Path) -> float:
    """Return the share of a file system that is free: what a process deletes of its own is free again."""
    found = os.statvfs(place)
    return found.f_bavail / found.f_blocks


@pytest.mark.parametrize("what", PLACES)
def test_a_full_disk(
    what: str,
    small: Callable[[Path], Path],
    kafka: KafkaConnection,
    tmp_path: Path,
    seed: int,
    trial: Trial,
) -> None:
    """Readers go on meanwhile; the stream says what is wrong, tries again, and is up once there is space."""
    home = tmp_path / "home"
    place = small(home / PLACES[what])
    line = Line(home, kafka, seed, trigger="300 milliseconds")
    try:
        line.send(300)
        line.supervise()
        with line.reader, line.flowing(60):
            line.await_beyond(2)
            ballast = fill(place)
            eventually("no epoch any more", lambda: stands_still(line), 120)
            asked = line.reader.asked
            wait_out(FULL)
            trial.prove(f"{what} full, {free(place):.2%} free", free(place) < LITTLE)
            assert line.reader.failure is None
            assert line.reader.asked > asked
            assert line.reader.ask() is not None
            assert line.supervisors[-1].poll() is None
            epoch = line.stack.epoch()
            ballast.unlink()
            trial.measure("space to next committed epoch", line.await_beyond(epoch + 1))
        line.drained()
        line.stop()
        line.require_clean()
        line.judge()
    finally:
        line.close()


def stands_still(line: Line) -> bool:
    """Return whether no epoch is held for a while."""
    epoch = line.stack.epoch()
    wait_out(5)
    return line.stack.epoch() == epoch
