"""What the project's own files promise: exact pins, no machine's traces, a composition that is one."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata, resources
from pathlib import Path
from typing import Any

import jsonschema
import pyspark
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from seamline.model.compile.catalog import load_catalog
from seamline.runtime.java import list_java_parts

ROOT = Path(__file__).parents[3]
PINS = sorted(ROOT.glob("requirements*.txt"))
GIVEN = {"seamline", "airflow", "py4j", "pytest"}
"""Not asked for by name: several packages share airflow, pyspark pins py4j, and whoever runs tests has pytest."""
EXTRAS = {
    "orchestration": ["airflow"],
    "provider": ["airflow"],
    "web": ["airflow", "web"],
    "spark": ["spark"],
    "jobs": ["spark"],
    "quality": ["spark"],
    "serve": ["spark"],
    "sinks": ["sinks"],
    "lineage": ["lineage"],
    "tracing": ["traces"],
    "mcp": ["mcp"],
    "testing": ["spark"],
    "local": ["demo", "spark"],
}
"""What top-level packages need beside the base; serve and testing take theirs where they are asked for it alone."""
SETS_UP = (
    "import sys; sys.path.insert(0, 'include'); from seamline.local import bootstrap, install, preflight"
)
"""What a set-up imports, by a Python that has nothing but itself."""
SECRETS = re.compile("PASSWORD|SECRET|FERNET|TOKEN", re.IGNORECASE)


def pinned(file: Path) -> list[str]:
    """Return the lines of a requirements file that require something."""
    lines = (line.split(" #")[0].strip() for line in file.read_text().splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def version(name: str) -> str:
    """Return the one version that requirements.txt pins for ``name``."""
    (found,) = [line for line in pinned(ROOT / "requirements.txt") if line.startswith(f"{name}==")]
    return found.removeprefix(f"{name}==")


@pytest.fixture(scope="module")
def composition() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "docker-compose.yaml").read_text())


@pytest.mark.parametrize("file", PINS, ids=lambda file: file.name)
def test_every_requirement_is_exact_and_comes_from_nowhere_in_particular(file: Path) -> None:
    """A range is another program next month; an index's address is one that others cannot reach."""
    assert pinned(file)
    for line in pinned(file):
        assert re.fullmatch(r"[a-z0-9._-]+(\[[a-z0-9,-]+\])?==[0-9][A-Za-z0-9.+!]*( ; .+)?", line), line
    assert "://" not in file.read_text()


def test_the_pins_that_must_agree_do() -> None:
    """Delta's jar and package are one thing in two parts; pyspark-client lays its files over pyspark's."""
    jars = {part.name: part.revision for part in list_java_parts("spark")}
    assert jars["delta-spark_4.2_2.13"] == jars["delta-storage"] == version("delta-spark")
    assert jars["spark-sql-kafka-0-10_2.13"] == version("pyspark") == version("pyspark-client")
    assert int(version("pandas").split(".")[0]) < 3


def taken(tree: ast.AST) -> Iterator[str]:
    """Name the top of every module that a file imports, and of every package whose data it reads."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (each.name.split(".")[0] for each in names)
            case ast.ImportFrom(module=str(module)):
                yield module.split(".")[0]
            case ast.Call(func=ast.Name(id="files"), args=[ast.Constant(value=str(package))]):
                yield package.split(".")[0]


def test_what_the_code_takes_the_package_asks_for() -> None:
    """A set-up from the pins has it by way of Airflow; an installation of the package alone does not."""
    owners = metadata.packages_distributions()
    for file in sorted((ROOT / "include").glob("seamline*/**/*.py")):
        declared = declared_for(file.relative_to(ROOT / "include" / "seamline").parts[0])
        for name in set(taken(ast.parse(file.read_text()))) - {*sys.stdlib_module_names, *GIVEN}:
            assert declared & {canonicalize_name(each) for each in owners[name]}, (file, name)


def declared_for(room: str) -> set[str]:
    """Name the packages that are declared for a top-level package of ours: those of the extras that it needs, too."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = list(project["dependencies"])
    for extra in EXTRAS.get(room, ()):
        lines += project["optional-dependencies"][extra]
    return {canonicalize_name(Requirement(line).name) for line in lines}


