"""The package as others install it: what its base and its extras need, and what the wheel holds."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from tests.unit.project import closed_environment

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SPARK, AIRFLOW, WEB = {"jobs", "spark", "testing/tables"}, {"orchestration"}, {"web"}
PYTEST = {"testing/plugin"}
"""Loaded by pytest itself."""
DEMO = {"local/demo/verify"}


def requirements(*extras: str) -> list[str]:
    """List what an installation with some extras asks for, those that they name included."""
    lines = list(PROJECT["dependencies"])
    for extra in extras:
        lines += [each for each in PROJECT["optional-dependencies"][extra] if not each.startswith("seamline")]
    return lines


@pytest.mark.parametrize(
    ("extras", "lacking"),
    [
        ((), SPARK | AIRFLOW | WEB | DEMO),
        (("spark",), AIRFLOW | WEB),
        (("airflow",), SPARK | WEB),
        (("airflow", "web"), SPARK),
        (("spark", "airflow", "web", "demo"), set()),
    ],
    ids=lambda each: "+".join(each) if isinstance(each, tuple) else "",
)
def test_what_is_declared_is_enough(extras: tuple[str, ...], lacking: set[str], tmp_path: Path) -> None:
    """After an installation of the package alone the API failed for three packages that nobody had asked for."""
    done = subprocess.run(
        [sys.executable, "-m", closed_environment.__name__, json.dumps(requirements(*extras))],
        cwd=ROOT,
        env={**os.environ, "AIRFLOW_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    failed: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    rooms = lacking | PYTEST
    assert {each: why for each, why in failed.items() if not {each, each.partition("/")[0]} & rooms} == {}
    assert {room for room in rooms if any(each.startswith(room) for each in failed)} == rooms


def test_a_wheel_is_the_same_each_time_and_has_all_that_is_read(tmp_path: Path) -> None:
    """Templates, styles, pins of jars and types are no modules; two builds of one revision have the same bytes."""
    wheels = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        subprocess.run(
            [sys.executable, "-c", f"import setuptools.build_meta as b; b.build_wheel({str(folder)!r})"],
            cwd=copied(tmp_path / f"source {name}"),
            env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"},
            capture_output=True,
            check=True,
        )
        wheels += folder.glob("*.whl")
    assert wheels[0].read_bytes() == wheels[1].read_bytes()
    with zipfile.ZipFile(wheels[0]) as wheel:
        names = set(wheel.namelist())
        [entries] = [each for each in names if each.endswith("entry_points.txt")]
        assert "seamline_airflow:SeamlinePlugin" in wheel.read(entries).decode()
    package = ROOT / "include" / "seamline"
    wanted = [
        path.relative_to(ROOT / "include")
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    ]
    assert {str(each) for each in wanted} <= names
    assert {"seamline_airflow.py", "seamline_provider.py"} <= names
    assert not any(each.startswith(("tests/", "pipelines/", "examples/", "release/")) for each in names)


def copied(folder: Path) -> Path:
    """Copy what a build reads: it writes beside it."""
    shutil.copytree(
        ROOT / "include", folder / "include", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
    )
    for name in ("pyproject.toml", "LICENSE", "README.md"):
        shutil.copy2(ROOT / name, folder)
    return folder
