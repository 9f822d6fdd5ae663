"""`seamline init`: a project that is right as it is written, and that takes nothing from anybody."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from fnmatch import fnmatch
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

import seamline
from seamline.cli import main
from seamline.cli.planning.plan_command import BUILDS, DIFFERS
from seamline.orchestration.dags import build_dags
from seamline.orchestration.pools import POOLS
from seamline.plan.wording.observation_text import RECONCILER

ROOT = Path(__file__).parents[3]
LONGEST = "a" * 63


def written(folder: Path, *options: str) -> Path:
    """Write a project into a folder whose name has a space."""
    project = folder / "My shop"
    assert main(["init", str(project), *options]) == 0
    return project


def listed(folder: Path) -> dict[str, bytes]:
    """Read all files of a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def run(project: Path, *command: str, **env: str) -> str:
    """Run Python in a project, without the settings of this checkout's own pipelines."""
    kept = {name: value for name, value in os.environ.items() if name != "SEAMLINE_PIPELINES"}
    done = subprocess.run(
        [sys.executable, *command],
        cwd=project,
        env={**kept, **env},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def composition(file: Path) -> Any:
    return yaml.safe_load(file.read_text())


def test_a_project_has_what_a_team_keeps(tmp_path: Path) -> None:
    """Each file is there, and no blank of a template is left."""
    files = listed(written(tmp_path, "--pipeline", "visits"))
    assert {
        "README.md",
        "Makefile",
        ".gitignore",
        "docker-compose.yaml",
        "requirements.txt",
        "dags/pipelines.py",
        "pipelines/visits.py",
        "tests/test_visits.py",
    } <= files.keys()
    for name, text in files.items():
        assert not re.search(rb"@[a-z]+@", text), name
    assert f"]=={seamline.__version__}\n" in files["requirements.txt"].decode()
    assert files["constraints.txt"] == (ROOT / "requirements.txt").read_bytes()
    assert files["requirements-image.txt"] == (ROOT / "requirements-image.txt").read_bytes()


def test_the_page_names_five_commands_that_are_there(tmp_path: Path) -> None:
    """What the first page says is typed as it stands."""
    files = listed(written(tmp_path))
    commands = re.findall(r"^    make (\w+)  +#", files["README.md"].decode(), re.MULTILINE)
    assert len(commands) == 5
    for each in commands:
        assert re.search(rf"^{each}:.*## ", files["Makefile"].decode(), re.MULTILINE), each


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All that is in the way is named, whatever it is, and not even the other files are written."""
    project = tmp_path / "shop"
    (project / "pipelines" / "orders.py").mkdir(parents=True)
    (project / "Makefile").write_text("mine")
    (project / "tests").write_text("a file where a folder is to be")
    (project / "README.md").symlink_to("nowhere")
    (project / "notes").write_text("in nobody's way")
    before = listed(project)
    assert main(["init", str(project)]) == 6
    said = capsys.readouterr().err
    for name in ("Makefile", "README.md", "pipelines/orders.py", "tests"):
        assert f"{project / name}" in said
    assert "notes" not in said and "Hint: " in said
    assert listed(project) == before
    assert main(["init", str(project / "notes")]) == 6


def test_a_second_time_changes_nothing(tmp_path: Path) -> None:
    """Work in a project is not lost by a line of the shell's history."""
    project = written(tmp_path)
    (project / "pipelines" / "orders.py").write_text("# a day's work")
    before = listed(project)
    assert main(["init", str(project)]) == 6
    assert listed(project) == before


def test_a_folder_with_a_history_alone_is_taken(tmp_path: Path) -> None:
    """Whoever clones an empty repository has .git in it."""
    (tmp_path / "My shop" / ".git").mkdir(parents=True)
    assert (written(tmp_path) / "Makefile").is_file()


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("My-Shop", "as in my_shop."),
        ("9lives", "as in lives."),
        ("a__b", "as in a_b."),
        ("class", "as in class_pipeline."),
        ("../up", "as in up."),
        ("ä", "underscores."),
        ("a" * 64, "underscores."),
        ("", "underscores."),
    ],
)
def test_a_name_that_no_pipeline_can_bear(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, hint: str
) -> None:
    """It would be refused by the first check, or could not be imported; nothing is written."""
    assert main(["init", str(tmp_path / "shop"), "--pipeline", name]) == 3
    assert hint in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["orders", "count", "module", LONGEST])
def test_the_code_is_clean_and_its_test_passes(tmp_path: Path, name: str) -> None:
    """A name is also a module and a variable: it hides nothing that the example needs."""
    project = written(tmp_path, "--pipeline", name)
    run(project, "-m", "ruff", "check", "--no-cache", ".")
    if name != LONGEST:
        run(project, "-m", "ruff", "format", "--no-cache", "--check", ".")
    assert "1 pipeline, no problem." in run(project, "-m", "seamline.cli", "check")
    assert "2 passed" in run(project, "-m", "pytest", "-q", "-p", "no:cacheprovider")


