"""A process that is asked to end closes what it has opened."""

from __future__ import annotations

import os
import signal

import pytest

from seamline.runtime.interrupts import ENDING, ending_as_by_ctrl_c


@pytest.mark.parametrize("sign", ENDING)
def test_who_asks_a_process_to_end_is_heard_as_ctrl_c_is(sign: signal.Signals) -> None:
    """A job that is cancelled would leave the files of a revision behind, and a process that loads them."""
    before = signal.signal(sign, signal.SIG_DFL)
    try:
        with pytest.raises(KeyboardInterrupt), ending_as_by_ctrl_c():
            os.kill(os.getpid(), sign)
        assert signal.getsignal(sign) is signal.SIG_DFL
    finally:
        signal.signal(sign, before)


def test_what_is_ignored_stays_ignored() -> None:
    """A command that was started with nohup outlives its terminal."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with ending_as_by_ctrl_c():
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
