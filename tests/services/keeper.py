"""Keeps one server for a run of tests: ``python -m tests.services.keeper KIND HOME RUN PORT...``.

It is a process of its own, in a session of its own, so that a Ctrl-C reaches the tests alone. It ends its server when
the run's process ends, however that ends, or when it is asked to; and when it is killed itself, the system does.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path

import psutil
from tests.services.server import Server, ServiceBroken

from seamline.runtime.stop_signals import set_when_asked

KINDS = {
    "kafka": ("broker", "start"),
    "moto": ("s3", "start_moto"),
    "postgres": ("postgres", "start"),
    "valkey": ("valkey", "start"),
    "versitygw": ("s3", "start_versitygw"),
}
"""Where the start of each kind of server is: a module of this folder, and a function of it."""


def keep(kind: str, home: Path, run: int, ports: list[int]) -> None:
    """Start a server, tell of it in one line, and end it when the run is over.

    Its logs are in ``home``; its data are elsewhere, where another user may come in, and are thrown away.
    """
    over = threading.Event()
    set_when_asked(over)
    module, name = KINDS[kind]
    start = getattr(import_module(f"tests.services.{module}"), name)
    data = Path(tempfile.mkdtemp(prefix=f"seamline-{kind}-"))
    try:
        server = start(home, data, *ports)
        with ended(server):
            address = dict(server.address)
            tell(server=identify(server.pid), address=address, log=str(server.log), data=str(data))
            for pid in (run, server.pid):
                threading.Thread(target=watch, args=(pid, over), daemon=True).start()
            over.wait()
    except ServiceBroken as error:
        tell(failure=str(error))
    finally:
        shutil.rmtree(data, ignore_errors=True)


def watch(pid: int, over: threading.Event) -> None:
    """Wait until a process has ended, and say so."""
    with suppress(psutil.NoSuchProcess):
        psutil.Process(pid).wait()
    over.set()


@contextmanager
def ended(server: Server) -> Iterator[None]:
    """End a server at once, whatever has happened meanwhile."""
    try:
        yield
    finally:
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(server.pid)
            process.send_signal(server.sign)
            with suppress(psutil.TimeoutExpired):
                process.wait(10)
            if process.is_running():
                process.kill()


def identify(pid: int) -> tuple[int, float]:
    """Return a process id with when it began, by which it is told from a later process of the same id."""
    return pid, psutil.Process(pid).create_time()


def tell(**what: object) -> None:
    """Tell who has started this process, who listens for one line."""
    print(json.dumps({"keeper": identify(os.getpid()), **what}), flush=True)
    os.dup2(2, 1)


if __name__ == "__main__":
    keep(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), list(map(int, sys.argv[4:])))
