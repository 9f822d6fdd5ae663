"""What a backfill through Airflow decides: which intervals, whether runs are repeated, and when it is over."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.unit.shop import DEFINITION

from seamline.cli import main
from seamline.model.errors import (
    AirflowFailed,
    BackfillRefused,
    BadRange,
    NotFound,
    OutsideLife,
    SeamlineError,
)
from seamline.model.time.intervals import Grid, Interval, parse_moment
from seamline.orchestration.airflow_api import AirflowApi
from seamline.orchestration.airflow_client import Reply

GRID = Grid(timedelta(days=1), parse_moment("2013-01-01"))
NOW = datetime(2013, 3, 10, 12, tzinfo=UTC)


class Airflow:
    """An Airflow that answers from a script: ``runs`` are the states of the span's runs, call by call."""

    most = 100
    """How many runs it gives at once, whatever it is asked for."""

    def __init__(self, *, existing: int = 0, paused: bool = False, active: bool = False) -> None:
        self.existing, self.paused, self.active = existing, paused, active
        self.runs: list[list[str]] = [["queued", "queued"], ["running", "success"], ["success", "success"]]
        self.asked: list[dict[str, Any]] = []
        self.half_made: list[dict[str, Any] | None] = []
        """What each failure at a backfill leaves active: nothing, or one that differs so from what was asked."""
        self.left: list[dict[str, Any]] = []
        self.cancelled: list[str] = []

    def call(self, method: str, path: str, body: Any = None, **_: object) -> dict[str, Any]:
        """Stand in for ``AirflowApi.call``."""
        if method == "POST":
            self.asked.append(body)
            if self.left:
                raise BackfillRefused("There is already a running backfill.", hint="")
            if self.half_made:
                if (differs := self.half_made.pop(0)) is not None:
                    self.left, self.existing = [{**body, "id": 5, "completed_at": None, **differs}], 1
                raise AirflowFailed("Database is locked.", hint="")
            return {"id": 7}
        if method == "PUT":
            self.cancelled.append(path)
            self.left = []
            return {}
        if path.startswith("/backfills?"):
            return {"backfills": [{"id": 3, "completed_at": None}] if self.active else self.left}
        if path.startswith("/backfills/"):
            return {"completed_at": None}
        if "run_type=backfill" in path:
            offset = int(path.rpartition("offset=")[2])
            states = self.runs.pop(0) if len(self.runs) > 1 and not offset else self.runs[0]
            page = states[offset : offset + self.most]
            return {"dag_runs": [{"state": state} for state in page], "total_entries": len(states)}
        if "/dagRuns?" in path:
            return {"total_entries": self.existing}
        return {"is_paused": self.paused}


@pytest.fixture
def through(monkeypatch: pytest.MonkeyPatch) -> Callable[[Airflow], AirflowApi]:
    """Make every client talk to a scripted Airflow."""

    def connect(airflow: Airflow) -> AirflowApi:
        monkeypatch.setattr(AirflowApi, "call", lambda _, *args, **more: airflow.call(*args, **more))
        monkeypatch.setattr("seamline.orchestration.airflow_api.time.sleep", lambda _: None)
        for name in ("URL", "USER", "PASSWORD"):
            monkeypatch.setenv(f"SEAMLINE_AIRFLOW_{name}", "x")
        return AirflowApi("http://airflow", "admin", "x")

    return connect


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one definition, and a warehouse that must stay empty."""
    (tmp_path / "definitions").mkdir()
    (tmp_path / "definitions" / "shop.py").write_text(DEFINITION)
    monkeypatch.setenv("SEAMLINE_PIPELINES", str(tmp_path / "definitions"))
    monkeypatch.setenv("SEAMLINE_WAREHOUSE", str(tmp_path / "warehouse"))
    return tmp_path / "warehouse"


def test_runs_are_counted_page_by_page(through: Callable[[Airflow], AirflowApi]) -> None:
    """Airflow bounds a page: a year would look like a hundred days."""
    airflow = Airflow()
    airflow.runs = [["success"] * 250 + ["failed"] * 50]
    found = through(airflow).run_states("shop__batch", "2013-01-01T00:00:00Z", "2013-10-27T00:00:00Z")
    assert found == {"success": 250, "failed": 50}


def span(start: str, end: str) -> Interval:
    return Interval(parse_moment(start), parse_moment(end))


def test_a_span_is_its_intervals_the_end_not_in() -> None:
    """Airflow's own end is inclusive: off by one here rebuilds a day that nobody asked for."""
    found = GRID.within_life(span("2013-03-01", "2013-03-03"), now=NOW)
    assert [each.id for each in found] == ["2013-03-01T00:00:00Z", "2013-03-02T00:00:00Z"]


