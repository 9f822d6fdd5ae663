"""From an installation to a running example, in empty environments: a project, its test, its DAGs, the demo."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.e2e.test_demo import left
from tests.package.environments import Run, installed
from tests.ports import free_ports

DAGS = """
import runpy
print(*sorted(name for name in runpy.run_path("dags/pipelines.py") if "__" in name.strip("_")))
"""


def begun(run: Run, folder: Path) -> Path:
    """Begin a project by the installation's own command."""
    project = folder / "my shop"
    assert "files are written" in run("seamline", "init", str(project))
    return project


def test_a_project_is_checked_and_tested_with_the_base_alone(wheel: Path, tmp_path: Path) -> None:
    """pytest is all that is added: neither Spark nor Airflow is there."""
    run = installed(wheel, "", tmp_path / "environment")
    project = begun(run, tmp_path)
    assert "1 pipeline, no problem." in run("seamline", "check", cwd=project)
    code = (
        "import tests.test_orders as t; [getattr(t, name)() for name in vars(t) if name.startswith('test_')]"
    )
    assert run("python", "-c", code, cwd=project) == ""


def test_airflow_loads_its_dags(install: Callable[[str], Run], tmp_path: Path) -> None:
    """The file stands in a folder of DAGs without a setting."""
    run = install("airflow")
    project = begun(run, tmp_path)
    made = run("python", "-c", DAGS, cwd=project).split()
    assert made == [
        "orders__audit",
        "orders__batch",
        "orders__import",
        "orders__stream",
        "orders__upkeep",
        "seamline__reconcile",
    ]


def test_the_demo_without_its_extra_says_what_to_install(
    install: Callable[[str], Run], tmp_path: Path
) -> None:
    """Nothing is fetched for what cannot run."""
    with pytest.raises(AssertionError, match=r"pip install 'seamline\[demo\]'"):
        install("")("seamline", "demo", "--exit", cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_from_the_wheel_to_a_running_example(wheel: Path, tmp_path: Path) -> None:
    """Three commands: the installation, the project, the demo; every number of it is checked, and all of it ends."""
    began = time.monotonic()
    run = installed(wheel, "demo", tmp_path / "an environment")
    project, there, first = begun(run, tmp_path), time.monotonic() - began, free_ports(5)
    said = run(
        *("seamline", "demo", "--exit", "--until", "2013-01-06", "--seconds", "8", "--backfill-days", "0"),
        *("--kafka-port", str(first), "--airflow-port", str(first + 2)),
        cwd=project,
    )
    took = time.monotonic() - began
    up = re.search(r"^\[ *([\d.]+) s\] the stream is up", said, re.MULTILINE)
    done = re.search(r"^\[ *([\d.]+) s\] done;", said, re.MULTILINE)
    assert up and done and "everything is right" in said
    running = took - float(done[1]) + float(up[1])
    print(
        f"\nfrom the wheel (uv, its cache warm): a project after {there:.0f} s, a stream that runs after "
        f"{running:.0f} s, a checked answer after {took:.0f} s"
    )
    assert left(project / ".seamline" / "demo") == []
    assert {path.name for path in project.iterdir()} & {"spark-warehouse", "metastore_db", "logs"} == set()
