"""A store that is away for long: its lease runs out, its driver ends, and both are there again when the store is."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.faults.rig.store_proxy import StoreProxy, Trouble
from tests.faults.rig.trial import eventually

from seamline.lake.storage.layout import Layout
from seamline.lake.store.locations import Location
from seamline.lake.tables.control_table import ControlTable, Desired
from seamline.runtime.processes import boot_clock_seconds
from seamline.supervisor.process import supervise
from seamline.supervisor.restart_pace import Pace
from seamline.supervisor.supervisor_heartbeat import Heartbeat

pytestmark = pytest.mark.slow


def read_beat(home: Path, token: int) -> Heartbeat | None:
    """Read the supervisor's heartbeat under a token; None if it has written none yet."""
    found = Heartbeat.read(home, "p")
    return found if found and found.token == token else None


def test_a_supervisor_waits_for_its_store(
    shaky: Location, proxy: StoreProxy, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Others may have had the stream meanwhile, so the next driver has another token; no failure is counted."""
    layout = Layout(shaky, "p")
    ControlTable.ensure(layout).want(Desired.RUNNING, actor="test", reason="", now=datetime.now(UTC))
    later, halt = [0.0], threading.Event()
    codes: list[int] = []
    tokens: list[int] = []

    def command(token: int) -> list[str]:
        tokens.append(token)
        return ["sleep", "600"]

    def run() -> None:
        codes.append(
            supervise(
                "p",
                layout,
                command=command,
                pace=Pace(tick=0.02, renew=0.1),
                stop=halt,
                clock=lambda: boot_clock_seconds() + later[0],
            )
        )

    supervising = threading.Thread(target=run)
    supervising.start()
    try:
        eventually("a driver", lambda: tokens)
        proxy.strike(Trouble.REFUSED, "/control/", times=1_000_000)
        eventually("a word of it", lambda: "did not do what it was asked" in capsys.readouterr().out)
        later[0] += 600
        first = Heartbeat.read(tmp_path, "p")
        assert first and first.driver
        eventually("the driver's end", lambda: not first.driver.alive())
        assert supervising.is_alive()
        proxy.clear()
        eventually("another driver", lambda: len(tokens) == 2)
        beat = eventually("its heartbeat", lambda: read_beat(tmp_path, tokens[1]))
        assert tokens[1] > tokens[0]
        assert (beat.strikes, "did not do what it was asked" in beat.last_error) == (0, True)
    finally:
        proxy.clear()
        halt.set()
        supervising.join(60)
    assert codes == [0]