@pytest.mark.parametrize(
    ("start", "end", "error"),
    [
        ("2012-12-31", "2013-01-02", OutsideLife),
        ("2013-03-09", "2013-03-12", OutsideLife),
        ("2013-03-01T06:00", "2013-03-02", BadRange),
        ("2013-03-01", "2013-03-02T06:00", BadRange),
    ],
)
def test_a_span_that_cannot_be_meant_is_refused(start: str, end: str, error: type[BadRange]) -> None:
    """Airflow would take it and make runs that fail one by one."""
    with pytest.raises(error) as caught:
        GRID.within_life(span(start, end), now=NOW)
    assert type(caught.value) is error
    assert caught.value.hint


@pytest.mark.parametrize(("start", "end"), [("0001-01-01", "9999-12-31"), ("2013-03-01", "9999-12-31")])
def test_a_span_of_thousands_of_years_is_refused_before_it_is_listed(
    start: str, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever may read a pipeline may ask for its plan, and a server has not the memory for every second till then."""
    monkeypatch.setattr(Grid, "within", lambda *_: pytest.fail("all intervals are listed"))
    with pytest.raises(OutsideLife):
        Grid(timedelta(seconds=1), GRID.start).within_life(span(start, end), now=NOW)


def test_the_day_that_runs_may_be_asked_for() -> None:
    """What its run says is that the day is still open."""
    assert GRID.within_life(span("2013-03-10", "2013-03-11"), now=NOW)


@pytest.mark.parametrize(("existing", "behavior"), [(0, "none"), (2, "completed")])
def test_runs_that_are_there_are_run_again_and_that_is_said(
    through: Callable[[Airflow], AirflowApi], existing: int, behavior: str
) -> None:
    """Without the right behavior Airflow passes over existing runs without a word."""
    airflow, told = Airflow(existing=existing), list[str]()
    done = through(airflow).backfill("shop", span("2013-03-01", "2013-03-03"), GRID, say=told.append)
    assert airflow.asked == [
        {
            "dag_id": "shop__batch",
            "from_date": "2013-03-01T00:00:00Z",
            "to_date": "2013-03-02T00:00:00Z",
            "reprocess_behavior": behavior,
            "max_active_runs": 1,
            "dag_run_conf": {},
        }
    ]
    assert told[0].strip() == "2013-03-01T00:00:00Z/2013-03-02T00:00:00Z"
    assert told[-1].startswith(f"reprocess behavior {behavior}: ")
    assert (done.done, done.failed, done.total) == (True, 0, 2)


def test_a_paused_dag_is_said_and_not_waited_for(through: Callable[[Airflow], AirflowApi]) -> None:
    """Its runs queue up; waiting for them would look like a hang."""
    told = list[str]()
    airflow = Airflow(paused=True)
    done = through(airflow).backfill("shop", span("2013-03-01", "2013-03-03"), GRID, say=told.append)
    assert "shop__batch is paused" in told[-1]
    assert not done.done


def test_a_second_backfill_of_a_dag_is_refused(through: Callable[[Airflow], AirflowApi]) -> None:
    """Airflow has one per DAG; its own refusal does not say which is in the way."""
    airflow = Airflow(active=True)
    with pytest.raises(BackfillRefused, match="Backfill 3"):
        through(airflow).backfill("shop", span("2013-03-01", "2013-03-03"), GRID, say=lambda _: None)
    assert airflow.asked == []


def test_a_backfill_that_airflow_fails_at_is_asked_for_again(
    through: Callable[[Airflow], AirflowApi],
) -> None:
    """SQLite drops it for a write of the scheduler's; runs it has made by then would be passed over without a word."""
    airflow = Airflow()
    airflow.half_made = [None, {}]
    done = through(airflow).backfill("shop", span("2013-03-01", "2013-03-03"), GRID, say=lambda _: None)
    assert (done.backfill, done.done) == (7, True)
    assert airflow.cancelled == ["/backfills/5/cancel"]
    assert [each["reprocess_behavior"] for each in airflow.asked] == ["none", "none", "completed"]


def test_a_backfill_of_somebody_else_is_not_cancelled(through: Callable[[Airflow], AirflowApi]) -> None:
    """It may have come first while ours failed."""
    airflow = Airflow()
    airflow.half_made = [{"from_date": "2013-02-01T00:00:00Z"}]
    with pytest.raises(BackfillRefused, match="already"):
        through(airflow).backfill("shop", span("2013-03-01", "2013-03-03"), GRID, say=lambda _: None)
    assert airflow.cancelled == []


def test_an_airflow_that_goes_on_failing_says_so(through: Callable[[Airflow], AirflowApi]) -> None:
    """There is an end to asking again."""
    airflow = Airflow()
    airflow.half_made = [None] * 9
    with pytest.raises(AirflowFailed, match="locked"):
        through(airflow).backfill("shop", span("2013-03-01", "2013-03-03"), GRID, say=lambda _: None)
    assert len(airflow.asked) == 5


@pytest.mark.parametrize(
    ("status", "error"),
    [(503, AirflowFailed), (500, AirflowFailed), (409, BackfillRefused), (404, NotFound)],
)
def test_a_failure_of_airflows_is_no_refusal(
    monkeypatch: pytest.MonkeyPatch, status: int, error: type[SeamlineError]
) -> None:
    """What it refuses it refuses for good; what it failed at may be asked for again."""

    def send(_: AirflowApi, method: str, path: str, *more: object) -> Reply:
        return Reply(status, b'{"detail": "Database is locked."}')

    monkeypatch.setattr(AirflowApi, "send", send)
    with pytest.raises(error, match="Database is locked") as caught:
        AirflowApi("http://airflow", "admin", "x", token="x").call(
            "POST", "/backfills", {}, refused=BackfillRefused
        )
    assert type(caught.value) is error


def test_the_command_shows_intervals_choice_and_progress(
    through: Callable[[Airflow], AirflowApi], shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What happens must be readable before it happens."""
    through(Airflow())
    assert main(["backfill", "shop", "2013-03-01", "2013-03-03"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.strip() for line in lines[:3]] == [
        "The log has no edge yet: nothing can be built.",
        "2013-03-01T00:00:00Z/2013-03-02T00:00:00Z",
        "2013-03-02T00:00:00Z/2013-03-03T00:00:00Z",
    ]
    assert lines[-1] == "backfill 7: 2 of 2 runs ended (2 success)"


@pytest.mark.parametrize(
    ("start", "end", "code"),
    [("2013-03-03", "2013-03-01", 5), ("2012-01-01", "2012-01-02", 8), ("2013-03-01T01:00", "2013-03-02", 5)],
)
def test_the_command_refuses_before_it_asks_airflow(
    through: Callable[[Airflow], AirflowApi],
    shop: Path,
    capsys: pytest.CaptureFixture[str],
    start: str,
    end: str,
    code: int,
) -> None:
    """Nothing half-done: no run, no table."""
    airflow = Airflow()
    through(airflow)
    assert main(["backfill", "shop", start, end]) == code
    assert "Hint:" in capsys.readouterr().err
    assert airflow.asked == []
    assert not shop.exists()


def test_failed_runs_are_a_failure_of_the_command(
    through: Callable[[Airflow], AirflowApi], shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A script must learn that a day was not rebuilt."""
    airflow = Airflow()
    airflow.runs = [["success", "failed"]]
    through(airflow)
    assert main(["backfill", "shop", "2013-03-01", "2013-03-03"]) == 42
    assert "1 of 2 runs failed" in capsys.readouterr().err
