"""A port is given to one process of a machine, also before anybody listens on it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.ports import free_ports

ROOT = Path(__file__).parents[2]
ASK = "from tests.ports import free_ports; print(free_ports())"


def test_what_was_given_here_is_not_given_elsewhere() -> None:
    """Between the choice of a port and a broker that listens there is a second, in which another run may choose."""
    mine = free_ports(2)
    done = subprocess.run([sys.executable, "-c", ASK], cwd=ROOT, capture_output=True, text=True, check=True)
    assert int(done.stdout) not in (mine, mine + 1)
