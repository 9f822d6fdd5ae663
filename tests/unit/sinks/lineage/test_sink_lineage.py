"""What a sink tells of its lineage: one life, each version once, also those of a process that was killed."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from tests.faults.rig.trial import eventually
from tests.unit.lineage.receiver import Received, receive
from tests.unit.shop import DAY, START, Sale, Shop
from tests.unit.sinks.memory_target import MemoryTarget, Store

from seamline import FileSink, KafkaSink, PostgresSink, RedisSink
from seamline.lake.read import serving_table
from seamline.lake.storage.layout import home_folder
from seamline.lake.store.locations import Location
from seamline.lineage import stream_reporter
from seamline.lineage.stream_reporter import StreamReporter
from seamline.model.definition.sinks.sink_base import AnySink
from seamline.sinks.lineage.sink_lineage import SinkLineage
from seamline.sinks.lineage.target_names import name_target
from seamline.sinks.sink_runner import SinkRunner

SINK = KafkaSink("sales", topic="sales.out")


@pytest.fixture
def received(monkeypatch: pytest.MonkeyPatch) -> Iterator[Received]:
    """A server, and the connection of the sink."""
    monkeypatch.setattr(stream_reporter, "PATIENCE", 60)
    with receive() as found:
        monkeypatch.setenv("OPENLINEAGE_URL", found.url)
        monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", "kafka://broker:9092")
        yield found


@pytest.fixture
def shop(
    warehouse: Location, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Shop:
    """A shop with a sink, some rows of which are shown."""
    monkeypatch.setenv("SEAMLINE_HOME", str(tmp_path_factory.mktemp("home")))
    made = Shop(warehouse)
    made.compiled = replace(made.compiled, definition=replace(made.compiled.definition, sinks=[SINK]))
    made.epoch([Sale(1), Sale(70, "b")], watermark=START + DAY)
    serving_table.refresh_serving_table(made.compiled, made.layout, made.view)
    return made


def sell(shop: Shop) -> None:
    """Sell something, and show it."""
    shop.epoch([Sale(2)])
    serving_table.refresh_serving_table(shop.compiled, shop.layout, shop.view)


def make_runner(shop: Shop, store: Store) -> SinkRunner:
    """Make a runner of a target in memory, which sends what is there and ends."""
    stop = threading.Event()
    return SinkRunner(
        shop.compiled, shop.layout, SINK, stop, once=True, opening=lambda *_: MemoryTarget(store)
    )


def told(event: Mapping[str, Any]) -> tuple[str, int, int]:
    """Return what an event says: the state, and between which versions it is."""
    facet = event["run"]["facets"]["seamline_sink"]
    return event["eventType"], facet["versionBefore"], facet["version"]


def test_a_sink_tells_its_life(shop: Shop, received: Received) -> None:
    """From the serving table, at the version that the target shows, to the topic, column by column."""
    make_runner(shop, Store()).run()
    start, complete = received.events
    newest = told(complete)[2]
    assert (told(start), told(complete)) == (("START", -1, -1), ("COMPLETE", -1, newest))
    assert (complete["job"]["name"], complete["job"]["facets"]["jobType"]["processingType"]) == (
        "seamline.shop.sink.sales_kafka",
        "STREAMING",
    )
    assert complete["run"]["facets"]["seamline_sink"]["changes"] == 2
    [read], [written] = complete["inputs"], complete["outputs"]
    assert read["name"] == str(shop.layout.serving(shop.view))
    assert read["facets"]["version"]["datasetVersion"] == str(newest)
    assert (written["namespace"], written["name"]) == ("kafka://broker:9092", "sales.out")
    names = {each["name"] for each in written["facets"]["schema"]["fields"]}
    assert {"customer", "window_start", "total"} <= names
    fields = written["facets"]["columnLineage"]["fields"]
    assert {name: fields[name]["inputFields"][0]["field"] for name in names} == {name: name for name in names}


def test_what_a_dead_process_has_sent_is_told_once(
    shop: Shop, received: Received, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next one ends its run, with the versions that the target got meanwhile, and tells its own from there."""
    store = Store()
    with monkeypatch.context() as killed:
        killed.setattr(StreamReporter, "end", lambda self, *given: (self.over.set(), self.thread.join()))
        make_runner(shop, store).run()
    assert [told(each) for each in received.events] == [("START", -1, -1)]
    first = received.events.pop()["run"]["runId"]
    shown = SinkRunner(shop.compiled, shop.layout, SINK, threading.Event()).feed.find_newest()
    sell(shop)
    make_runner(shop, store).run()
    assert [told(each) for each in received.events] == [
        ("ABORT", -1, shown),
        ("START", shown, shown),
        ("COMPLETE", shown, shown + 1),
    ]
    assert [each["run"]["runId"] == first for each in received.events] == [True, False, False]