def test_the_pins_are_within_what_the_package_asks_for() -> None:
    """The package says it runs with what it was tested with."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pins = list(map(Requirement, pinned(ROOT / "requirements.txt")))
    extras = [line for some in project["optional-dependencies"].values() for line in some]
    for each in map(Requirement, [*project["dependencies"], *extras]):
        if each.name == "seamline":
            continue
        found = [str(pin.specifier)[2:] for pin in pins if pin.name == canonicalize_name(each.name)]
        assert found, each
        assert all(each.specifier.contains(one, prereleases=True) for one in found), each


def test_what_is_installed_is_what_is_pinned() -> None:
    """Tests that pass on other versions than the pinned ones say nothing."""
    names = ["apache-airflow", "deltalake", "duckdb", "kafka-python", "pyarrow", "pyspark", "sqlglot"]
    assert {name: metadata.version(name) for name in names} == {name: version(name) for name in names}


@pytest.mark.parametrize("group", ["spark", "s3", "kafka"])
def test_every_java_part_has_a_checksum_and_a_name_of_its_own(group: str) -> None:
    """Two revisions of a jar on one class path is an error nobody finds."""
    listed = list_java_parts(group)
    assert all(re.fullmatch("[0-9a-f]{64}", part.sha256) for part in listed)
    assert len({part.name for part in listed}) == len(listed) > 0


def test_the_connector_to_buckets_is_that_of_sparks_hadoop() -> None:
    """Hadoop's jars of two releases do not work together; whoever updates Spark must renew the group."""
    [shipped] = (Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*.jar")
    jars = {part.name: part.revision for part in list_java_parts("s3")}
    assert shipped.name == f"hadoop-client-api-{jars['hadoop-aws']}.jar"
    assert len({part.revision for part in list_java_parts("s3") if part.organisation.endswith("awssdk")}) == 1


def test_the_composition_is_one(composition: dict[str, Any]) -> None:
    """Compose refuses a file with one wrong key, and there may be no engine here to say so."""
    schema = resources.files("check_jsonschema") / "builtin_schemas" / "vendor" / "compose-spec.json"
    jsonschema.validate(composition, json.loads(schema.read_text()))


def test_the_composition_has_what_a_team_runs(composition: dict[str, Any]) -> None:
    """Each process of the design has its service, and each of ours that lives says whether it is well."""
    services = composition["services"]
    ours = {name for name, service in services.items() if service["image"].startswith("seamline:")}
    airflow = {f"airflow-{name}" for name in ("api-server", "scheduler", "dag-processor", "triggerer")}
    workers = {"airflow-worker", "airflow-stream-worker"}
    assert ours == {"spark-master", "spark-worker", *airflow, *workers, "airflow-init", "s3-init"}
    assert set(services) - ours == {"kafka", "postgres", "s3", "valkey"}
    assert {name for name in ours if "healthcheck" not in services[name]} == {"airflow-init", "s3-init"}
    assert {name for name, service in services.items() if "profiles" in service} == {"valkey", *workers}
    for service in services.values():
        assert set(service.get("depends_on", {})) <= set(services)
        used = {volume.split(":")[0] for volume in service.get("volumes", ())}
        assert used <= set(composition["volumes"])


def test_the_composition_runs_our_versions(composition: dict[str, Any]) -> None:
    """The broker that the tests use is the one that is deployed."""
    broker = {part.name: part.revision for part in list_java_parts("kafka")}["kafka_2.13"]
    assert composition["services"]["kafka"]["image"] == f"apache/kafka:{broker}"
    [gateway] = re.findall(r"versitygw@(v[0-9.]+)", (ROOT / "tests/services/programs.txt").read_text())
    assert composition["services"]["s3"]["image"] == f"versity/versitygw:{gateway}"


def test_the_composition_holds_no_secret(composition: dict[str, Any]) -> None:
    """A default password is a password that everybody knows."""
    for service in composition["services"].values():
        for name, value in service.get("environment", {}).items():
            if SECRETS.search(name):
                assert re.fullmatch(r"\$\{[A-Z_]+:\?[^}]+\}", str(value)), name
            assert not re.search(r"://[^:/@]+:(?!\$\{)[^@]+@", str(value)), name


def test_a_skip_that_nobody_agreed_on_fails(tmp_path: Path) -> None:
    """A test that is skipped everywhere is a promise that nobody keeps."""
    for name in ("conftest.py", "skips.toml"):
        (tmp_path / name).write_text((ROOT / "tests" / name).read_text())
    (tmp_path / "test_some.py").write_text("import pytest\n\ndef test_some():\n    pytest.skip('no time')\n")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
        str(tmp_path),
    ]
    alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=alone)
    assert done.returncode == 1, done.stdout
    assert "skips.toml does not allow it" in done.stdout


