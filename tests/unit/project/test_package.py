"""The package as others install it: what its base and its extras need, and what the wheel holds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from tests.package.environments import build_wheel
from tests.unit.project import closed_environment

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SPARK, WEB = {"jobs", "spark", "testing/tables"}, {"web"}
AIRFLOW = {"orchestration", "provider", "local/airflow_command"}
PYTEST = {"testing/plugin"}
"""Loaded by pytest itself."""
DEMO = {"local/demo/verify"}
SINKS, MCP = {"sinks/postgres", "sinks/redis"}, {"mcp"}
LINEAGE = {"lineage/own_facets", "lineage/client_events"}
TRACES = {"tracing/exported_spans", "tracing/epoch_traces"}


def requirements(*extras: str) -> list[str]:
    """List what an installation with some extras asks for, those that they name included."""
    lines = list(PROJECT["dependencies"])
    for extra in extras:
        lines += [each for each in PROJECT["optional-dependencies"][extra] if not each.startswith("seamline")]
    return lines


@pytest.mark.parametrize(
    ("extras", "lacking"),
    [
        ((), SPARK | AIRFLOW | WEB | DEMO | SINKS | MCP | LINEAGE | TRACES),
        pytest.param(("spark",), AIRFLOW | WEB | SINKS | MCP | LINEAGE | TRACES, marks=pytest.mark.faults),
        pytest.param(("airflow",), SPARK | WEB | SINKS | MCP | LINEAGE, marks=pytest.mark.faults),
        pytest.param(("airflow", "web"), SPARK | SINKS | MCP | LINEAGE, marks=pytest.mark.faults),
        pytest.param(
            ("sinks",), SPARK | AIRFLOW | WEB | DEMO | MCP | LINEAGE | TRACES, marks=pytest.mark.faults
        ),
        pytest.param(("mcp",), SPARK | AIRFLOW | WEB | DEMO | SINKS | LINEAGE, marks=pytest.mark.faults),
        pytest.param(
            ("lineage",), SPARK | AIRFLOW | WEB | DEMO | SINKS | MCP | TRACES, marks=pytest.mark.faults
        ),
        pytest.param(
            ("traces",), SPARK | AIRFLOW | WEB | DEMO | SINKS | MCP | LINEAGE, marks=pytest.mark.faults
        ),
        (("spark", "airflow", "web", "demo", "sinks", "mcp", "lineage", "traces"), set()),
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
    inside = {each for each in failed for room in rooms if f"{each}/".startswith(f"{room}/")}
    assert {each: why for each, why in failed.items() if each not in inside} == {}
    assert {room for room in rooms if any(each.startswith(room) for each in failed)} == rooms


def test_a_wheel_has_all_that_is_read(tmp_path: Path) -> None:
    """Templates, styles, pins of jars and types are no modules; test_release compares two builds."""
    with zipfile.ZipFile(build_wheel(tmp_path)) as wheel:
        names = set(wheel.namelist())
        [entries] = [each for each in names if each.endswith("entry_points.txt")]
        assert "seamline_airflow:SeamlinePlugin" in wheel.read(entries).decode()
        flights = wheel.read("seamline/local/demo/pipelines/flights.py")
    assert flights == (ROOT / "include" / "pipelines" / "flights.py").read_bytes()
    package = ROOT / "include" / "seamline"
    wanted = [
        path.relative_to(ROOT / "include")
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    ]
    assert {str(each) for each in wanted} <= names
    assert "seamline/local/project/template/docker-compose.yaml.in" in names
    assert {"seamline_airflow.py", "seamline_provider.py"} <= names
    assert not any(each.startswith(("tests/", "pipelines/", "examples/", "release/")) for each in names)
