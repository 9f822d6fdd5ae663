"""How a demo ends: a report in a file, pages that exist and commands that are understood."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime

import pytest
from starlette.routing import Match

from seamline.local.demo.next_steps import PAGES, list_next_steps
from seamline.local.demo.report import find_told_row, list_day_lines, list_row_lines
from seamline.local.demo.stages import DAGS
from seamline.web.app import app

HOUR = datetime(2013, 12, 31, 23, tzinfo=UTC)


def row(carrier: str, batch: int, speed: int) -> dict[str, object]:
    """Return a served row of an airline's hour."""
    return {
        "window_start": HOUR,
        "carrier": carrier,
        "airlines_name": None,
        "flights": batch + speed,
        "mean_delay": None,
        "planes": 1,
        "batch_part": batch,
        "speed_part": speed,
    }


def test_every_page_is_there() -> None:
    """A page of ours is a route of the application; the one of Airflow is of a DAG that the demo runs."""
    ours = [place.removeprefix("/seamline") for _, place in PAGES if place.startswith("/seamline/")]
    for place in ours:
        scope = {"type": "http", "method": "GET", "path": place, "root_path": "", "headers": []}
        assert any(route.matches(scope)[0] is Match.FULL for route in app.routes), place
    assert [place for _, place in PAGES if place.removeprefix("/dags/") in DAGS] == ["/dags/flights__batch"]
    assert len(ours) == 4


def test_commands_are_given_for_a_row_of_the_demo() -> None:
    """What is to be explained is named as the command takes it."""
    lines = list(list_next_steps("http://here", ".seamline/demo/env", ("UA", HOUR)))
    commands = [shlex.split(line) for line in lines if line.startswith("  seamline ")]
    assert [each[1] for each in commands] == ["explain", "plan", "stream"]
    assert commands[0][2:] == [
        "flights.delay_by_carrier",
        "--key",
        "carrier=UA",
        "--window",
        "2013-12-31T23:00",
    ]
    assert sum("http://here/" in line for line in lines) == 5
    assert any(". .seamline/demo/env" in line for line in lines)


def test_without_rows_nothing_is_explained() -> None:
    """A demo of nothing has two commands."""
    assert not [line for line in list_next_steps("", "env", None) if "explain" in line]


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([row("AA", 1, 1), row("UA", 2, 0), row("WN", 0, 3)], "AA"),
        ([row("AA", 2, 0), row("UA", 2, 0), row("WN", 0, 3)], "UA"),
        ([row("AA", 0, 1), row("WN", 0, 3)], "WN"),
    ],
)
def test_the_row_to_explain_is_one_of_both_layers(rows: list[dict[str, object]], told: str) -> None:
    """Else one of a batch; the newest of several."""
    assert find_told_row(rows) == (told, HOUR)
    assert find_told_row([]) is None


def test_a_report_tells_days_and_rows() -> None:
    """Five days a line, each with its state; a row without a delay has none."""
    days = {f"2013-12-0{day}T00:00:00Z": (day, "certified") for day in range(1, 7)}
    lines = list(list_day_lines(days))
    assert len(lines) == 2
    assert lines[1] == "  2013-12-06     6 *"
    assert list(list_row_lines([row("AA", 2, 1)]))[1].split() == [
        *("2013-12-31", "23:00", "AA", "3", "1", "2", "batch", "+", "1", "speed")
    ]
