"""Every event that is made of a shipped pipeline, as a server of OpenLineage takes it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.unit.examples import catalog
from tests.unit.lineage.receiver import Received, receive

from seamline.lake.storage.layout import Layout
from seamline.lineage.courier import Courier
from seamline.lineage.table_names import name_tables
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.protocol.certificate_checks import Certificate, Check
from seamline.model.protocol.offsets import Lane, OffsetRange
from seamline.plan.lineage.batch_events import (
    BatchOutcome,
    BatchRun,
    describe_intervals,
    make_build_event,
    make_publish_event,
    name_batch_run,
    name_parents,
)
from seamline.plan.lineage.lineage_events import LineageEvent, RunState, StreamFacts
from seamline.plan.lineage.run_ids import make_run_id
from seamline.plan.lineage.stream_events import StreamNames, StreamSnapshot, make_stream_event
from seamline.plan.lineage.told_offsets import Step

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
NAMES = sorted(catalog().pipelines)


@pytest.fixture
def received(monkeypatch: pytest.MonkeyPatch) -> Iterator[Received]:
    """A server, and the client's setting that names it."""
    with receive() as found:
        monkeypatch.setenv("OPENLINEAGE_URL", found.url)
        yield found


def tell(received: Received, *events: LineageEvent) -> list[dict[str, Any]]:
    """Send events by the official client; return what the server has taken."""
    courier = Courier()
    assert [courier.deliver(each) for each in events] == [True] * len(events)
    assert received.problems == []
    return received.events


def make_names(pipeline: CompiledPipeline) -> StreamNames:
    """Name the datasets of a pipeline whose warehouse is a folder."""
    layout = Layout(Path("/lake/tables"), pipeline.name)
    ids = {topic: f"id-of-{topic}" for topic in pipeline.definition.topics}
    return StreamNames("shop", "broker:9092,other:9092", ids, name_tables(pipeline, layout))


def make_batch(pipeline: CompiledPipeline) -> BatchRun:
    """Name a run of a pipeline's batch DAG."""
    dag = f"{pipeline.name}__batch"
    return BatchRun(
        name_batch_run("shop", pipeline.name, "build", NOW, f"{dag}.build.manual.1"),
        name_parents("shop", dag, "build", NOW, attempt=1, mapped=-1, cleared=0),
        pipeline,
        make_names(pipeline).tables,
    )


def snapshot_of(pipeline: CompiledPipeline, names: StreamNames) -> StreamSnapshot:
    """Return a stream that has read five records of every topic."""
    return StreamSnapshot(
        NOW,
        {Lane(id, 0): 5 for id in names.topic_ids.values()},
        StreamFacts(pipeline.name, 3, 7, "2026-03-01T11:00:00Z", {"v/1": 6}),
        {"master": 8, "quarantine": 2, **{view.id: 9 for view in pipeline.views}},
        {each.name: "v1" for each in pipeline.lookups},
    )


@pytest.mark.parametrize("name", NAMES)
def test_streams_events_are_read_by_the_clients_classes(name: str, received: Received) -> None:
    """A field that the specification has not, or that lacks, would be refused by a server, or lost in silence."""
    pipeline = catalog().pipeline(name)
    names = make_names(pipeline)
    here = snapshot_of(pipeline, names)
    ranges = tuple(OffsetRange(lane, 2, 5) for lane in here.vector)
    run = str(make_run_id(NOW, name))
    states = [RunState.START, RunState.RUNNING, RunState.FAIL]
    steps = [
        Step(state, run, ranges, "Boom: it failed" if state is RunState.FAIL else "") for state in states
    ]
    start, running, fail = tell(received, *(make_stream_event(pipeline, names, each, here) for each in steps))
    assert fail["run"]["facets"]["errorMessage"]["message"] == "Boom: it failed"
    assert start["job"]["facets"]["jobType"]["processingType"] == "STREAMING"
    tables = {each["name"]: each for each in running["outputs"]}
    assert tables[f"/lake/tables/{name}/master"]["facets"]["version"]["datasetVersion"] == "8"
    told = [each["inputFacets"]["seamline_offsets"] for each in running["inputs"] if each.get("inputFacets")]
    assert sum(each["offsets"] for each in told) == 3 * len(ranges)
    assert len(str(running)) < len(str(start))


@pytest.mark.parametrize("name", NAMES)
def test_batch_events_are_read_by_the_clients_classes(name: str, received: Received) -> None:
    """The run of Airflow is the parent, and what checks have found is on what is published."""
    pipeline = catalog().pipeline(name)
    batch, view = make_batch(pipeline), pipeline.views[0]
    facts = describe_intervals(name, "manual__1", 7, [f"2026-03-{day:02}" for day in range(1, 5)], "asked")
    interval = pipeline.grid.of(NOW)
    checks = (Check("ranges", True, "no hole"), Check("rows", False, "1 lacks"))
    red = Certificate(view.name, view.fingerprint, "g", interval, 7, "manual__1", "asked", NOW, checks)
    green = replace(red, checks=tuple(replace(each, passed=True) for each in checks))
    outcome = BatchOutcome(
        NOW,
        RunState.COMPLETE,
        facts,
        versions={"master": 8, view.id: 4},
        served={view.name: 11},
        rows={view.id: 40},
        certificates=[red, green],
    )
    built, published = tell(received, make_build_event(batch, outcome), make_publish_event(batch, outcome))
    parent = built["run"]["facets"]["parent"]
    assert parent["job"] == {"namespace": "shop", "name": f"{name}__batch.build", "facets": {}}
    assert parent["root"]["job"]["name"] == f"{name}__batch"
    assert built["run"]["facets"]["seamline_batch"]["airflowRunId"] == "manual__1"
    assert built["inputs"][0]["facets"]["version"]["datasetVersion"] == "8"
    assert built["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] == 40
    found = published["inputs"][0]["inputFacets"]["dataQualityAssertions"]["assertions"]
    assert {each["assertion"]: each["success"] for each in found} == {"ranges": True, "rows": False}
    assert published["outputs"][0]["facets"]["version"]["datasetVersion"] == "11"


def test_a_wrong_event_is_noticed(received: Received) -> None:
    """The server would take anything, were it not for the classes."""
    wrong = b'{"eventType": "START", "eventTime": "2026-03-01T12:00:00Z", "producer": "pkg:pypi/seamline@1"}'
    received.take(wrong)
    assert len(received.problems) == 1
    received.problems.clear()


def test_a_server_that_is_away_is_logged_once(
    received: Received, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line for each attempt would be all that a log has."""
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__TYPE", "http")
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__URL", received.url)
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__RETRY", '{"total": 1, "backoff_factor": 0}')
    received.answer = lambda: 400
    pipeline = catalog().pipeline(NAMES[0])
    event = make_build_event(
        make_batch(pipeline), BatchOutcome(NOW, RunState.START, describe_intervals("p", "r", 1, []))
    )
    courier = Courier()
    with caplog.at_level(logging.INFO):
        assert [courier.deliver(event) for _ in range(3)] == [False] * 3
        received.answer = lambda: 200
        assert courier.deliver(event)
    said = [each.message for each in caplog.records if each.name == "seamline.lineage"]
    assert len(said) == 2
    assert said[0].startswith("Lineage is not told, and is tried again: ")
    assert said[1] == "Lineage is told again, after 3 attempts."
