"""The process that waits for a build beside the resident driver: handed over, passed over, killed, replaced."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from seamline.supervisor import prespawned
from seamline.supervisor.prespawned import RequestedBuild, SpareProcesses, find_build_socket, submit_build

PORT = 15099
WAITS = """
import os, sys, time
from seamline.supervisor.prespawned import fingerprint_code, serve_one_build

def run(argv):
    print("argv", *argv)
    print("in", os.getcwd(), os.environ.get("WHO"), os.environ.get("DRIVERS_OWN"))
    print("to stderr", file=sys.stderr)
    if argv == ["raise"]:
        raise ValueError("as it was")
    if argv == ["hang"]:
        time.sleep(600)
    return int(argv[0])

sys.exit(serve_one_build(int(sys.argv[1]), run, fingerprint_code()))
"""


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of sockets for this test, and short looks."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("DRIVERS_OWN", "secret")


@pytest.fixture
def spare() -> Iterator[SpareProcesses]:
    """A driver's keeper of one process, which waits."""
    made = SpareProcesses(PORT, [sys.executable, "-c", WAITS, str(PORT)], dict(os.environ))
    made.ensure_waiting()
    yield made
    made.stop()


def until(what: Callable[[], object], keep: Callable[[], object] = lambda: None) -> None:
    """Wait for a condition."""
    end = time.monotonic() + 30
    while not what():
        keep()
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.02)


def handed(argv: list[str], **env: str) -> RequestedBuild:
    """Hand a build to the process that waits."""
    until(find_build_socket(PORT).exists)
    asked = submit_build(PORT, argv, {"WHO": "ada", **env})
    assert asked is not None
    return asked


def test_a_build_runs_as_if_it_were_the_askers_own(spare: SpareProcesses) -> None:
    """His environment and nothing of the driver's, his folder, both outputs, the code."""
    asked = handed(["7", "b c"])
    assert [line.rstrip() for line in asked.lines()] == [
        "argv 7 b c",
        f"in {Path.cwd()} ada None",
        "to stderr",
    ]
    assert asked.code == 7


def test_an_error_is_told_as_the_interpreter_tells_it(spare: SpareProcesses) -> None:
    """A build's log ends with it."""
    asked = handed(["raise"])
    assert [*asked.lines()][-1] == "ValueError: as it was\n"
    assert asked.code == 1


def test_one_process_serves_one_build_and_another_takes_its_place(spare: SpareProcesses) -> None:
    """What a build leaves in its process, the next does not find."""
    spare.ensure_waiting()
    first = handed(["0"])
    assert submit_build(PORT, ["0"], {}) is None
    until(find_build_socket(PORT).exists, spare.ensure_waiting)
    second = handed(["0"])
    assert first.pid != second.pid
    assert [*first.lines()] and [*second.lines()]
    assert (first.code, second.code) == (0, 0)


def test_a_build_that_is_ended_is_dead(spare: SpareProcesses) -> None:
    """Its task was cleared: what it would write is wanted no more."""
    asked = handed(["hang"])
    lines = asked.lines()
    assert next(lines).startswith("argv")
    asked.end()
    assert len([*lines]) <= 2
    assert asked.code == -signal.SIGKILL
    assert spare.waiting
    assert spare.waiting.wait(30) == -signal.SIGKILL


def test_a_process_of_other_code_builds_nothing(
    spare: SpareProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was started before an upgrade; the next one is of the new code."""
    until(find_build_socket(PORT).exists)
    monkeypatch.setattr(prespawned, "fingerprint_code", lambda: "newer")
    assert submit_build(PORT, ["0"], {}) is None


def test_where_nobody_waits_nobody_is_asked(tmp_path: Path) -> None:
    """No driver, one that has died, or a folder that others may look into."""
    assert submit_build(PORT, ["0"], {}) is None
    died = subprocess.Popen([sys.executable, "-c", WAITS, str(PORT)])
    until(find_build_socket(PORT).exists)
    died.kill()
    died.wait()
    assert find_build_socket(PORT).exists()
    assert submit_build(PORT, ["0"], {}) is None
    find_build_socket(PORT).parent.chmod(0o755)
    with pytest.raises(PermissionError):
        find_build_socket(PORT)
    assert submit_build(PORT, ["0"], {}) is None


def test_it_ends_with_the_driver(tmp_path: Path) -> None:
    """Killed, the driver can end nobody: who waits looks after himself."""
    text = (
        "import os, subprocess, sys, time; subprocess.Popen([sys.executable, '-c', sys.argv[1], sys.argv[2]]);"
        "time.sleep(600)"
    )
    waits = WAITS.replace(
        "sys.exit(", "import seamline.supervisor.prespawned as p; p.LOOKS_EVERY = 0.1; sys.exit("
    )
    driver = subprocess.Popen([sys.executable, "-c", text, waits, str(PORT)])
    until(find_build_socket(PORT).exists)
    [child] = psutil.Process(driver.pid).children()
    driver.kill()
    driver.wait()
    until(lambda: not child.is_running())


def test_a_process_that_cannot_get_ready_is_not_started_all_the_time() -> None:
    """Its words are in the driver's log; builds have clients of their own meanwhile."""
    spare = SpareProcesses(PORT, [sys.executable, "-c", "raise SystemExit(3)"], dict(os.environ))
    spare.ensure_waiting()
    assert spare.waiting
    spare.waiting.wait()
    for _ in range(3):
        spare.ensure_waiting()
    assert spare.waiting is None
    spare.stop()


def test_who_did_not_wait_for_the_answer_is_not_built_for(spare: SpareProcesses) -> None:
    """He has started a client of his own by then, and a run would be built twice."""
    until(find_build_socket(PORT).exists)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asker:
        asker.connect(str(find_build_socket(PORT)))
        asked = {"argv": ["0"], "env": {}, "cwd": "/", "release": prespawned.fingerprint_code()}
        asker.sendall(json.dumps(asked).encode() + b"\n")
        with asker.makefile("r") as said:
            assert said.readline().startswith(prespawned.READY)
            asker.shutdown(socket.SHUT_WR)
            assert said.read() == ""
    assert spare.waiting
    assert spare.waiting.wait(30) == 0


def test_a_driver_without_a_place_to_wait_in_goes_on(spare: SpareProcesses) -> None:
    """Another user may have made the folder first: builds start clients of their own then."""
    until(find_build_socket(PORT).exists)
    find_build_socket(PORT).parent.chmod(0o755)
    spare.ensure_waiting()
    spare.stop()
    assert spare.waiting
    assert spare.waiting.poll() is not None
