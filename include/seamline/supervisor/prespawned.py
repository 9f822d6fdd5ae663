"""A process that waits for a build: it has imported what one needs, and has its session with the resident driver.

A client of that driver spends most of its seconds on both. The driver keeps one such process. It serves one build,
in the environment and folder of whoever asks and with his code and output, and ends; another takes its place. Where
none waits, or it is of other code, the asker starts a process of his own. Only processes of the same user meet here.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TextIO

import psutil

import seamline
from seamline.runtime.private_folder import private_folder
from seamline.supervisor.job_files import find_job_file

LOOKS_EVERY = 5.0
ANSWERS_WITHIN = 5.0
AGAIN_AFTER = 60.0
"""Seconds after a process has failed to get ready until another is tried."""
READY, GO, ENDED = "ready ", b"go\n", "\0exit "


class RequestedBuild:
    """A build that a waiting process does; ``lines`` yields what it prints, and then there is a ``code``."""

    def __init__(self, connection: socket.socket, output: TextIO, pid: int) -> None:
        self.connection, self.output, self.pid = connection, output, pid
        self.process = psutil.Process(pid)
        self.code: int | None = None

    def lines(self) -> Iterator[str]:
        """Return the output line by line; a process that was killed has the code of SIGKILL."""
        with self.connection, self.output:
            for line in self.output:
                if line.startswith(ENDED):
                    self.code = int(line.removeprefix(ENDED))
                    return
                yield line
        self.code = -9

    def end(self) -> None:
        """Kill the process, and what it has started."""
        with suppress(psutil.NoSuchProcess):
            for process in [self.process, *self.process.children(recursive=True)]:
                process.kill()


def submit_build(port: int, argv: Sequence[str], env: Mapping[str, str]) -> RequestedBuild | None:
    """Hand a build to the process that waits beside the driver at a port of this host; None if there is none."""
    asked = {"argv": [*argv], "env": {**env}, "cwd": str(Path.cwd()), "release": fingerprint_code()}
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    output = connection.makefile("r", encoding="utf-8", errors="replace")
    try:
        connection.settimeout(ANSWERS_WITHIN)
        connection.connect(str(find_build_socket(port)))
        connection.sendall(json.dumps(asked).encode() + b"\n")
        said = output.readline()
        if said.startswith(READY):
            # Whoever did not wait for the answer has begun without us: nothing is built twice.
            connection.sendall(GO)
            connection.settimeout(None)
            return RequestedBuild(connection, output, int(said.removeprefix(READY)))
    except (OSError, psutil.NoSuchProcess):
        pass
    output.close()
    connection.close()
    return None


def serve_one_build(
    port: int, run: Callable[[list[str]], int], code: str, *, look: Callable[[], object] = lambda: None
) -> int:
    """Wait for one build and run it; 0 without one, where who started us has gone or another waits in our place.

    ``code`` is the ``fingerprint_code`` of what this process has imported. ``look`` is called every few seconds, and
    may raise.
    """
    parent, where = os.getppid(), find_build_socket(port)
    fresh = where.with_name(f"{where.name}.{os.getpid()}")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as waiting:
        waiting.bind(str(fresh))
        waiting.listen(1)
        waiting.settimeout(LOOKS_EVERY)
        own = fresh.stat().st_ino
        fresh.replace(where)
        while True:
            try:
                connection, _ = waiting.accept()
                break
            except TimeoutError:
                if os.getppid() != parent or read_inode(where) != own:
                    return 0
                look()
        if read_inode(where) == own:
            where.unlink(missing_ok=True)
    with connection, connection.makefile("rb") as given:
        asked = json.loads(given.readline() or "{}")
        if asked.get("release") != code:
            return 0
        with suppress(OSError):
            connection.sendall(f"{READY}{os.getpid()}\n".encode())
        if given.readline() != GO:
            return 0
        os.environ.clear()
        os.environ.update(asked["env"])
        os.chdir(asked["cwd"])
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
            os.dup2(connection.fileno(), stream.fileno())
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
        try:
            ended = run(asked["argv"])
        except Exception:  # noqa: BLE001 - as the interpreter would end
            traceback.print_exc()
            ended = 1
        with suppress(BrokenPipeError):
            print(f"{ENDED}{ended}", flush=True)
        return ended


class SpareProcesses:
    """Keeps one process waiting: ``keep`` is called every few seconds, ``stop`` at the end."""

    def __init__(self, port: int, command: Sequence[str], env: Mapping[str, str]) -> None:
        self.port, self.command, self.env = port, command, dict(env)
        self.waiting: subprocess.Popen[bytes] | None = None
        self.seen = False
        self.due = 0.0
        self.busy: list[subprocess.Popen[bytes]] = []

    def ensure_waiting(self) -> None:
        """Start another process where none waits, or gets ready to; none if there is no place to wait in."""
        with suppress(OSError):
            self.poll()

    def poll(self) -> None:
        """See whether the one that waits was asked, or has died; OSError if nobody may wait."""
        self.busy = [process for process in self.busy if process.poll() is None]
        there = find_build_socket(self.port).exists()
        if self.waiting and self.waiting.poll() is not None:
            # One that was asked between two looks was never seen, and has ended well.
            if not self.seen and self.waiting.returncode:
                self.due = time.monotonic() + AGAIN_AFTER
            self.waiting = None
        elif self.waiting and self.seen and not there:
            self.busy.append(self.waiting)
            self.waiting = None
        self.seen = bool(self.waiting) and there
        if self.waiting is None and time.monotonic() >= self.due:
            self.waiting = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, env=self.env)

    def stop(self) -> None:
        """End all of them: what they build is built again."""
        for process in [*self.busy, *filter(None, [self.waiting])]:
            process.kill()
            process.wait()
        with suppress(OSError):
            find_build_socket(self.port).unlink(missing_ok=True)


def find_build_socket(port: int) -> Path:
    """Find the socket of the driver at a port, in a folder that is this user's alone; OSError if it is not."""
    return private_folder() / f"builds-{port}"


def read_inode(file: Path) -> int | None:
    """Distinguish a file from another in its place; None if there is none."""
    try:
        return file.stat().st_ino
    except FileNotFoundError:
        return None


def fingerprint_code() -> str:
    """Distinguish code from other code: of one that was edited since it was imported nothing may be built."""
    files = [*Path(seamline.__file__).parent.rglob("*.py"), find_job_file("build")]
    newest = max(file.stat().st_mtime_ns for file in files)
    return f"{sys.version} {len(files)} {newest} {Path(seamline.__file__).resolve()}"
