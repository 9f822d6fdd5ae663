"""What a build and a publication tell, read from real tables, with Airflow's context of their tasks."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from openlineage.client.uuid import generate_static_uuid
from tests.unit.lineage.receiver import Received, receive
from tests.unit.shop import DEFINITION, sales_pipeline

from seamline.lake.log.master import Master
from seamline.lake.publish import publishing
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.builds_table import BuildRow, Builds
from seamline.lake.tables.certificates_table import Certificates
from seamline.lake.tables.generations import Generations
from seamline.model.protocol.certificate_checks import Certificate, Check
from seamline.model.protocol.job_arguments import BuildJob
from seamline.model.time.intervals import Interval
from seamline.orchestration.lineage.reported_tasks import report_build, report_publication

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SHOP = sales_pipeline()
VIEW = SHOP.views[0]
DAYS = ("2013-01-01T00:00:00Z", "2013-01-02T00:00:00Z")
RUN = "scheduled__2026-01-01"
JOB = BuildJob(
    "shop", RUN, 5, (Interval(SHOP.grid.named(DAYS[0]).start, SHOP.grid.named(DAYS[1]).end),), "new days"
)


@pytest.fixture
def received(monkeypatch: pytest.MonkeyPatch) -> Iterator[Received]:
    """A server, by the client's setting and the namespace of Airflow's provider."""
    with receive() as found:
        monkeypatch.setenv("OPENLINEAGE_URL", found.url)
        monkeypatch.setenv("AIRFLOW__OPENLINEAGE__NAMESPACE", "jobs")
        yield found


@pytest.fixture
def layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    """Tables of a pipeline that is defined in a folder."""
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines" / "shop.py").write_text(DEFINITION)
    monkeypatch.setenv("SEAMLINE_PIPELINES", str(tmp_path / "pipelines"))
    monkeypatch.setattr(publishing, "refresh_serving", lambda *given: None)
    return Layout(tmp_path / "lake", "shop")


def context_of(task: str) -> Any:
    """Return what Airflow gives a task of a run without a logical date."""
    run = SimpleNamespace(dag_id="shop__batch", run_id=RUN, logical_date=None, run_after=NOW, clear_number=2)
    return {"dag_run": run, "ti": SimpleNamespace(task_id=task, try_number=3, map_index=-1)}


def build(layout: Layout) -> None:
    """Write what a build and a certification leave behind."""
    rows = [BuildRow(RUN, VIEW.id, day, "g", 5, 7, 9, 9, 0, 0, "", 0.1, "new days", NOW) for day in DAYS]
    Builds.ensure(layout).append(rows)
    Generations.ensure(layout, VIEW)
    checks = (Check("rows", True, ""),)
    Certificates.ensure(layout).append(
        [
            Certificate(
                VIEW.name, VIEW.fingerprint, "g", SHOP.grid.named(day), 5, RUN, "new days", NOW, checks
            )
            for day in DAYS
        ]
    )


def test_a_build_tells_what_it_read_and_wrote(layout: Layout, received: Received) -> None:
    """Of which version of the master, up to which cut, for which run of Airflow's."""
    master = Master.ensure(layout, SHOP).table.version
    with report_build(context_of("build"), JOB, layout):
        build(layout)
    start, complete = received.events
    assert (start["eventType"], complete["eventType"]) == ("START", "COMPLETE")
    assert complete["job"] == start["job"]
    assert (complete["job"]["namespace"], complete["job"]["name"]) == ("jobs", "seamline.shop.build")
    facts = complete["run"]["facets"]["seamline_batch"]
    assert (facts["airflowRunId"], facts["cut"], facts["intervals"]) == (RUN, 5, list(DAYS))
    parent = complete["run"]["facets"]["parent"]
    assert parent["run"]["runId"] == str(generate_static_uuid(NOW, b"jobs.shop__batch.build.3.-1"))
    assert parent["root"]["run"]["runId"] == str(generate_static_uuid(NOW, b"jobs.shop__batch.2"))
    [read] = complete["inputs"]
    assert read["name"] == str(layout.table("master"))
    assert read["facets"]["version"]["datasetVersion"] == str(master)
    [written] = complete["outputs"]
    assert written["name"] == str(layout.generations(VIEW))
    assert written["outputFacets"]["outputStatistics"]["rowCount"] == 14
    assert written["facets"]["version"]["datasetVersion"] == "0"
    assert "version" not in start["outputs"][0]["facets"]


def test_a_publication_tells_what_answers_now(layout: Layout, received: Received) -> None:
    """With the checks of what was certified; the run is another job's than the build's, under the same DAG."""
    build(layout)
    with report_publication(context_of("publish"), layout):
        publishing.publish_run(SHOP, layout, RUN)
    start, complete = received.events
    assert start["run"]["facets"]["seamline_batch"]["intervals"] == []
    facts = complete["run"]["facets"]["seamline_batch"]
    assert (facts["cut"], facts["intervals"], facts["intervalCount"]) == (5, list(DAYS), 2)
    assert complete["job"]["name"] == "seamline.shop.publish"
    [read] = complete["inputs"]
    assert [each["success"] for each in read["inputFacets"]["dataQualityAssertions"]["assertions"]] == [True]
    [served] = complete["outputs"]
    assert served["name"] == str(layout.serving(VIEW))
    assert {*served["facets"]["columnLineage"]["fields"]} == {"customer", "orders", "total", "largest"}


def test_a_build_that_fails_says_why(layout: Layout, received: Received) -> None:
    """And is raised as it was."""
    with pytest.raises(RuntimeError, match="no space"), report_build(context_of("build"), JOB, layout):
        raise RuntimeError("no space left")
    assert received.states == ["START", "FAIL"]
    assert received.events[1]["run"]["facets"]["errorMessage"]["message"] == "RuntimeError: no space left"
