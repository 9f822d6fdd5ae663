"""Brings PyFlink to `.seamline/pyflink`, an environment of its own, and runs programs there.

    python -m benchmarks.peers.flink_in_python

Its packages are pinned with checksums in flink_in_python.txt; they do not go with those of this project.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.peers.flink_jars import CHECKOUT, say
from seamline.local import install
from seamline.local.bootstrap import set_up_alone
from seamline.model.errors import SetupError

HOME = CHECKOUT.state / "pyflink"
PYTHON = HOME / "bin" / "python"
HERE = Path(__file__).parent
DONE = HOME / "done"
"""Has what was installed."""
LONGEST = 1_800
"""Seconds that a program may take."""


def pinned() -> str:
    """Return what is pinned."""
    return (HERE / "flink_in_python_build.txt").read_text() + (HERE / "flink_in_python.txt").read_text()


def is_set_up() -> bool:
    """Return whether PyFlink is there as it is pinned."""
    return DONE.exists() and DONE.read_text() == pinned()


def set_up() -> None:
    """Install what is missing; a second set-up waits for the first."""
    with set_up_alone(CHECKOUT.state / "setup.lock"):
        if is_set_up():
            return
        say("Fetching PyFlink (600 MB) ...")
        install.run_step(
            CHECKOUT, [str(CHECKOUT.python), "-m", "venv", "--clear", str(HOME)], "PyFlink has no environment"
        )
        pip = [str(PYTHON), "-m", "pip", "install", "--disable-pip-version-check", "--require-hashes"]
        for more in (
            ["-r", str(HERE / "flink_in_python_build.txt")],
            ["--no-build-isolation", "-r", str(HERE / "flink_in_python.txt")],
        ):
            install.run_step(CHECKOUT, [*pip, *more], "pip could not install PyFlink")
        DONE.write_text(pinned())


def run_program(name: str, *arguments: str) -> dict[str, Any]:
    """Run a program beside this file to its end; return what its last line says. SetupError where it fails."""
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(PYTHON), str(HERE / name), *arguments],
        env=environ,
        capture_output=True,
        text=True,
        timeout=LONGEST,
        check=False,
    )
    if done.returncode:
        raise SetupError(f"{name} has failed: {done.stderr[-2_000:]}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def main() -> int:
    """Set PyFlink up and say where it is."""
    try:
        set_up()
    except SetupError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    say(f"PyFlink is set up in {HOME}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
