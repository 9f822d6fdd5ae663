"""The servers of one run of tests: each is started by the first test that asks, whichever worker it is in."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from tests.ports import free_ports
from tests.services.server import ServiceBroken, tail

ROOT = Path(__file__).parents[2]
# Whoever needs more than one.
PORTS = {"kafka": 2}
Known = tuple[int, float]
"""A process id, and when the process began."""
# Keepers are children of the worker that was first; a child that nobody holds is complained about.
children: list[subprocess.Popen[bytes]] = []


@dataclass(frozen=True)
class Service:
    """A server as the run's folder has it, for every worker."""

    kind: str
    keeper: Known
    """The process that ends it, and when it began."""
    server: Known | None = None
    """The process that answers, and when it began."""
    log: str = ""
    data: str = ""
    """What is thrown away when it ends."""
    address: Mapping[str, Any] | None = None
    failure: str = ""
    """Why it did not start, for all who ask after the first."""

    def why_not(self) -> str:
        """Return why it cannot be used, with the last lines of its log; empty if it runs."""
        if self.server is None or find_process(self.server):
            return self.failure
        return (
            f"The {self.kind} server of this run, process {self.server[0]}, has ended. {tail(Path(self.log))}"
        )


@dataclass(frozen=True)
class Run:
    """One run of tests: the folder that its workers share, and the process that outlives them."""

    folder: Path
    process: int

    def find(self, kind: str) -> Mapping[str, Any]:
        """Return the address of a server, started now if nobody has asked yet; raises ServiceBroken if it is not up."""
        with self._alone(kind):
            record = self.folder / f"{kind}.json"
            if not record.exists():
                self._start(kind, record)
        found = read_record(record)
        if why := found.why_not():
            raise ServiceBroken(why)
        assert found.address is not None
        return found.address

    def started(self) -> list[Service]:
        """Return every server that was asked for."""
        return [read_record(record) for record in sorted(self.folder.glob("*.json"))]

    def end(self) -> None:
        """End every server, and wait until they have ended."""
        found = self.started()
        keepers, servers = [each.keeper for each in found], [each.server for each in found if each.server]
        for process in living(keepers):
            process.terminate()
        deadline = time.monotonic() + 20
        while any(living([*keepers, *servers])) and time.monotonic() < deadline:
            time.sleep(0.02)
        for process in living([*keepers, *servers]):
            process.kill()
        for each in found:
            if each.data:
                shutil.rmtree(each.data, ignore_errors=True)

    @contextmanager
    def _alone(self, kind: str) -> Iterator[None]:
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / f"{kind}.lock").open("w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield

    def _start(self, kind: str, record: Path) -> None:
        home = Path(tempfile.mkdtemp(prefix=f"{kind}-", dir=self.folder))
        first = free_ports(ports := PORTS.get(kind, 1))
        command = [sys.executable, "-m", "tests.services.keeper", kind, str(home), str(self.process)]
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        with (home / "keeper.log").open("ab") as output:
            child = subprocess.Popen(
                [*command, *map(str, range(first, first + ports))],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=output,
                cwd=ROOT,
                env=environ,
                start_new_session=True,
            )
        children.append(child)
        assert child.stdout
        with child.stdout:
            line = child.stdout.readline()
        why = f"The keeper of {kind} fails. {tail(home / 'keeper.log')}"
        broken = {"keeper": (child.pid, 0.0), "failure": why}
        fresh = record.with_suffix(".new")
        fresh.write_text(json.dumps({"kind": kind, **(json.loads(line) if line else broken)}))
        fresh.replace(record)


def read_record(record: Path) -> Service:
    """Read what is known of a server."""
    return Service(**json.loads(record.read_text()))


def find_process(known: Known) -> psutil.Process | None:
    """Return a process that runs; one of the same id that began later is another, and one to be buried has ended."""
    pid, born = known
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        if process.status() != psutil.STATUS_ZOMBIE and abs(process.create_time() - born) < 2:
            return process
    return None


def living(known: Iterable[Known]) -> Iterator[psutil.Process]:
    """Go through those processes that run."""
    for each in known:
        with suppress(psutil.NoSuchProcess):
            if process := find_process(each):
                yield process
