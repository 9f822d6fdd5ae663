"""The folder into which a process's DuckDB spills, and the folders that killed processes have left."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import psutil

PREFIX = "seamline-spilled-"
NAMESPACE = Path("/proc/self/ns/pid")


def own_spill_folder() -> Path:
    """Name this process's folder: two processes would have files of the same names."""
    return Path(tempfile.gettempdir()) / f"{spill_folder_prefix()}{os.getpid()}"


def measure_free_space() -> int:
    """Return how many bytes are free where this process's DuckDB spills."""
    return shutil.disk_usage(own_spill_folder().parent).free


def spill_folder_prefix() -> str:
    """Return the prefix that the processes of this PID namespace share: containers may share a folder."""
    try:
        inode = NAMESPACE.stat().st_ino
    except OSError:
        inode = 0
    return f"{PREFIX}{inode}-"


@contextmanager
def open_spill_folder() -> Iterator[Path]:
    """Make a folder of its own in this process's, for as long as the block runs."""
    delete_stale_spills()
    own_spill_folder().mkdir(mode=0o700, exist_ok=True)
    found = Path(tempfile.mkdtemp(dir=own_spill_folder()))
    try:
        yield found
    finally:
        shutil.rmtree(found, ignore_errors=True)


@cache
def delete_stale_spills() -> None:
    """Delete, once per process, the folders of this user's dead processes, and that of an earlier one of our id."""
    for folder in own_spill_folder().parent.glob(f"{spill_folder_prefix()}*"):
        pid = folder.name.removeprefix(spill_folder_prefix())
        if not pid.isdecimal() or (int(pid) != os.getpid() and psutil.pid_exists(int(pid))):
            continue
        # Another worker may be at the same.
        with suppress(FileNotFoundError):
            if folder.lstat().st_uid == os.getuid() and not folder.is_symlink():
                shutil.rmtree(folder, ignore_errors=True)
