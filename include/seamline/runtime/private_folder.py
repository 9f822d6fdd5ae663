"""The folder for sockets that processes of one user on one machine meet at."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path


def private_folder() -> Path:
    """Return a folder that is this user's alone, made if need be; OSError where it cannot be."""
    folder = Path(tempfile.gettempdir()) / f"seamline-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise PermissionError(f"{folder} is not private to this user")
    return folder
