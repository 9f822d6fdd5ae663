"""What people decide tells its lineage, too: rollbacks, and imports of files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.unit.lineage.receiver import Received, receive
from tests.unit.past import DAYS, build
from tests.unit.shop import Sale, Shop, opened

from seamline.cli import main
from seamline.lake.store.locations import Location
from seamline.lake.tables.control_table import ControlTable
from seamline.lake.tables.decided import ask_for_import
from seamline.lineage import import_lineage
from seamline.lineage.batch_lineage import read_version
from seamline.lineage.import_lineage import tell_ended_imports, tell_import
from seamline.model.protocol.imported.imports import Import
from seamline.plan.lineage.lineage_events import RunState
from seamline.supervisor.imports import import_process

ASKED = Import("abc", "sales", "s3://past/sales", 5, "ada", "history", datetime(2026, 3, 1, tzinfo=UTC))


@pytest.fixture
def received(monkeypatch: pytest.MonkeyPatch) -> Iterator[Received]:
    """A server, and a namespace."""
    with receive() as found:
        monkeypatch.setenv("OPENLINEAGE_URL", found.url)
        monkeypatch.setenv("OPENLINEAGE_NAMESPACE", "jobs")
        yield found


@pytest.fixture
def shop(tmp_path: Path, warehouse: Location, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """A day that was built and published twice."""
    made = opened(tmp_path, monkeypatch, warehouse)
    made.epoch([Sale(1, "a", 10)])
    build(made, "g", cut=0)
    made.epoch([Sale(2, "a", 1)])
    build(made, "h", cut=1)
    return made


def test_a_rollback_tells_what_answers_since(shop: Shop, received: Received) -> None:
    """Of the interval and the view that it is about, by its reason; no run of Airflow is its parent."""
    assert main(["rollback", "shop.sales", DAYS[0], "--to", "g", "--reason", "wrong prices"]) == 0
    start, complete = received.events
    assert (start["eventType"], complete["eventType"]) == ("START", "COMPLETE")
    assert start["run"]["runId"] == complete["run"]["runId"]
    assert complete["job"]["name"] == "seamline.shop.rollback"
    facts = complete["run"]["facets"]["seamline_batch"]
    assert (facts["intervals"], facts["reason"]) == ([DAYS[0]], "wrong prices")
    assert "parent" not in complete["run"]["facets"]
    [served] = complete["outputs"]
    assert served["name"] == str(shop.layout.serving(shop.view))
    assert served["facets"]["version"]["datasetVersion"] == str(read_version(shop.layout.serving(shop.view)))
    assert [each["name"] for each in complete["inputs"]] == [str(shop.layout.generations(shop.view))]


def test_a_rollback_that_is_refused_says_why(shop: Shop, received: Received) -> None:
    """And fails as it would without a server."""
    assert main(["rollback", "shop.sales", DAYS[0], "--to", "none", "--reason", "x"]) != 0
    assert received.states == ["START", "FAIL"]


def test_an_import_is_one_run_whoever_tells_of_it(
    shop: Shop, received: Received, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One process asks, another sees it through: the decision names the run. From the files, to the log."""
    tell_import(shop.layout, ASKED, RunState.START)
    ask_for_import(ControlTable.ensure(shop.layout), ASKED, (), ())
    monkeypatch.setattr(import_process, "is_import_open", lambda *given: False)
    assert import_process.take_part("shop", shop.layout, lambda line: None, ids=["abc", "other"])
    start, complete = received.events
    assert (start["eventType"], complete["eventType"]) == ("START", "COMPLETE")
    assert start["run"]["runId"] == complete["run"]["runId"]
    assert (complete["job"]["namespace"], complete["job"]["name"]) == ("jobs", "seamline.shop.import")
    [read] = complete["inputs"]
    assert (read["namespace"], read["name"]) == ("s3://past", "sales")
    master, quarantine = complete["outputs"]
    assert master["facets"]["version"]["datasetVersion"] == str(read_version(shop.layout.table("master")))
    assert quarantine["name"] == str(shop.layout.table("quarantine"))
    assert complete["run"]["facets"]["seamline_batch"]["reason"] == "history"


def test_an_import_that_is_not_over_has_no_end(
    shop: Shop, received: Received, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sensor looks at it every few seconds."""
    monkeypatch.setattr(import_process, "is_import_open", lambda *given: True)
    monkeypatch.setattr(import_process, "run_import_driver", lambda *given: None)
    assert not import_process.take_part("shop", shop.layout, lambda line: None, ids=["abc"])
    assert received.events == []


def test_a_cancelled_import_is_aborted(
    shop: Shop, received: Received, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With who has cancelled it, and why."""
    monkeypatch.setattr(
        import_lineage, "list_imports", lambda layout: (replace(ASKED, cancelled="ada: wrong files"),)
    )
    tell_ended_imports(shop.layout, ["abc"])
    [event] = received.events
    assert event["eventType"] == "ABORT"
    assert event["run"]["facets"]["errorMessage"]["message"] == "ada: wrong files"
