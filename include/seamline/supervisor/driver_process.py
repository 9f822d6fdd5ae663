"""The Spark driver as a child: its session, its output, and how it ends."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from seamline.supervisor.supervisor_heartbeat import Identity

LOG_BYTES = 20_000_000
LOGS_KEPT = 3


class Driver:
    """A driver in a session of its own, so that its JVM and Python workers can be ended with it."""

    def __init__(self, command: Sequence[str], log: Path, env: Mapping[str, str]) -> None:
        self.log = log
        rotate_log(log)
        with log.open("ab") as output:
            self.child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(env),
                start_new_session=True,
            )
        self.identity = Identity.of(self.child.pid)
        self.began = time.monotonic()

    @property
    def age(self) -> float:
        """Seconds since it was started."""
        return time.monotonic() - self.began

    @property
    def exit_code(self) -> int | None:
        """The code it ended with, None while it runs; negative for a signal."""
        return self.child.poll()

    def stop(self, grace: float) -> int:
        """Ask it to finish its epoch; kill it with all its own after ``grace`` seconds."""
        if self.exit_code is None:
            # The leader alone: a JVM that gets SIGTERM goes down in the middle of the epoch.
            self.child.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self.child.wait(grace)
        return self.kill()

    def kill(self) -> int:
        """End whatever is left of its session, and return the exit code."""
        end_session(self.child.pid)
        return self.child.wait()


def end_session(leader: int) -> None:
    """SIGKILL every process of a session; Spark's Python workers have groups of their own, but no session."""
    for _ in range(3):
        for process in list_session_processes(leader):
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue


def list_session_processes(leader: int) -> list[psutil.Process]:
    """List the processes of the session that ``leader`` began; empty when it was never a session's leader."""
    return [process for process in psutil.process_iter() if session_of(process.pid) == leader]


def session_of(pid: int) -> int | None:
    """Return the session of a process, None when it has gone."""
    try:
        return os.getsid(pid)
    except (ProcessLookupError, PermissionError):
        return None


def rotate_log(log: Path) -> None:
    """Move a log that has grown large out of the way, keeping the newest few."""
    if is_log_large(log):
        make_room(log)
        log.replace(log.with_name(f"{log.name}.1"))


def rotate_in_use(log: Path) -> None:
    """Rotate a log that a process goes on writing to: it is copied and emptied.

    What is written between the two is lost; the writer appends, so it goes on at the beginning.
    """
    if is_log_large(log):
        make_room(log)
        shutil.copyfile(log, log.with_name(f"{log.name}.1"))
        os.truncate(log, 0)


def is_log_large(log: Path) -> bool:
    """Return whether a log has grown large."""
    return log.exists() and log.stat().st_size >= LOG_BYTES


def make_room(log: Path) -> None:
    """Move older logs on by one; the oldest is deleted."""
    for number in range(LOGS_KEPT - 1, 0, -1):
        older = log.with_name(f"{log.name}.{number}")
        if older.exists():
            older.replace(log.with_name(f"{log.name}.{number + 1}"))


def read_log_tail(log: Path, lines: int = 15) -> str:
    """Read a log's last words."""
    if not log.exists():
        return ""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 20_000))
        return "\n".join(file.read().decode(errors="replace").splitlines()[-lines:])
