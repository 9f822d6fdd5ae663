"""The Java parts of an installation: each by its checksum, from a folder, and never half of one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from seamline.cli import main
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
    assert f"{jar} has checksum" in capsys.readouterr().err
    assert not (tmp_path / "jars" / "spark" / jar).exists()
    assert (source / "deep" / jar).exists(), "what somebody brought is left as it is"


def test_a_folder_that_lacks_jars_says_which(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is fetched in their place."""
    (tmp_path / "empty").mkdir()
    assert main(["setup", "--jars", str(tmp_path / "jars"), "--from", str(tmp_path / "empty")]) == 6
    said = capsys.readouterr().err
    assert "lacks 6 of 6 jars" in said and "delta-spark" in said
    assert not (tmp_path / "jars").exists()
