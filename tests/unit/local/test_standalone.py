"""Airflow's own commands over SQLite, which drops transactions that somebody has overtaken."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess
from types import SimpleNamespace

import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from seamline.local.airflow import AirflowStandalone
from seamline.local.airflow_command import write_from_savepoints_on
from seamline.local.demo.__main__ import main
from seamline.local.demo.options import Options
from seamline.local.demo.stages import Demo
from seamline.model.errors import SetupError

GONE = CompletedProcess("airflow", 1, "", "Could not find dag flights__batch")
DONE = CompletedProcess("airflow", 0, "", "")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What was asked of an Airflow that answers a command as ``answers`` says."""
    said: list[object] = []
    wait = SimpleNamespace(await_backfill=lambda dag, **_: said.append(f"waited for {dag}"))
    monkeypatch.setattr(AirflowStandalone, "api", wait)
    return said


def answering(monkeypatch: pytest.MonkeyPatch, asked: list[object], answer: CompletedProcess[str]) -> None:
    """Answer every command so."""

    def command(self: AirflowStandalone, *words: str) -> CompletedProcess[str]:
        asked.append(words)
        return answer

    monkeypatch.setattr(AirflowStandalone, "command", command)


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Engine]:
    """A database as Airflow opens it, with a table of one row."""
    engine = create_engine(f"sqlite:///{tmp_path / 'airflow.db'}?timeout=0.2")
    with engine.begin() as connection:
        connection.execute(text("PRAGMA journal_mode=WAL"))
        connection.execute(text("CREATE TABLE runs (n INT)"))
        connection.execute(text("INSERT INTO runs VALUES (0)"))
    yield engine
    engine.dispose()


def read_then_write(runs: Engine, path: Path) -> None:
    """Write a row from a savepoint, as Airflow creates a run of a backfill; the scheduler writes in between."""
    scheduler = create_engine(f"sqlite:///{path / 'airflow.db'}?timeout=0.2")
    with Session(runs) as session:
        with session.begin_nested():
            session.scalar(text("SELECT max(n) FROM runs"))
            with scheduler.connect() as other:
                try:
                    other.execute(text("INSERT INTO runs VALUES (1)"))
                    other.commit()
                except OperationalError:
                    other.rollback()
            session.execute(text("INSERT INTO runs VALUES (2)"))
        session.commit()
    scheduler.dispose()


def test_a_run_that_is_created_while_the_scheduler_writes(tmp_path: Path, runs: Engine) -> None:
    """Python's driver makes a savepoint a transaction that anybody can overtake; ours has its turn to write at once."""
    with pytest.raises(OperationalError, match="locked"):
        read_then_write(runs, tmp_path)
    write_from_savepoints_on(runs)
    read_then_write(runs, tmp_path)
    with runs.connect() as connection:
        assert connection.scalars(text("SELECT n FROM runs")).all() == [0, 1, 2]


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


def test_a_demo_says_why_there_is_no_backfill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: list[object]
) -> None:
    """What Airflow wrote is the only thing that tells."""
    answering(monkeypatch, asked, GONE)
    demo = Demo(Options.parse(["--home", str(tmp_path)]))
    with pytest.raises(SetupError, match=GONE.stderr):
        demo.backfill(AirflowStandalone(tmp_path, 1, root=tmp_path).api)
    assert [each[:2] for each in asked if isinstance(each, tuple)] == [("backfill", "create")]


@pytest.mark.parametrize("until", ["yesterday", "2013-01-02", "2015-01-01"])
def test_a_demo_of_no_days_is_refused_before_anything_is_started(
    until: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It took a minute to find out, and everything was up by then."""
    assert main(["--until", until]) == 2
    assert "'--until'" in capsys.readouterr().err
