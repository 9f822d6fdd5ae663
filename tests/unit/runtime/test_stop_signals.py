"""A process that is asked to end hears it, whatever it is doing."""

from __future__ import annotations

import subprocess
import sys

import pytest

from seamline.runtime.stop_signals import ASKED

BETWEEN = """
import os, signal, sys, threading
from seamline.runtime.stop_signals import set_when_asked
event = threading.Event()
set_when_asked(event)
with event._cond:
    os.kill(os.getpid(), int(sys.argv[1]))
sys.exit(0 if event.wait(30) else 1)
"""
"""The signal comes where ``event.wait`` holds the lock of the event."""


@pytest.mark.parametrize("sign", ASKED)
def test_a_signal_in_the_middle_of_a_wait_is_heard(sign: int) -> None:
    """A handler that set the event itself would wait for the thread that it interrupts: for ever, once in a while."""
    done = subprocess.run([sys.executable, "-c", BETWEEN, str(int(sign))], timeout=60, check=False)
    assert done.returncode == 0
