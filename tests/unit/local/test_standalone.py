"""Airflow's own commands over SQLite, which drops some of them."""

from __future__ import annotations

from pathlib import Path
from subprocess import CompletedProcess
from types import SimpleNamespace

import pytest

from seamline.local.airflow import LOCKED_AT_MOST, AirflowStandalone
from seamline.local.demo.__main__ import main
from seamline.local.demo.options import Options
from seamline.local.demo.stages import Demo
from seamline.model.errors import SetupError

LOCKED = CompletedProcess("airflow", 1, "", "sqlite3.OperationalError: database is locked")
GONE = CompletedProcess("airflow", 1, "", "Could not find dag flights__batch")
DONE = CompletedProcess("airflow", 0, "", "")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What was asked of an Airflow that answers a command as ``answers`` says."""
    said: list[object] = []
    wait = SimpleNamespace(await_backfill=lambda dag, **_: said.append(f"waited for {dag}"))
    monkeypatch.setattr(AirflowStandalone, "api", wait)
    return said


def answering(monkeypatch: pytest.MonkeyPatch, asked: list[object], *answers: CompletedProcess[str]) -> None:
    """Answer commands one by one, the last answer for ever."""
    left = list(answers)

    def command(self: AirflowStandalone, *words: str) -> CompletedProcess[str]:
        asked.append(words)
        return left.pop(0) if len(left) > 1 else left[0]

    monkeypatch.setattr(AirflowStandalone, "command", command)


def test_a_backfill_that_sqlite_dropped_is_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: list[object]
) -> None:
    """Not before the scheduler has closed what the first command left: Airflow runs one backfill per DAG."""
    answering(monkeypatch, asked, LOCKED, LOCKED, DONE)
    airflow = AirflowStandalone(tmp_path, 1, root=tmp_path)
    assert airflow.backfill("flights__batch", "--run-backwards") is DONE
    words = ("backfill", "create", "--dag-id", "flights__batch", "--run-backwards")
    assert asked == [words, "waited for flights__batch", words, "waited for flights__batch", words]


def test_a_demo_notices_that_a_rebuild_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: list[object]
) -> None:
    """The answer would be right all the same: what a failed run would have replaced is served on."""
    answering(monkeypatch, asked, DONE)
    api = AirflowStandalone(tmp_path, 1, root=tmp_path).api
    api.runs = lambda *_: [
        {"dag_run_id": "one", "state": "success"},
        {"dag_run_id": "two", "state": "failed"},
    ]
    with pytest.raises(SetupError, match="Run two of flights__batch ended as failed"):
        Demo(Options.parse(["--home", str(tmp_path)])).backfill(api)


@pytest.mark.parametrize(("answer", "times"), [(GONE, 1), (LOCKED, LOCKED_AT_MOST)])
def test_a_demo_says_why_there_is_no_backfill(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    asked: list[object],
    answer: CompletedProcess[str],
    times: int,
) -> None:
    """What Airflow wrote is the only thing that tells."""
    answering(monkeypatch, asked, answer)
    demo = Demo(Options.parse(["--home", str(tmp_path)]))
    with pytest.raises(SetupError, match=answer.stderr):
        demo.backfill(AirflowStandalone(tmp_path, 1, root=tmp_path).api)
    assert sum(isinstance(each, tuple) for each in asked) == times


@pytest.mark.parametrize("until", ["yesterday", "2013-01-02", "2015-01-01"])
def test_a_demo_of_no_days_is_refused_before_anything_is_started(
    until: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It took a minute to find out, and everything was up by then."""
    assert main(["--until", until]) == 2
    assert "'--until'" in capsys.readouterr().err
