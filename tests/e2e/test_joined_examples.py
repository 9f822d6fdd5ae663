"""The shipped examples of joins, whole: generators, Kafka, streams under Airflow, builds, and a row that comes late."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count, islice
from pathlib import Path

import pytest
from tests.e2e.joined_oracle import LATE
from tests.e2e.joined_world import WITHIN, Example, eventually
from tests.e2e.world import ROOT, Resident
from tests.faults.rig.processes import end_all
from tests.ports import free_ports

from seamline.kafka.connections import KafkaConnection
from seamline.local.airflow import AirflowStandalone
from seamline.local.generators import GENERATORS, Load
from seamline.local.sending import send_records
from seamline.model.time.intervals import parse_moment

pytestmark = pytest.mark.faults
SENT: Mapping[str, Sequence[str]] = {
    "ad_attribution": ("--from", "2026-03-01T09:00", "--seconds", "10800", "--rate", "2"),
    "interval_join": ("--from", "2026-03-01T09:57", "--seconds", "299", "--rate", "20"),
    "orders_shipped": ("--from", "2026-03-01", "--seconds", "432000", "--rate", "0.05"),
}
"""Three hours; five minutes over an hour's end, where billing falls silent; five days."""
BUILT = {
    "ad_attribution": ("2026-03-01T09:00:00Z", "2026-03-01T12:00:00Z"),
    "interval_join": ("2026-03-01T09:00:00Z", "2026-03-01T10:00:00Z"),
    "orders_shipped": ("2026-03-01T00:00:00Z", "2026-03-06T00:00:00Z"),
}
"""What has closed then."""


class Stage:
    """The examples, and an Airflow over all of them."""

    def __init__(self, home: Path, kafka: KafkaConnection, driver: Resident) -> None:
        self.home = home
        self.examples = {name: Example(home, kafka, name, BUILT[name]) for name in SENT}
        settings = {
            **next(iter(self.examples.values())).settings,
            "AIRFLOW_CONN_SPARK_DEFAULT": driver.connection,
            "SEAMLINE_RECONCILE_SECONDS": "15",
        }
        self.airflow = AirflowStandalone(home / "airflow", free_ports(3), root=ROOT, env=settings)

    def await_scheduled(self, name: str) -> None:
        """Let the batch DAG of an example run as it is scheduled, once."""
        api, dag = self.airflow.api, f"{name}__batch"
        api.unpause(dag)
        first = eventually("a scheduled run", lambda: api.runs(dag, "scheduled"))[-1]
        assert api.await_run(dag, first["dag_run_id"], timeout=WITHIN) == "success"
        api.call("PATCH", f"/dags/{dag}?update_mask=is_paused", {"is_paused": True})

    def run_dirty(self, name: str) -> None:
        """Let the batch DAG build what is dirty, as a person asks for it."""
        api, dag = self.airflow.api, f"{name}__batch"
        api.unpause(dag)
        assert api.await_run(dag, api.trigger(dag, {"reason": "a late row"}), timeout=WITHIN) == "success"


@pytest.fixture(scope="module")
def stage(
    kafka: KafkaConnection, driver: Resident, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stage]:
    """Have Airflow up."""
    made = Stage(tmp_path_factory.mktemp("examples"), kafka, driver)
    made.airflow.start()
    try:
        yield made
    finally:
        made.airflow.stop()
        end_all(made.home)


@pytest.fixture(params=sorted(SENT))
def example(request: pytest.FixtureRequest, stage: Stage) -> Iterator[Example]:
    """Have an example's topics, and its stream up by the DAG that keeps it."""
    made = stage.examples[request.param]
    made.create_topics()
    api = stage.airflow.api
    # While it reads all DAGs for the first time an answer may take longer than people would wait.
    api.timeout = WITHIN
    api.unpause(f"{made.name}__stream")
    eventually("the stream to come up", (stage.home / "streams" / made.name / "driver.json").exists)
    yield made
    made.seamline("stream", "stop", made.name, "--reason", "the end")
    made.delete_topics()


def close(example: Example) -> None:
    """Have the last interval closed: by declaration, or because one side is silent while the other goes on."""
    if example.name != "interval_join":
        example.drain()
        return
    numbers, at = count(), parse_moment("2026-03-01T10:01:59Z")

    def ask() -> None:
        row = {"token": f"later-{next(numbers)}", "route": "/buy", "at": at.isoformat()}
        example.send("examples.gateway", row, int(at.timestamp() * 1000))

    reached = "2026-03-01T10:01:00Z"
    eventually("billing to count as idle", lambda: example.has_passed(reached), meanwhile=ask)
    assert example.held()["examples.billing"]["at"].max() < "2026-03-01T10:00:01", (
        "it would have held that back"
    )
    eventually("all to be read", example.is_read)


def go_on(example: Example) -> None:
    """Send what the silent side has to say when it is back, some of it of the hour that was built."""
    if example.name == "interval_join":
        load = Load(7, 20, 20 * 400, parse_moment("2026-03-01T09:57"))
        rest = islice(GENERATORS[example.name].records(load), 20 * 299, None)
        send_records(example.kafka, "examples.gateway", rest)
        eventually("the rest to be read", example.is_read)


def test_an_example_is_right_from_its_generator_to_the_reader(example: Example, stage: Stage) -> None:
    """Both layers count the pairs that the topics hold: before a build, after it, and when a partner comes late."""
    example.produce(*SENT[example.name])
    eventually("all to be read", example.is_read)
    assert example.differences() == ""
    close(example)
    assert example.differences() == ""
    stage.await_scheduled(example.name)
    assert example.differences() == ""
    assert example.differences("speed") == ""
    assert example.differences("batch", closed=True) == ""
    example.require_certified()
    example.audit()
    go_on(example)
    assert example.differences() == ""
    late = LATE[example.name](example.held(), (example.start, example.end))
    before = example.explain(late)
    example.send(late.topic, late.row, late.at_ms)
    eventually("the late row to be read", example.is_read)
    assert example.differences() == ""
    assert example.differences("batch", closed=True) != "", "what was built is as it was"
    assert example.explain(late) != before
    interval = example.pipeline.grid.of(parse_moment(late.window)).id
    said = example.seamline("plan", example.name, "--why")
    [told] = [line for line in said.splitlines() if line.startswith(f"  build {interval} ")]
    assert told.endswith("derived rows changed")
    assert "changes of derived rows since epoch" in said
    stage.run_dirty(example.name)
    assert example.differences() == ""
    assert example.differences("batch", closed=True) == ""
    example.explain(late)
    example.require_certified()
    assert "  build " not in example.seamline("plan", example.name)
    example.audit()
