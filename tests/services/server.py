"""A server that was started for tests: its process, its log, and whether it answers."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PATIENCE = 60.0
TIED = Path(__file__).with_name("tied.py")


class ServiceBroken(Exception):
    """A server of the tests does not start, or has ended; the message has the last lines of its log."""


@dataclass(frozen=True)
class Server:
    """What runs, as its kind has started it."""

    pid: int
    """The process that answers."""
    address: Mapping[str, Any]
    """What its clients need, in the words of tests/services/addresses.py."""
    log: Path
    """Where it writes what it has to say."""
    sign: signal.Signals = signal.SIGKILL
    """How it is ended at once: its data are thrown away."""


def tie(
    sign: signal.Signals = signal.SIGKILL, user: int | None = None, group: int | None = None
) -> list[str]:
    """Return what goes before a command, for it to end with this process."""
    who = [os.getuid() if user is None else user, os.getgid() if group is None else group]
    return [sys.executable, "-I", "-S", str(TIED), *map(str, [os.getpid(), int(sign), *who])]


def launch(log: Path, command: list[str], cwd: Path | None = None) -> subprocess.Popen[bytes]:
    """Start a command, tied, with its output in ``log``."""
    with log.open("ab") as output:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=cwd or log.parent
        )


def require_answer(name: str, child: subprocess.Popen[bytes], log: Path, answers: Callable[[], bool]) -> None:
    """Wait until a server answers; raises ServiceBroken if it ends before, or takes too long."""
    deadline = time.monotonic() + PATIENCE
    while not answers():
        if child.poll() is not None:
            raise ServiceBroken(f"{name} exited with {child.returncode} while it was starting.\n{tail(log)}")
        if time.monotonic() > deadline:
            raise ServiceBroken(f"{name} does not answer after {PATIENCE:g} s.\n{tail(log)}")
        time.sleep(0.05)


def tail(log: Path, lines: int = 20) -> str:
    """Return the last lines of a log, under the place where all of it is."""
    said = log.read_text(errors="replace").splitlines() if log.exists() else []
    return "\n".join([f"The last lines of {log}:", *(said[-lines:] or ["(it has said nothing)"])])


def make_password() -> str:
    """Make a password that no other run's server has, so that nobody talks to the wrong one."""
    return secrets.token_hex(12)
