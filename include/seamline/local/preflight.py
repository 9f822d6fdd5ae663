"""What the machine must have before anything is started; stdlib only, for it runs before the installation."""

from __future__ import annotations

import platform
import shutil
import socket
import sys
from collections.abc import Iterable
from pathlib import Path

from seamline.model.errors import SetupError
from seamline.runtime.machine_memory import read_memory_limit

GB = 10**9
# Wheels of every pinned requirement exist for these; an Intel Mac lacks some.
SUPPORTED = {
    ("Linux", "x86_64"),
    ("Linux", "aarch64"),
    ("Linux", "arm64"),
    ("Darwin", "arm64"),
}


def require_platform(system: str = platform.system(), machine: str = platform.machine()) -> None:
    """Raise SetupError unless the pinned requirements exist for this system and processor."""
    if (system, machine) not in SUPPORTED:
        raise SetupError(
            f"Seamline's demo runs on Linux (x86-64, arm64) and macOS (Apple silicon); this is {system} {machine}.",
            hint="use one of those, a virtual machine, or docker-compose.yaml.",
        )


def require_virtualenv() -> None:
    """Raise SetupError if this Python cannot make virtual environments, as Debian's cannot by itself."""
    try:
        import ensurepip
        import venv
    except ImportError as missing:
        version = "{}.{}".format(*sys.version_info[:2])
        raise SetupError(
            f"Python {version} cannot make a virtual environment: {missing}.",
            hint=f"install the system's package for it (on Debian and Ubuntu python{version}-venv).",
        ) from None
    del ensurepip, venv


def require_disk(folder: Path, gigabytes: float) -> None:
    """Raise SetupError if the disk of ``folder`` has less than ``gigabytes`` (10**9 bytes) free."""
    there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    free = shutil.disk_usage(there).free
    if free < gigabytes * GB:
        raise SetupError(
            f"The disk of {folder} has {free / GB:.1f} GB free; {gigabytes:g} GB are needed.",
            hint="free some space (a demo's data are in .seamline/demo), or use a folder on another disk.",
        )


def require_memory(gigabytes: float) -> None:
    """Raise SetupError if the machine, or the container around us, has less than ``gigabytes`` (10**9 bytes)."""
    total = read_memory_limit()
    if total < gigabytes * GB:
        raise SetupError(
            f"This machine has {total / GB:.1f} GB of memory; {gigabytes:g} GB are needed.",
            hint="use a larger machine, or give the container or virtual machine more memory.",
        )


def require_free_ports(ports: Iterable[int], host: str = "127.0.0.1") -> None:
    """Raise SetupError naming every port of ``ports`` that something listens on already."""
    busy = [port for port in ports if not _is_free(host, port)]
    if busy:
        names = ", ".join(map(str, busy))
        raise SetupError(
            f"Already in use on {host}: port{'s' if len(busy) > 1 else ''} {names}.",
            hint="another demo may be running: stop it with Ctrl-C in its terminal, or stop what listens there.",
        )


def _is_free(host: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True
