"""A run of pytest inside a test, on tests that ask for services, with a folder of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.faults.rig.trial import eventually
from tests.services.run import ROOT, Service, living, read_record

CONFTEST = 'pytest_plugins = ["tests.services.fixtures"]\n'
OUTER = re.compile("PYTEST_|CI$")
"""Settings that are of the run around it; with CI pytest says more at the end."""
REACHABLE = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""What a shell starts in the background ignores Ctrl-C, with all that it starts in turn."""
# Tells where it is, and waits: what a person or the system ends in the middle.
WAITING = """
import os, pathlib, time

def test_waiting(valkey):
    pathlib.Path(os.environ["STARTED"], str(os.getpid())).write_text(str(valkey.port))
    while not os.path.exists(os.environ["ENOUGH"]):
        time.sleep(0.05)
"""


@dataclass(frozen=True)
class InnerRun:
    """A run of its own, in a session of its own, as a terminal has one."""

    home: Path
    process: subprocess.Popen[str]

    @property
    def services(self) -> list[Service]:
        """Return what it has started."""
        return [read_record(record) for record in (self.home / "run" / "services").glob("*.json")]

    def started(self, tests: int) -> list[str]:
        """Wait until so many of its tests wait, and return what they have told."""
        folder = self.home / "started"

        def told() -> list[str]:
            assert self.process.poll() is None, self.process.communicate()
            found = [each.read_text() for each in folder.iterdir()]
            return found if len(found) == tests and all(found) else []

        return eventually(f"{tests} tests to wait", told)

    def finish(self) -> str:
        """Let the tests that wait end, and return what the run has said."""
        (self.home / "enough").touch()
        return self.process.communicate(timeout=120)[0]

    def require_none_left(self, known: list[Service]) -> None:
        """Wait until none of these servers and keepers is there."""
        ids = [each for service in known for each in (service.keeper, service.server) if each]
        assert ids
        eventually("the servers to end", lambda: not list(living(ids)), 60)


def begin_run(home: Path, test: str, *words: str) -> InnerRun:
    """Begin a run of one file of tests."""
    home.mkdir(exist_ok=True)
    (home / "started").mkdir()
    (home / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\n")
    (home / "conftest.py").write_text(CONFTEST)
    (home / "test_inner.py").write_text(test)
    told = {"STARTED": str(home / "started"), "ENOUGH": str(home / "enough")}
    # Other plugins take longer to load than the tests to run.
    told |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "xdist", f"--basetemp={home / 'run'}"]
    command = [sys.executable, "-c", REACHABLE, *pytest]
    process = subprocess.Popen(
        [*command, *words, str(home)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=home,
        env={**{name: value for name, value in os.environ.items() if not OUTER.match(name)}, **told},
        start_new_session=True,
    )
    return InnerRun(home, process)
