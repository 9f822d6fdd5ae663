"""What one caller may ask: an answer that takes too long is broken off."""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from fastapi.routing import APIRoute

from seamline.lake.engine.duckdb_connections import connection, open_beside, query_tables, register_tables
from seamline.lake.engine.time_limit import interrupt_after
from seamline.model.errors import TooSlow
from seamline.runtime.deadline import in_time, limit_thread_time
from seamline.web import app as web
from seamline.web import limits
from seamline.web.limits import run_with_time_limit

INSIDE = {
    ("answer_pages", "accuracy"),
    ("answer_pages", "explain"),
    ("answer_pages", "view"),
    ("answers.downloads", "download"),
    ("answers.mcp", "mcp"),
    ("api", "explain"),
    ("api", "rows"),
    ("counts_page", "show_counts"),
    ("drawn.origins", "origins"),
    ("glance.changes", "list_changes"),
    ("glance.changes", "list_pipeline_changes"),
    ("pages", "overview"),
    ("pages", "plan"),
    ("query_page", "query"),
    ("sql", "sql"),
}
"""Routes that limit what they do themselves."""
ACTING = {
    ("actions", "start_backfill"),
    ("actions", "start_import"),
    ("actions", "start_run"),
    ("actions", "steer_failover"),
    ("actions", "steer_stream"),
}
"""Routes that do something: nobody would know what became of it."""
NO_TABLES = {
    ("actions", "backfills"),
    ("answer_pages", "views"),
    ("api", "description"),
    ("api", "views"),
    ("driver_log", "driver_log"),
    ("pages", "first"),
    ("pages", "of_dag"),
    ("pages", "static"),
    ("reports", "report"),
}
"""Routes that look at definitions, at files of a run or a driver, or ask Airflow, which has its own limit."""
ENDLESS = "SELECT count(*) FROM range(1000000000000) a WHERE hash(a.range) = 1"


def test_a_query_that_takes_too_long_is_broken_off() -> None:
    """And the thread's connection goes on to serve the next."""
    with pytest.raises(TooSlow, match=r"no answer within 0.2 s"), interrupt_after(0.2):
        connection().sql(ENDLESS).fetchall()
    with interrupt_after():
        assert connection().sql("SELECT 42").fetchall() == [(42,)]


def test_a_merge_that_takes_too_long_is_broken_off() -> None:
    """States are merged by a DuckDB of their own, which runs on if only the one that reads files is stopped."""
    with pytest.raises(TooSlow, match=r"no answer within 0.2 s"), interrupt_after(0.2):
        query_tables(ENDLESS)
    assert query_tables("SELECT 42 AS n")["n"].to_pylist() == [42]


def test_a_connection_of_ones_own_is_broken_off_too() -> None:
    """What does not fit into memory is divided by a DuckDB of its own, which takes the longest."""
    with pytest.raises(TooSlow, match=r"no answer within 0.2 s"), interrupt_after(0.2), open_beside() as con:
        con.sql(ENDLESS).fetchall()
    with interrupt_after(0.2), open_beside() as con:
        assert con.sql("SELECT 42").fetchall() == [(42,)]


def test_loops_of_python_look_at_the_time() -> None:
    """DuckDB's interrupt does not reach them: a user's measure may take long for each of many rows."""
    with pytest.raises(TooSlow, match=r"no answer within 0.2 s"), interrupt_after(0.2):
        for _ in in_time(itertools.count()):
            pass
    assert [*in_time(range(2))] == [0, 1]


def test_what_begins_after_its_time_is_not_begun() -> None:
    """One call of Arrow cannot be broken off; the next query of the answer is not asked any more."""
    with pytest.raises(TooSlow), limit_thread_time(0):
        query_tables("SELECT 42 AS n")
    with pytest.raises(TooSlow), limit_thread_time(0), register_tables():
        raise AssertionError


def test_so_many_wait_and_no_more(monkeypatch) -> None:
    """Those beyond are told at once."""
    monkeypatch.setattr(limits, "waiting", threading.BoundedSemaphore(1))
    with limits.waiting, pytest.raises(TooSlow, match="Server busy"):
        run_with_time_limit(lambda: 1)
    assert run_with_time_limit(lambda: 1) == 1


def test_what_has_begun_waits_for_its_turn(monkeypatch) -> None:
    """A download that was refused after half of its rows would have been for nothing."""
    asked = threading.Event()

    class Watched(threading.BoundedSemaphore):
        def acquire(self, *how, **named):
            asked.set()
            return super().acquire(*how, **named)

    monkeypatch.setattr(limits, "waiting", Watched(1))
    with ThreadPoolExecutor(1) as others:
        with limits.waiting:
            asked.clear()
            patient = others.submit(run_with_time_limit, lambda: 1, patience=60)
            assert asked.wait(60)
        assert patient.result(60) == 1


def test_answers_share_few_threads() -> None:
    """Their connections are warm; what takes too long frees its thread."""
    names = {run_with_time_limit(lambda: threading.current_thread().name) for _ in range(20)}
    assert all(name.startswith("answers") for name in names)
    with pytest.raises(TooSlow):
        run_with_time_limit(lambda: connection().sql(ENDLESS).fetchall(), 0.2)
    assert run_with_time_limit(lambda: connection().sql("SELECT 42").fetchall()) == [(42,)]


def test_every_route_has_a_time_limit() -> None:
    """Whoever writes a new one says by which: the limit around it, or one inside; the rest looks at no table."""
    within = {
        (each.endpoint.__module__.removeprefix("seamline.web."), each.endpoint.__name__)
        for each in web.app.routes
        if isinstance(each, APIRoute) and not hasattr(each.endpoint, "__wrapped__")
    }
    assert within == INSIDE | ACTING | NO_TABLES