def test_columns_that_a_server_has_missed_are_told_when_it_is_back(shop: Shop, received: Received) -> None:
    """The view's next version has another column; without it what is told of the run would not add up."""
    view = shop.view
    sending = SimpleNamespace(shown=0, view=view)
    lineage = SinkLineage(shop.compiled, shop.layout, SINK, lambda: sending, lambda: 1)
    lineage.begin()
    eventually("the beginning to be told", lambda: received.states == ["START"])
    assert lineage.reporter
    received.answer = lambda: 400
    sending.view = replace(view, measures=view.measures[:1])
    for sending.shown in (1, 2):
        here = lineage.look()
        assert here
        lineage.reporter.tell(here)
        received.answer = lambda: 201
    assert told(received.events[1]) == ("RUNNING", 0, 2)
    names = {each["name"] for each in received.events[1]["outputs"][0]["facets"]["schema"]["fields"]}
    assert {each.name for each in view.measures} - names == {each.name for each in view.measures[1:]} != set()
    sending.shown = 3
    here = lineage.look()
    assert here
    lineage.reporter.tell(here)
    assert "schema" not in received.events[2]["outputs"][0].get("facets", {})
    lineage.end()


def test_a_sink_that_fails_says_why(shop: Shop, received: Received, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has ended with the error of its last attempt; a server that lacks a connection's name is in no row's way."""

    def refuse(*given: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(MemoryTarget, "write", refuse)
    make_runner(shop, Store()).run()
    assert received.states == ["START", "FAIL"]
    assert "no space left" in received.events[1]["run"]["facets"]["errorMessage"]["message"]


def test_lineage_that_cannot_be_told_is_in_no_rows_way(
    shop: Shop, received: Received, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nor is it tried again and again."""
    monkeypatch.delenv("AIRFLOW_CONN_KAFKA_DEFAULT")
    store = Store()
    runner = make_runner(shop, store)
    runner.run()
    assert runner.error is None and runner.sent == 2
    assert received.events == [] and caplog.text.count("is not told") == 1


def test_without_a_server_nothing_is_kept(shop: Shop) -> None:
    """No file, and no thread."""
    runner = make_runner(shop, Store())
    runner.run()
    assert runner.lineage is None
    assert not list(home_folder().rglob("*.lineage"))


@pytest.mark.parametrize(
    ("sink", "name"),
    [
        (SINK, ("kafka://broker:9092", "sales.out")),
        (PostgresSink("sales", table="sales"), ("postgres://db:5432", "shop.public.sales")),
        (RedisSink("sales", prefix="p:"), ("redis://cache:6379", "2.p:{shop.sales_redis}")),
        (FileSink("sales", path="s3://bucket/sales/"), ("s3://bucket", "sales")),
    ],
    ids=lambda each: each.kind if isinstance(each, AnySink) else "",
)
def test_targets_have_the_names_of_the_specification(sink: AnySink, name: tuple[str, str]) -> None:
    """By the connection of the sink; nothing that is secret is in them."""
    env = {
        "AIRFLOW_CONN_KAFKA_DEFAULT": "kafka://broker:9092",
        "AIRFLOW_CONN_POSTGRES_DEFAULT": "postgres://ada:hush@db/shop",
        "AIRFLOW_CONN_REDIS_DEFAULT": "redis://:hush@cache/2",
    }
    found = name_target(sink, "shop", env)
    assert (found.namespace, found.name) == name
