"""Flink is fetched as pinned, and left out where it was not."""

from __future__ import annotations

import hashlib
import re
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from benchmarks.peers import flink_jars
from benchmarks.peers.flink_counts import moment
from benchmarks.peers.flink_sql import Work

from seamline.local import install
from seamline.model.errors import SetupError
from seamline.runtime.java import list_java_parts

SYSTEMS = ("seamline", "flink_only", "flink_work")


@pytest.fixture
def nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder in which no Flink is."""
    monkeypatch.setattr(flink_jars, "FLINK", tmp_path / "flink")
    return tmp_path / "flink"


def pin(jar: bytes, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pin one jar, and let pip bring a wheel with that and another."""
    listing = folder.parent / "flink.toml"
    listing.write_text(
        f'[wheel]\n"org.apache.flink:flink-dist:2.2.0" = "{hashlib.sha256(jar).hexdigest()}"\n'
    )
    monkeypatch.setattr(flink_jars, "LISTING", listing)

    def pip(checkout: object, command: list[str], failure: str) -> None:
        assert command[-1] == "apache-flink-libraries==2.2.0"
        with zipfile.ZipFile(Path(command[command.index("--dest") + 1]) / "some.whl", "w") as wheel:
            wheel.writestr("pyflink/lib/flink-dist-2.2.0.jar", b"flink")
            wheel.writestr("pyflink/lib/another.jar", b"another")

    monkeypatch.setattr(install, "run_step", pip)


def test_every_jar_is_pinned_once() -> None:
    """Two revisions of a jar on one class path is an error nobody finds."""
    pinned = [
        part for group in ("wheel", "connectors") for part in list_java_parts(group, flink_jars.LISTING)
    ]
    assert all(re.fullmatch("[0-9a-f]{64}", part.sha256) for part in pinned)
    assert len({part.name for part in pinned}) == len(pinned)


def test_the_pinned_jars_of_the_wheel_are_kept(nothing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wheel is 300 MB, and what is not on the class path is not wanted."""
    pin(b"flink", nothing, monkeypatch)
    flink_jars.unpack_wheel()
    assert [jar.name for jar in nothing.rglob("*.*")] == ["flink-dist-2.2.0.jar"]


def test_another_jar_is_refused(nothing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mirror may rebuild a wheel, but not what is in it."""
    pin(b"not flink", nothing, monkeypatch)
    with pytest.raises(SetupError, match="not the pinned"):
        flink_jars.unpack_wheel()
    assert not (nothing / "wheel" / "flink-dist-2.2.0.jar").exists()


def test_a_benchmark_goes_without_flink(nothing: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody has to fetch 300 MB to measure Seamline, and nobody finds out after two hours that Flink was left out."""
    assert flink_jars.chosen("", SYSTEMS) == ["seamline"]
    said = capsys.readouterr().err
    assert "make bench-flink" in said and "Left out: flink_only, flink_work." in said
    assert flink_jars.chosen("flink_work,seamline", SYSTEMS) == ["seamline"]
    assert "Left out: flink_work." in capsys.readouterr().err
    assert flink_jars.chosen("seamline", SYSTEMS) == ["seamline"]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("archive", [None, Path("/some/archive")])
def test_the_topic_is_read_once(archive: Path | None) -> None:
    """Two jobs would pay for the topic twice, and would not be the same work."""
    work = Work("broker:9092", "ads", "counts", archive, bounded=True)
    tables = " ".join(work.tables())
    assert tables.count("'scan.bounded.mode' = 'latest-offset'") == tables.count("'connector' = 'kafka'") == 1
    assert work.job().count("INSERT INTO") == (2 if archive else 1)
    assert ("user_id" in tables) == bool(archive)


def test_a_window_begins_where_it_does_in_either_form() -> None:
    """The job without an archive tells windows by their text, the other by seconds."""
    begin = datetime(2026, 1, 5, 0, 0, 10, tzinfo=UTC)
    assert moment("2026-01-05T00:00:10Z") == moment(int(begin.timestamp())) == begin