@pytest.mark.slow
def test_airflow_loads_the_dags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file needs no setting and makes what the definitions give."""
    project = written(tmp_path)
    wanted = set(build_dags(project / "pipelines", tmp_path))
    code = "import runpy; print(*(k for k in runpy.run_path('dags/pipelines.py') if '__' in k.strip('_')))"
    assert set(run(project, "-c", code, AIRFLOW_HOME=str(tmp_path / "airflow")).split()) == wanted
    assert wanted == {
        RECONCILER,
        *(f"orders__{kind}" for kind in ("stream", "batch", "upkeep", "audit", "import")),
    }


def test_the_containers_are_what_ours_are(tmp_path: Path) -> None:
    """Compose would take the file; the services are set as those of this repository, and their pools are made."""
    project = written(tmp_path)
    found = composition(project / "docker-compose.yaml")
    schema = resources.files("check_jsonschema") / "builtin_schemas" / "vendor" / "compose-spec.json"
    jsonschema.validate(found, json.loads(schema.read_text()))
    assert found["name"] == "my-shop"
    ours = composition(ROOT / "docker-compose.yaml")
    for name, service in found["services"].items():
        assert service["environment"].keys() <= ours["services"][name]["environment"].keys()
        assert set(service.get("depends_on", {})) <= found["services"].keys()
        assert service.get("image") in ("my-shop", ours["services"][name]["image"])
    for services in (found["services"], ours["services"]):
        made = services["airflow-init"]["command"][-1]
        for pool, (slots, _) in POOLS.items():
            assert f"airflow pools set {pool} {slots} " in made, "a task whose pool is missing waits for ever"


PLANS = {".github/workflows/plan.yml": "vendor.github-workflows", ".gitlab-ci.yml": "vendor.gitlab-ci"}


def read_plan_script(project: Path, file: str) -> str:
    """Return the lines of a workflow that plan."""
    found = composition(project / file)
    if file == ".gitlab-ci.yml":
        return str(found["plan"]["script"][-1])
    return str(next(each["run"] for each in found["jobs"]["plan"]["steps"] if each.get("name") == "Plan"))


@pytest.mark.parametrize("file", PLANS)
def test_a_workflow_is_what_its_host_takes(tmp_path: Path, file: str) -> None:
    """It would be refused in the first pull request; the codes that it lets pass are those of the command."""
    project = written(tmp_path)
    schemas = resources.files("check_jsonschema") / "builtin_schemas" / "vendor"
    name = f"{PLANS[file].removeprefix('vendor.')}.json"
    found = composition(project / file)
    # YAML takes the key `on` for a yes.
    found = {"on" if key is True else key: value for key, value in found.items()}
    jsonschema.validators.validator_for({})(json.loads((schemas / name).read_text())).validate(found)
    assert f"0|{BUILDS}|{DIFFERS})" in read_plan_script(project, file)


@pytest.mark.slow
@pytest.mark.parametrize("file", PLANS)
def test_a_workflow_plans_a_pull_request(tmp_path: Path, file: str) -> None:
    """The lines as they stand, in a clone: an edit is told, and passes; a broken file stops it."""
    project = written(tmp_path)
    base = "CI_MERGE_REQUEST_DIFF_BASE_SHA" if file == ".gitlab-ci.yml" else "BASE"
    env = {**os.environ, base: "main", "SEAMLINE_PIPELINES": "pipelines", "GIT_CONFIG_GLOBAL": os.devnull}
    env |= {"PATH": f"{tmp_path}:{env['PATH']}", "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}
    env |= {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    env |= {"SEAMLINE_WAREHOUSE": ""}
    command = tmp_path / "seamline"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m seamline.cli "$@"\n')
    command.chmod(0o755)

    def shell(script: str) -> int:
        return subprocess.run(["bash", "-e", "-c", script], cwd=project, env=env, check=False).returncode

    assert shell("git init -q -b main && git add . && git commit -q -m one && git checkout -q -b edit") == 0
    example = project / "pipelines" / "orders.py"
    example.write_text(example.read_text().replace("sum(", "sum('1 + ' + "))
    assert shell(read_plan_script(project, file)) == 0
    said = (project / "plan.md").read_text()
    assert "new version" in said and "not known: no log of it" in said
    (project / "pipelines" / "broken.py").write_text("x =")
    assert shell(read_plan_script(project, file)) == 3
    assert "Wrong now: broken.py:1" in (project / "plan.md").read_text()


def test_the_image_has_what_its_services_are_given(tmp_path: Path) -> None:
    """No image is built here: what is copied into it is there, and not left out."""
    project = written(tmp_path)
    copied = re.findall(
        r"^COPY (?:--chown=\S+ )?(.+) \S+$", (project / "Dockerfile").read_text(), re.MULTILINE
    )
    let_in = [
        line[1:] for line in (project / ".dockerignore").read_text().splitlines() if line.startswith("!")
    ]
    for source in " ".join(copied).split():
        assert (project / source).exists()
        assert any(fnmatch(source, each) for each in let_in), source
    for volume in composition(project / "docker-compose.yaml")["x-seamline"]["volumes"]:
        assert not volume.startswith("./") or (project / volume.split(":")[0]).is_dir()


def test_secrets_are_made_once(tmp_path: Path) -> None:
    """Every value that the composition asks for, for its owner's eyes alone, and the same the next time."""
    project = written(tmp_path)
    subprocess.run(["make", "-s", ".env"], cwd=project, check=True)
    values = dict(line.split("=", 1) for line in (project / ".env").read_text().splitlines())
    assert values.keys() == set(re.findall(r"\$\{(\w+):\?", (project / "docker-compose.yaml").read_text()))
    assert all(values.values()) and len(values["KAFKA_CLUSTER_ID"]) == 22
    assert (project / ".env").stat().st_mode & 0o077 == 0
    before = (project / ".env").read_bytes()
    subprocess.run(["make", "-s", ".env"], cwd=project, check=True)
    assert (project / ".env").read_bytes() == before
