"""The folders of drivers' sockets: of one process each, gone when it is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from seamline.spark.session import unix_sockets

HOLD = """
import sys, time
from pathlib import Path
from seamline.spark.session.unix_sockets import own_folder
print(own_folder(Path(sys.argv[1])), flush=True)
time.sleep(600)
"""


@pytest.fixture(autouse=True)
def released(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep no lock of a test."""
    monkeypatch.setattr(unix_sockets, "held", [])


def test_a_folder_lives_as_long_as_its_process(tmp_path: Path) -> None:
    """A driver that is killed cannot delete its own."""
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout
        theirs = Path(other.stdout.readline().strip())
        (theirs / ".x.sock").touch()
        ours = unix_sockets.own_folder(tmp_path)
        assert (ours.exists(), theirs.exists()) == (True, True)
        assert unix_sockets.own_folder(tmp_path) != ours and ours.exists()
        other.send_signal(signal.SIGKILL)
    unix_sockets.own_folder(tmp_path)
    assert (ours.exists(), theirs.exists()) == (True, False)


def test_a_folder_that_was_swept_before_it_was_locked_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two drivers may start in one moment."""
    lock = unix_sockets.lock_folder
    gone: list[Path] = []

    def late(folder: Path) -> int | None:
        opened = lock(folder)
        if not gone:
            gone.append(folder)
            folder.rmdir()
        return opened

    monkeypatch.setattr(unix_sockets, "lock_folder", late)
    found = unix_sockets.own_folder(tmp_path)
    assert found.exists() and [found] != gone


def test_without_a_folder_that_will_do_it_is_tcp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name may be too long for the system, a folder another's."""
    monkeypatch.setattr(unix_sockets, "private_folder", lambda: tmp_path)
    monkeypatch.setattr(unix_sockets, "LONGEST", len(os.fsencode(tmp_path)) + 20)
    made = unix_sockets.unix_socket_settings()
    assert made["spark.python.unix.domain.socket.enabled"] == "true"
    assert Path(made["spark.python.unix.domain.socket.dir"]).parent == tmp_path
    monkeypatch.setattr(unix_sockets, "LONGEST", 20)
    assert unix_sockets.unix_socket_settings() == {}
    monkeypatch.setattr(unix_sockets, "private_folder", lambda: (_ for _ in ()).throw(PermissionError()))
    assert unix_sockets.unix_socket_settings() == {}
