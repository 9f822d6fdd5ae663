"""The Java parts of an installation: each by its checksum, from a folder, and never half of one."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from seamline.cli import main, setup
from seamline.runtime.java import jar_folder, list_java_parts


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder as somebody brings it to a machine without a network: the jars are somewhere in it."""
    (tmp_path / "stick" / "deep").mkdir(parents=True)
    for part in list_java_parts("spark"):
        shutil.copy2(jar_folder() / "spark" / part.jar, tmp_path / "stick" / "deep")
    return tmp_path / "stick"


def test_jars_come_from_a_folder_and_complete_ones_stay(
    tmp_path: Path, source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A second run has nothing to do, and a jar that was changed since comes anew."""
    asked = ["setup", "--jars", str(tmp_path / "jars"), "--from", str(source), "--no-archive"]
    names = {part.jar for part in list_java_parts("spark")}
    for fetched in (len(names), 0):
        assert main(asked) == 0
        assert f"spark: {fetched} jars fetched" in capsys.readouterr().out
    assert {path.name for path in (tmp_path / "jars" / "spark").iterdir()} == names
    broken = tmp_path / "jars" / "spark" / min(names)
    broken.write_bytes(b"cut")
    assert main(asked) == 0
    assert "spark: 1 jars fetched" in capsys.readouterr().out
    assert broken.stat().st_size > 3


def test_a_jar_with_other_bytes_is_named_and_not_taken(
    tmp_path: Path, source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A mirror, or a stick, may have anything by that name."""
    [jar] = [part.jar for part in list_java_parts("spark") if part.name == "delta-storage"]
    (source / "deep" / jar).write_bytes(b"other")
    assert main(["setup", "--jars", str(tmp_path / "jars"), "--from", str(source), "--no-archive"]) == 6
    said = capsys.readouterr().err
    assert "The checksums of 1 jars are not the pinned ones" in said and str(source / "deep" / jar) in said
    assert not (tmp_path / "jars" / "spark" / jar).exists()
    assert (source / "deep" / jar).exists(), "what somebody brought is left as it is"


def test_a_folder_that_lacks_jars_says_which(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is fetched in their place."""
    (tmp_path / "empty").mkdir()
    assert main(["setup", "--jars", str(tmp_path / "jars"), "--from", str(tmp_path / "empty")]) == 6
    said = capsys.readouterr().err
    assert "lacks 6 of 6 jars" in said and "delta-spark" in said
    assert not (tmp_path / "jars" / "spark").exists()


def test_of_several_copies_the_whole_one_is_taken(tmp_path: Path, source: Path) -> None:
    """A folder that somebody has used before has leftovers."""
    for part in list_java_parts("spark"):
        for place in ("a", "z"):
            (source / place).mkdir(exist_ok=True)
            (source / place / part.jar).write_bytes(b"cut")
    asked = ["setup", "--jars", str(tmp_path / "jars"), "--from", str(source), "--no-archive"]
    assert main(asked) == 0


def test_jars_cross_file_systems(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The folder of jars of a container is a volume."""
    with tempfile.TemporaryDirectory(dir=elsewhere()) as jars:
        assert main(["setup", "--jars", f"{jars}/new", "--from", str(source), "--no-archive"]) == 0
    assert "all are complete" in capsys.readouterr().out


def elsewhere() -> str | None:
    """Return a folder of another file system than that of temporary files, where Linux has one."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


@pytest.mark.parametrize(
    ("warehouse", "asked", "groups"),
    [
        ("/srv/warehouse", {}, ["spark"]),
        ("s3://lake/warehouse", {}, ["spark", "s3"]),
        ("s3://lake/warehouse", {"store": False}, ["spark"]),
        ("", {"store": True, "broker": True}, ["spark", "s3", "kafka"]),
    ],
)
def test_the_jars_for_a_bucket_are_for_who_has_one(
    warehouse: str, asked: dict[str, bool], groups: list[str]
) -> None:
    """Whoever keeps tables on disk needs none of them."""
    given = {"broker": False, "store": None, **asked}
    assert setup.list_groups({"SEAMLINE_WAREHOUSE": warehouse}, **given) == groups
    own = {"SEAMLINE_WAREHOUSE": "/srv/warehouse", "SEAMLINE_WAREHOUSE_SHOP": warehouse}
    assert setup.list_groups(own, **given) == groups


@pytest.mark.parametrize("place", ["file/below", "taken"])
def test_a_folder_that_cannot_be_filled_is_named(
    tmp_path: Path, source: Path, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    """No traceback tells anybody which option to change."""
    (tmp_path / "file").write_text("")
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "spark").write_text("")
    asked = ["setup", "--jars", str(tmp_path / place), "--from", str(source), "--no-archive"]
    assert main(asked) == 6
    assert f"{tmp_path / place} cannot be filled" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("script", "said"), [("touch $3", "are archived in"), ("exit 0", "could not"), ("exit 3", "could not")]
)
def test_classes_are_archived_once_for_each_java_and_spark(
    tmp_path: Path,
    source: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    script: str,
    said: str,
) -> None:
    """An archive of another Java is left alone by Java, and half of one too: all would start slowly, without a word."""
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(python))
    archive = tmp_path / "jars" / "spark.jsa"
    asked = ["setup", "--jars", str(archive.parent), "--from", str(source)]
    for _ in range(2):
        assert main(asked) == 0
        assert said in capsys.readouterr().out
        assert archive.exists() is (said == "are archived in")
    archive.write_text("of an older Java")
    archive.with_suffix(".stamp").write_text("17.0.1")
    assert main(asked) == 0
    assert not archive.exists() or archive.read_text() == ""


def test_spark_s_client_alone_is_no_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Spark's provider for Airflow brings it: the package is there, and has no jars."""
    monkeypatch.setattr(setup, "find_spec", lambda _: SimpleNamespace(origin=str(tmp_path / "__init__.py")))
    assert main(["setup", "--jars", str(tmp_path / "jars")]) == 6
    assert "pip install 'seamline[spark]'" in capsys.readouterr().err
