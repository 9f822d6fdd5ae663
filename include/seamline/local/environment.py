"""Files for another terminal: ``.seamline/env`` of a checkout, and the one of a running demo."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

HEADER = "# . .seamline/env  gives a shell this checkout's Python, Java, Airflow and Seamline.\n"


def write_env(root: Path, extra: Mapping[str, str]) -> None:
    """Write ``root/.seamline/env`` again: the checkout's own variables, those already there, and ``extra``."""
    write_exports(env_file(root), HEADER, _bin(root), {**read_env_file(root), **_own(root), **extra})


def write_exports(file: Path, header: str, binaries: Path, values: Mapping[str, str]) -> None:
    """Write a file that a shell reads: ``binaries`` comes first in its PATH, and ``values`` are set."""
    lines = [
        f"export {name}={shlex.quote(value)}\n" for name, value in sorted(values.items()) if name != "PATH"
    ]
    path = f'export PATH={shlex.quote(str(binaries))}:"$PATH"\n'
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_suffix(".new")
    fresh.write_text("".join([header, path, *lines]))
    fresh.replace(file)


def checkout_environment(root: Path) -> dict[str, str]:
    """Return this process's environment as it would be after ``. .seamline/env``."""
    path = f"{_bin(root)}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    return {**os.environ, **_own(root), **read_env_file(root), "PATH": path}


def read_env_file(root: Path) -> dict[str, str]:
    """Read what ``root/.seamline/env`` exports, without PATH; nothing if there is no such file."""
    file = env_file(root)
    words = shlex.split(file.read_text(), comments=True) if file.exists() else []
    pairs = (word.split("=", 1) for word in words if "=" in word)
    return {name: value for name, value in pairs if name != "PATH"}


def env_file(root: Path) -> Path:
    """Return the place of the file."""
    return root / ".seamline" / "env"


def _own(root: Path) -> dict[str, str]:
    state = root / ".seamline"
    return {
        "AIRFLOW_HOME": str(state / "airflow"),
        "GX_ANALYTICS_ENABLED": "false",
        "SEAMLINE_HOME": str(state),
        "SEAMLINE_JARS": str(state / "jars"),
        "SEAMLINE_PIPELINES": str(root / "include" / "pipelines"),
        "SEAMLINE_WAREHOUSE": str(state / "warehouse"),
    }


def _bin(root: Path) -> Path:
    return root / ".venv" / "bin"
