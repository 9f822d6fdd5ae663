"""The wheel at work, with the packages that are here; `make package-test` has it in empty environments."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.package.environments import ROOT, Run, build_wheel, installed_beside_the_pins

from seamline.orchestration.dags import build_dags

BASE_ALONE = """
import json, tomllib
from pathlib import Path
from tests.unit.project.closed_environment import Closed, required_by
import sys
project = tomllib.loads(Path(sys.argv[1], "pyproject.toml").read_text())["project"]
sys.meta_path.insert(0, Closed(required_by(project["dependencies"])))
import seamline
assert "site-packages" in seamline.__file__, seamline.__file__
import tests.test_orders as module
names = [name for name in vars(module) if name.startswith("test_")]
for name in names:
    getattr(module, name)()
print(len(names), sorted({"airflow", "pyspark", "pytest"} & set(sys.modules)))
"""
LOADED = """
import runpy
print(*sorted(name for name in runpy.run_path("dags/pipelines.py") if "__" in name.strip("_")))
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """An environment with the wheel."""
    folder = tmp_path_factory.mktemp("an environment")
    return installed_beside_the_pins(build_wheel(folder / "build"), folder)


@pytest.fixture(scope="module")
def project(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project that it has begun."""
    folder = tmp_path_factory.mktemp("somewhere") / "my shop"
    assert "files are written" in run("seamline", "init", str(folder))
    return folder


@pytest.mark.faults
def test_a_project_is_right_from_the_first_minute(run: Run, project: Path) -> None:
    """What an installation writes is checked, tested and loaded by the same installation, without a setting."""
    assert "1 pipeline, no problem." in run("seamline", "check", cwd=project)
    assert "2 passed" in run("python", "-m", "pytest", "-q", cwd=project)
    wanted = " ".join(sorted(build_dags(project / "pipelines", project / ".seamline")))
    assert run("python", "-c", LOADED, cwd=project).strip() == wanted


@pytest.mark.slow
def test_its_test_needs_the_base_alone(run: Run, project: Path) -> None:
    """Whoever writes pipelines needs neither Spark nor Airflow, nor pytest, to try them."""
    said = run("python", "-c", BASE_ALONE, str(ROOT), cwd=project, PYTHONPATH=str(ROOT))
    assert said.strip() == "2 []"


@pytest.mark.slow
def test_the_demo_has_what_it_runs(run: Run, project: Path) -> None:
    """Its definition is the wheel's, and it asks for what lacks before anything is started."""
    assert "--backfill-days" in run("seamline", "demo", "--help", cwd=project)
    code = "from seamline.local.demo.scene import *; print(Scene(Options.parse([])).definitions)"
    definitions = run("python", "-c", code, cwd=project).strip()
    assert definitions.endswith("site-packages/seamline/local/demo/pipelines")
    assert run("python", "-c", f"{code}; print(package_path())", cwd=project).splitlines()[1:] == [""]
    assert "flights" in run("seamline", "check", cwd=project, SEAMLINE_PIPELINES=definitions)
    assert not (project / ".seamline" / "demo").exists()
