"""Environments that have the wheel, and know nothing of this checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from typing import Protocol

ROOT = Path(__file__).parents[2]
OURS = ("SEAMLINE", "PYTHON", "AIRFLOW")
READ = ("pyproject.toml", "LICENSE", "README.md")
"""What a build reads beside the package."""


class Run(Protocol):
    """Runs a command of an environment and returns what it prints; it must end well."""

    def __call__(self, *command: str, cwd: Path | None = None, **env: str) -> str: ...


def build_wheel(folder: Path) -> Path:
    """Build the wheel of a copy of what a build reads: it writes beside it."""
    source, made = folder / "source", folder / "wheel"
    shutil.copytree(
        ROOT / "include", source / "include", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
    )
    for name in READ:
        shutil.copy2(ROOT / name, source)
    build = f"import setuptools.build_meta as b; b.build_wheel({str(made)!r})"
    run_clean([sys.executable, "-c", build], source)
    [found] = made.glob("*.whl")
    return found


def installed(wheel: Path, extra: str, folder: Path) -> Run:
    """Make an environment with the wheel, an extra and what they ask for, in the versions of requirements.txt."""
    began = time.monotonic()
    home = make_environment(folder)
    pins = ["--constraint", str(ROOT / "requirements.txt")]
    asked = f"{wheel}[{extra}]" if extra else str(wheel)
    run_clean(
        ["uv", "pip", "install", "--quiet", "--python", str(home / "bin" / "python"), *pins, asked], folder
    )
    took = time.monotonic() - began
    size = sum(path.stat().st_size for path in home.rglob("*") if path.is_file() and not path.is_symlink())
    print(f"\n{extra or 'base'}: installed in {took:.0f} s, {size / 1e6:.0f} MB")
    return runner(home, folder)


def installed_beside_the_pins(wheel: Path, folder: Path) -> Run:
    """Make an environment with the wheel alone, which sees the packages of the one that the tests run in."""
    home = make_environment(folder)
    python = str(home / "bin" / "python")
    run_clean(
        ["uv", "pip", "install", "--quiet", "--offline", "--no-deps", "--python", python, str(wheel)], folder
    )
    [packages] = home.glob("lib/python*/site-packages")
    # A path alone: what the .pth files in it add, this checkout's package for one, is not added.
    (packages / "pins.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return runner(home, folder)


def make_environment(folder: Path) -> Path:
    """Make an empty environment of this Python."""
    home = folder / "venv"
    run_clean(["uv", "venv", "--quiet", "--python", sys.executable, str(home)], folder)
    return home


def runner(home: Path, folder: Path) -> Run:
    """Return what runs the commands of an environment, in ``folder`` unless told otherwise."""

    def run(*command: str, cwd: Path | None = None, **env: str) -> str:
        env = {"AIRFLOW_HOME": str(folder / "airflow"), **env}
        return run_clean([str(home / "bin" / command[0]), *command[1:]], cwd or folder, **env)

    return run


def run_clean(command: list[str], folder: Path, **env: str) -> str:
    """Run a command in an environment that knows nothing of this checkout, and return what it prints."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    done = subprocess.run(
        command, cwd=folder, env={**kept, **env}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout
