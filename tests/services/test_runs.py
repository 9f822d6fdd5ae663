"""Servers begin with the first who asks and end with the run, however it ends; one that dies is named."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from tests.services.inner_run import WAITING, InnerRun, begin_run
from tests.services.programs import PINS, build_programs, find_program
from tests.services.run import Run
from tests.services.server import ServiceBroken

Begin = Callable[..., InnerRun]
DEAD = """
from tests.services.run import find_process

def test_that_kills(services, valkey):
    [server] = services.started()
    process = find_process(server.server)
    process.kill()
    process.wait()
    raise RuntimeError("what the test itself says")

def test_after_it(valkey):
    pass
"""


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Callable[..., InnerRun]]:
    """Begin runs, none of which outlives the test."""
    begun: list[InnerRun] = []

    def start(test: str, *words: str) -> InnerRun:
        begun.append(begin_run(tmp_path / f"run{len(begun)}", test, *words))
        return begun[-1]

    yield start
    for each in begun:
        each.process.kill()
        each.process.communicate()


def test_workers_share_a_server_that_ends_with_the_run(begin: Begin) -> None:
    """Each worker runs the test, at once; one server answers both."""
    run = begin(WAITING, "--dist=each", "--tx=2*popen")
    ports = run.started(2)
    known = run.services
    assert len(set(ports)) == len(known) == 1
    assert "2 passed" in run.finish()
    run.require_none_left(known)


def test_runs_beside_each_other_do_not_meet(begin: Begin) -> None:
    """Two people's runs on one machine; each begins to look for ports where the other does."""
    runs = [begin(WAITING) for _ in range(2)]
    ports = {port for run in runs for port in run.started(1)}
    assert len(ports) == 2
    assert ["1 passed" in run.finish() for run in runs] == [True, True]


@pytest.mark.parametrize(
    ("sign", "words"),
    [
        pytest.param(signal.SIGINT, ["-n2"], id="interrupted"),
        pytest.param(signal.SIGKILL, [], id="killed"),
        pytest.param(signal.SIGINT, [], id="interrupted-alone", marks=pytest.mark.faults),
        pytest.param(signal.SIGTERM, ["-n2"], id="terminated", marks=pytest.mark.faults),
        pytest.param(signal.SIGKILL, ["-n2"], id="killed-with-workers", marks=pytest.mark.faults),
    ],
)
def test_nothing_is_left_of_a_run_that_ends_in_the_middle(
    begin: Begin, sign: signal.Signals, words: list[str]
) -> None:
    """Ctrl-C goes to all of the terminal's processes, a kill to one."""
    run = begin(WAITING, *words)
    run.started(1)
    known = run.services
    (os.killpg if sign is signal.SIGINT else os.kill)(run.process.pid, sign)
    run.process.communicate(timeout=60)
    run.require_none_left(known)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_nothing_is_left_when_its_keeper_is_killed_too(begin: Begin) -> None:
    """Whoever kills every Python there is leaves no server behind, and no run that waits for one."""
    run = begin(WAITING)
    run.started(1)
    known = run.services
    psutil.Process(known[0].keeper[0]).kill()
    run.require_none_left(known)
    assert "The valkey server of this run" in run.finish()


def test_a_server_that_has_died_is_named_with_its_last_words(begin: Begin) -> None:
    """The test's own error says little, and the next one should not wait for an answer."""
    run = begin(DEAD)
    said = run.finish()
    assert "what the test itself says" in said
    assert "1 failed, 2 errors" in said
    assert said.count("- valkey is not there -") == 2
    assert said.count("The valkey server of this run, process") == 3
    assert "Ready to accept connections" in said


def test_a_server_that_does_not_start_is_said_once_and_for_all(tmp_path: Path) -> None:
    """The second who asks need not wait for what has failed."""
    run = Run(tmp_path, os.getpid())
    with pytest.raises(ServiceBroken, match=r"The keeper of nothing fails(.|\n)*KeyError: 'nothing'"):
        run.find("nothing")
    [home] = tmp_path.glob("nothing-*")
    with pytest.raises(ServiceBroken, match="KeyError: 'nothing'"):
        run.find("nothing")
    assert [home] == list(tmp_path.glob("nothing-*"))


def test_a_program_that_is_missing_or_old_is_said_with_its_command(tmp_path: Path) -> None:
    """A newer pin is not met by what was built before it."""
    with pytest.raises(ServiceBroken, match="`make services` builds it"):
        find_program("versitygw", tmp_path)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "versitygw").touch()
    (tmp_path / PINS.name).write_text(PINS.read_text())
    assert find_program("versitygw", tmp_path) == tmp_path / "bin" / "versitygw"
    build_programs(tmp_path)
    (tmp_path / PINS.name).write_text("github.com/versity/versitygw/cmd/versitygw@v1.0.0\n")
    with pytest.raises(ServiceBroken, match="`make services` builds it"):
        find_program("versitygw", tmp_path)