def test_help_lists_every_command() -> None:
    """`make` alone is how a newcomer learns the rest."""
    done = subprocess.run(
        ["make", "--no-print-directory"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    listed = {line.split()[1] for line in done.stdout.splitlines()}
    assert {"demo", "test", "check", "clean-demo", "fmt", "lock", "help"} <= listed


def test_no_code_path_asks_for_the_name_of_a_pipeline() -> None:
    """What is fast for a benchmark's definition is fast for the same definition under any other name."""
    shipped = [load_catalog(ROOT / "include" / folder).pipelines for folder in ("pipelines", "examples")]
    names = re.compile(rf"\b({'|'.join(name for each in shipped for name in each)})\b|benchmark")
    layers = (
        "model",
        "plan",
        "lake",
        "kafka",
        "spark",
        "serve",
        "quality",
        "supervisor",
        "orchestration",
        "provider",
    )
    files = [file for layer in layers for file in (ROOT / "include" / "seamline" / layer).rglob("*.py")]
    found = [
        f"{file.relative_to(ROOT)}:{node.lineno}"
        for file in files
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and names.search(node.value)
    ]
    assert files and found == []


def test_the_image_has_what_its_setup_imports(tmp_path: Path) -> None:
    """No image is built here: that its set-up lacked modules of its own since they were moved, a reader has found."""
    before, _, _ = (ROOT / "Dockerfile").read_text().partition("RUN make setup")
    for line in before.splitlines():
        if line.startswith("COPY"):
            *sources, target = [each for each in line.split()[1:] if not each.startswith("--")]
            for source in sources:
                for path in ROOT.glob(source):
                    copy = shutil.copytree if path.is_dir() else shutil.copy
                    place = tmp_path / target if path.is_dir() else tmp_path / target / path.name
                    place.parent.mkdir(parents=True, exist_ok=True)
                    copy(path, place)
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", SETS_UP], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    archived = "include/seamline/spark/tasks/class_data.py"
    assert (tmp_path / archived).is_file(), "the archive of Spark's classes is written by the first set-up"


def test_every_slow_test_is_run_by_make_faults() -> None:
    """A file of end-to-end tests is named there, one by one: the slow ones of a new file were run by nobody."""
    recipe = (ROOT / "Makefile").read_text().partition("\nfaults:")[2].partition("\n\n")[0]
    named = (ROOT / "Makefile").read_text().partition("\n\n.DEFAULT_GOAL")[0] + recipe
    slow = [
        file
        for file in (ROOT / "tests").rglob("test_*.py")
        if re.search("^@pytest.mark.faults", file.read_text(), re.MULTILINE)
    ]
    places = {file.relative_to(ROOT).as_posix(): file.relative_to(ROOT).parts[:2] for file in slow}
    assert [
        name for name, parts in places.items() if name not in named and f" {'/'.join(parts)} " not in named
    ] == []
