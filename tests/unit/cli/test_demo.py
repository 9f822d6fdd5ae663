"""`seamline demo`, as far as it goes before anything is started."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from seamline.cli import demo as command
from seamline.cli import main
from seamline.local.demo import __main__, scene
from seamline.local.demo.options import Options
from seamline.local.demo.scene import Scene
from seamline.model.errors import SetupError
from seamline.runtime.java import jar_folder, list_java_parts

ROOT = Path(__file__).parents[3]


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is done in the places of a set-up and a demo."""
    said: list[str] = []

    def set_up(broker: bool, store: bool, **given: object) -> None:
        said.append(f"set up, broker={broker}, store={store}")

    monkeypatch.setattr(command, "setup", set_up)
    monkeypatch.setattr(__main__, "run_demo", lambda options: said.append(f"demo {options.exit}") or 1)
    return said


def test_jars_that_lack_are_fetched_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Two commands would be one more to know; what is complete is not fetched again. The demo's exit code is ours."""
    assert main(["demo", "--exit"]) == 1
    assert done == ["demo True"]
    for group in ("spark", "kafka"):
        (tmp_path / group).mkdir()
        for part in list_java_parts(group):
            (tmp_path / group / part.jar).symlink_to(jar_folder() / group / part.jar)
    (tmp_path / "kafka" / list_java_parts("kafka")[0].jar).unlink()
    monkeypatch.setenv("SEAMLINE_JARS", str(tmp_path))
    assert main(["demo"]) == 1
    assert done[1:] == ["set up, broker=True, store=False", "demo False"]
    assert "are not complete" in capsys.readouterr().out


def test_a_wrong_option_fetches_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor does a question for help."""
    monkeypatch.setenv("SEAMLINE_JARS", str(tmp_path))
    for words, code, said in (
        (["--until", "2015-01-01"], 2, "'--until'"),
        (["--help"], 0, "--kafka-port"),
    ):
        assert main(["demo", *words]) == code
        assert said in "".join(capsys.readouterr())
    assert done == []


@pytest.mark.parametrize(
    "words",
    [
        ("--kafka-port", "65535"),
        ("--kafka-port", "-1"),
        ("--airflow-port", "65534"),
        ("--backfill-days", "-1"),
    ],
)
def test_a_number_that_cannot_be_is_told_with_what_can(
    words: tuple[str, str], done: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A port that is none was a traceback once the jars were fetched."""
    assert main(["demo", *words]) == 2
    assert "is not in the range" in capsys.readouterr().err
    assert done == []


def test_the_jars_for_a_bucket_go_by_where_the_demo_s_tables_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: list[str]
) -> None:
    """A demo has no other warehouse: what the environment names is not its own."""
    monkeypatch.setenv("SEAMLINE_JARS", str(tmp_path))
    monkeypatch.setattr(scene, "require_nothing_there", lambda warehouse: None)
    assert main(["demo", "--warehouse", "s3://lake/demo"]) == 1
    monkeypatch.setenv("SEAMLINE_WAREHOUSE", "s3://lake/mine")
    assert main(["demo"]) == 1
    assert done[::2] == ["set up, broker=True, store=True", "set up, broker=True, store=False"]


def test_a_place_that_cannot_have_its_tables_fetches_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Minutes of a download are not to come before what the command line alone can tell."""
    monkeypatch.setenv("SEAMLINE_JARS", str(tmp_path / "jars"))
    (tmp_path / "file").write_text("mine")
    for place, said in (
        (tmp_path / "file", "file is a file"),
        (tmp_path / "file" / "w", "file is a file"),
        (tmp_path, "file in it already"),
        ("ftp://lake", "'ftp://lake'"),
    ):
        assert main(["demo", "--warehouse", str(place)]) == SetupError.exit_code
        assert said in capsys.readouterr().err
    assert done == []


def test_what_the_extra_brings_is_asked_for_by_its_name(
    monkeypatch: pytest.MonkeyPatch, done: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A traceback of an import would name a package that nobody has heard of."""
    monkeypatch.setattr(scene, "find_spec", lambda name: None if name == "pyspark" else object())
    assert main(["demo"]) == 6
    said = capsys.readouterr().err
    assert "among them pyspark" in said and "pip install 'seamline[demo]'" in said
    assert done == []


def test_a_folder_with_its_flights_is_the_demo_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a checkout a pipeline that is added beside them appears; a project's own are left alone."""
    monkeypatch.setenv("SEAMLINE_PIPELINES", str(ROOT / "include" / "pipelines"))
    assert Scene(Options.parse([])).definitions == ROOT / "include" / "pipelines"
    monkeypatch.delenv("SEAMLINE_PIPELINES")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pipelines").mkdir()
    assert Scene(Options.parse([])).definitions.parent.name == "demo"


def test_another_terminal_has_what_the_demo_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told one line; all that a demo writes is in its home, its DAGs included."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    home = tmp_path / "a demo"
    os.environ["SEAMLINE_WAREHOUSE_FLIGHTS"] = "s3://lake/flights"
    made = Scene(Options.parse(["--home", "a demo"]))
    made.prepare()
    assert made.exports == "'a demo/env'"
    told = subprocess.run(
        ["sh", "-c", f". {made.exports} && env"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    settings = dict(line.split("=", 1) for line in told.stdout.splitlines() if "=" in line)
    assert settings["SEAMLINE_WAREHOUSE"] == str(home / "warehouse")
    assert settings["SEAMLINE_WAREHOUSE_FLIGHTS"] == "", "flights of a warehouse of yours are not the demo's"
    assert settings["AIRFLOW__CORE__DAGS_FOLDER"] == str(home / "dags")
    assert (Path(settings["SPARK_HOME"]) / "bin" / "spark-class").is_file()
    assert settings["SEAMLINE_AIRFLOW_PASSWORD"] == made.password
    assert "airflow" in (home / "dags" / "pipelines.py").read_text()
    assert [each.name for each in tmp_path.iterdir()] == ["a demo"]


def test_a_folder_of_somebody_elses_is_left_alone(tmp_path: Path) -> None:
    """A demo clears away what an earlier one left, and ``--home ~/work`` is typed easily."""
    (tmp_path / "thesis.txt").write_text("three years")
    with pytest.raises(SetupError, match="no demo has written"):
        scene.delete_demo_data(tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "three years"
    (tmp_path / scene.MARK).touch()
    scene.delete_demo_data(tmp_path)
    assert not tmp_path.exists()
    scene.delete_demo_data(tmp_path)


def test_a_projects_own_flights_are_not_the_demos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo checks every number of a definition that it knows."""
    (tmp_path / "flights.py").write_text("")
    monkeypatch.setenv("SEAMLINE_PIPELINES", str(tmp_path))
    assert Scene(Options.parse([])).definitions.parent.name == "demo"
