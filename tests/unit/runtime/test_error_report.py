"""An error crosses a process as what it is, whatever it is made of."""

from __future__ import annotations

from pathlib import Path

import pytest

from seamline.client import Refused
from seamline.jobs import build
from seamline.model.errors import Conflict, DefinitionError, NotWhole, SeamlineError, SetupError, SparkFailed
from seamline.model.protocol.job_arguments import BuildJob
from seamline.runtime.error_report import take_error_report, write_error_report


@pytest.mark.parametrize(
    "error",
    [
        SparkFailed("The JVM has gone.", hint="run it again."),
        Conflict('a "quoted"\n\nsecond paragraph'),
        NotWhole("master", "7.json", 7, "it is truncated"),
        DefinitionError("is wrong", hint="fix it", field="source.topic", file="shop.py", line=3),
        Refused("The server is gone"),
        SeamlineError("said"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_is_the_same_in_another_process(tmp_path: Path, error: SeamlineError) -> None:
    """Airflow's task decides by its kind whether to retry, and shows what it says."""
    path = tmp_path / "runs" / "failure.json"
    write_error_report(path, error)
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    found = take_error_report(path)
    assert found is not None and type(found) is type(error)
    assert (str(found), found.hint, found.exit_code) == (str(error), error.hint, error.exit_code)
    assert not path.parent.exists(), "a run that has built nothing leaves nothing"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"error": "Conflict"}'])
def test_what_is_no_report_tells_nothing(tmp_path: Path, text: str) -> None:
    """A process that was killed while it wrote, or a file of somebody else's."""
    path = tmp_path / "failure.json"
    path.write_text(text)
    (tmp_path / "index.html").write_text("of the run")
    assert take_error_report(path) is None


def test_a_kind_of_another_release_is_an_error_all_the_same(tmp_path: Path) -> None:
    """The driver may be newer than the scheduler."""
    path = tmp_path / "failure.json"
    path.write_text('{"error": "Unheard", "message": "of", "hint": "upgrade"}')
    found = take_error_report(path)
    assert type(found) is SeamlineError and str(found) == "of\n\nHint: upgrade"


def test_a_disk_without_room_leaves_the_exit_code(tmp_path: Path) -> None:
    """The error that is to be told may be just that."""
    (tmp_path / "runs").write_text("a file")
    write_error_report(tmp_path / "runs" / "failure.json", Conflict("late"))
    assert take_error_report(tmp_path / "runs" / "failure.json") is None


def test_a_build_without_a_place_says_so_all_the_same(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """There is nowhere to leave the report: the sentence and the exit code are what is left."""
    monkeypatch.setenv("SEAMLINE_WAREHOUSE", "ftp://lake")
    assert build.main(BuildJob("flights", "run", 1, ()).to_argv()) == SetupError.exit_code
    assert "'ftp://lake' is no place" in capsys.readouterr().err
