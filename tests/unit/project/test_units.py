"""The systemd units that the docs tell people to copy."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

UNITS = Path(__file__).parents[3] / "docs" / "systemd"
PROCESSES = ("scheduler", "dag-processor", "triggerer", "api-server")


@pytest.mark.parametrize("unit", sorted(UNITS.glob("*.service")), ids=lambda unit: unit.stem)
def test_a_unit_finds_what_is_installed_beside_it(unit: Path) -> None:
    """Airflow's provider calls ``spark-submit`` by its name, and systemd's own PATH has no environment of Python."""
    paths = [line for line in unit.read_text().splitlines() if line.startswith("Environment=PATH=")]
    assert [each.removeprefix("Environment=PATH=").split(":")[0] for each in paths] == [
        "/srv/seamline/.venv/bin"
    ]


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not there")
@pytest.mark.parametrize(
    "name", ["seamline-stream@orders", *(f"seamline-airflow@{process}" for process in PROCESSES)]
)
def test_systemd_takes_a_unit(name: str, tmp_path: Path) -> None:
    """A word that it does not know is passed over with a line in a log that nobody reads."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for program in ("seamline", "airflow"):
        (programs / program).write_text("#!/bin/sh\n")
        (programs / program).chmod(0o755)
    template = f"{name.partition('@')[0]}@"
    for file in UNITS.rglob("*.service"), UNITS.rglob("*.conf"):
        for each in file:
            copy = tmp_path / each.relative_to(UNITS)
            copy.parent.mkdir(exist_ok=True)
            copy.write_text(each.read_text().replace("/srv/seamline/.venv/bin", str(programs)))
    (tmp_path / f"{template}.service").rename(tmp_path / f"{name}.service")
    done = subprocess.run(
        ["systemd-analyze", "verify", str(tmp_path / f"{name}.service")],
        env={"SYSTEMD_UNIT_PATH": f"{tmp_path}:", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    told = [line for line in done.stderr.splitlines() if str(tmp_path) in line or template in line]
    assert (done.returncode, told) == (0, [])
