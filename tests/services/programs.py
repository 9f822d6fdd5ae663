"""Programs that are built from source: ``python -m tests.services.programs`` builds what programs.txt names."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.services.server import ServiceBroken

PINS = Path(__file__).with_name("programs.txt")
HOME = Path(__file__).parents[2] / ".seamline" / "services"


def find_program(name: str, home: Path = HOME) -> Path:
    """Return where a program is; raises ServiceBroken with the way out if it is missing, or of another version."""
    program = home / "bin" / name
    if not program.exists() or built(home) != PINS.read_text():
        raise ServiceBroken(
            f"{name}, of the version in tests/services/programs.txt, is not in {program.parent}.\n\n"
            "Hint: `make services` builds it, with Go, in about five minutes."
        )
    return program


def built(home: Path = HOME) -> str:
    """Return the pins that the programs were built by."""
    stamp = home / PINS.name
    return stamp.read_text() if stamp.exists() else ""


def build_programs(home: Path = HOME) -> None:
    """Build what is pinned, unless it is there; Go checks each source's checksum by its own database."""
    if built(home) == PINS.read_text():
        return
    go = shutil.which("go")
    if go is None:
        sys.exit(
            "No Go is on PATH, which builds the programs of the slow suites.\n\nHint: see go.dev/doc/install."
        )
    for line in PINS.read_text().splitlines():
        if not line.startswith("#"):
            print(f"Building {line} ...", file=sys.stderr, flush=True)
            environ = {**os.environ, "GOBIN": str(home / "bin")}
            subprocess.run([go, "install", "-ldflags=-s -w", line], env=environ, check=True)
    shutil.copy(PINS, home)


if __name__ == "__main__":
    build_programs()
