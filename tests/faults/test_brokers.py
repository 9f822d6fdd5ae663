"""The broker dies, freezes and is cut off under a live stream, which goes on by itself and misses nothing."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from tests.faults.rig.line import Line
from tests.faults.rig.network import Network, wait_out
from tests.faults.rig.trial import Trial, eventually
from tests.ports import free_ports

from seamline.local.broker import Broker

FROZEN, CUT, DEAD, UNDER_WAY = 60.0, 90.0, 15.0, 10.0
BACK_WITHIN = 180.0


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Broker, Network]]:
    """Run a broker behind a network of ours."""
    port, behind = free_ports(), free_ports()
    broker = Broker(tmp_path_factory.mktemp("far"), behind, free_ports(), advertised=port)
    with Network(port, behind) as network:
        broker.start()
        yield broker, network
        if broker.pid:
            os.kill(broker.pid, signal.SIGCONT)
        broker.stop()


@pytest.fixture
def line(far: tuple[Broker, Network], tmp_path: Path, seed: int) -> Iterator[Line]:
    """A supervised stream that has begun."""
    made = Line(tmp_path, far[0].connection, seed, limit=5000)
    made.send(300)
    made.supervise()
    made.await_beyond(-1)
    with made.reader:
        yield made
        made.close()


def recovers(line: Line, trial: Trial) -> None:
    """New epochs come by themselves, soon; all there is in Kafka is read once."""
    trial.measure("fixed to next committed epoch", line.await_beyond(line.stack.epoch(), BACK_WITHIN))
    beat = line.heartbeat()
    assert beat is not None
    trial.measure("strikes", beat.strikes)


def nothing_read(line: Line, seconds: float) -> bool:
    """Let a fault last so long; tell whether no record was read in it, after what was under way at first."""
    wait_out(UNDER_WAY)
    before = line.stack.offsets_read()
    wait_out(seconds - UNDER_WAY)
    return line.stack.offsets_read() == before


def settle(line: Line) -> None:
    """Let the stream come to the end, and judge."""
    line.drained()
    line.stop()
    line.require_clean()
    line.judge()


def test_a_broker_that_is_killed_and_comes_back(
    far: tuple[Broker, Network], line: Line, trial: Trial
) -> None:
    """Its log is as it was acknowledged; nobody has to help the stream."""
    broker, _ = far
    with line.flowing():
        line.await_beyond(line.stack.epoch())
        pid = broker.pid
        broker.kill()
        trial.prove(f"broker {pid} killed", broker.pid is None and pid)
        wait_out(DEAD)
        broker.start()
        recovers(line, trial)
    settle(line)


def test_a_broker_that_freezes(far: tuple[Broker, Network], line: Line, trial: Trial) -> None:
    """It accepts connections and says nothing: worse than dead."""
    broker, _ = far
    assert broker.pid
    with line.flowing():
        line.await_beyond(line.stack.epoch())
        frozen = psutil.Process(broker.pid)
        frozen.suspend()
        try:
            eventually("the broker to freeze", lambda: frozen.status() == psutil.STATUS_STOPPED)
            trial.prove(f"broker frozen for {FROZEN:g} s", nothing_read(line, FROZEN))
        finally:
            frozen.resume()
        recovers(line, trial)
    settle(line)


def test_a_network_that_is_cut(far: tuple[Broker, Network], line: Line, trial: Trial) -> None:
    """Nothing arrives and nothing is refused; what was under way arrives afterwards."""
    _, network = far
    with line.flowing():
        line.await_beyond(line.stack.epoch())
        network.cut()
        try:
            stood = nothing_read(line, CUT)
            trial.prove(f"{network.held_back} connections cut for {CUT:g} s", network.held_back and stood)
        finally:
            network.mend()
        recovers(line, trial)
    settle(line)
