"""How sinks do, in numbers: up, how far behind, and how much was sent."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from tests.unit.shop import DAY, START, Sale, Shop
from tests.unit.sinks.memory_target import MemoryTarget, Store

from seamline import KafkaSink
from seamline.lake.read import serving_table
from seamline.lake.status.sink_words import read_sink_words, write_sink_words
from seamline.lake.store.locations import Location
from seamline.lake.tables.sinks.recorded_positions import read_copy, replace_copy
from seamline.lake.tables.sinks.served_versions import read_commit_time
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.time.intervals import parse_moment
from seamline.sinks.sink_runner import SinkRunner
from seamline.sinks.sink_states import SILENT_AFTER, SinkState, read_sink_states
from seamline.supervisor.metrics import sink_metrics
from seamline.supervisor.metrics.metric_families import PipelineCollector
from seamline.supervisor.metrics.sink_metrics import SINK_FAMILIES, SinkReader

SINK = KafkaSink("sales", topic="sales.out")


@pytest.fixture
def shop(
    warehouse: Location, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Shop:
    """A shop with a sink, some rows of which are shown."""
    monkeypatch.setenv("SEAMLINE_HOME", str(tmp_path_factory.mktemp("home")))
    made = Shop(warehouse)
    made.compiled = replace(made.compiled, definition=replace(made.compiled.definition, sinks=[SINK]))
    made.epoch([Sale(1), Sale(70, "b")], watermark=START + DAY)
    return made


def show(shop: Shop) -> None:
    """Bring the serving table up to date."""
    serving_table.refresh_serving_table(shop.compiled, shop.layout, shop.view)


def read(shop: Shop, now: datetime) -> SinkState:
    """Read how the sink does."""
    [found] = read_sink_states(shop.compiled, shop.layout, now).sinks
    return found


def send_once(shop: Shop) -> None:
    """Send what is served to a target in memory."""
    store, stop = Store(), threading.Event()
    SinkRunner(
        shop.compiled, shop.layout, SINK, stop, once=True, opening=lambda *_: MemoryTarget(store)
    ).run()


@pytest.mark.everywhere
def test_a_sink_is_up_and_behind_by_versions_and_seconds(shop: Shop) -> None:
    """Nothing is served, then not sent, then sent, then shown again; a process that says nothing is dead."""
    assert read(shop, START) == SinkState(SINK.id, False, None, 0.0, None)
    show(shop)
    never = read(shop, START)
    assert (never.up, never.behind_seconds) == (False, None) and never.behind
    send_once(shop)
    copy, words = read_copy(shop.layout, SINK.id), read_sink_words("shop", SINK.id)
    assert copy and words
    sent_at = parse_moment(copy.at)
    assert read(shop, sent_at) == SinkState(SINK.id, False, 0, 0.0, 2)
    write_sink_words("shop", SINK.id, replace(words, state="waiting"))
    assert read(shop, parse_moment(words.at)).up
    assert not read(shop, parse_moment(words.at) + SILENT_AFTER).up
    shop.epoch([Sale(2)])
    show(shop)
    since = read_commit_time(shop.layout.serving(shop.view), copy.position.version + 1)
    assert since is not None
    late = read(shop, since + timedelta(seconds=90))
    assert (late.behind, late.behind_seconds) == (1, 90.0)


def test_a_quiet_day_is_no_lag(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """An alarm would ring at the first row after it: what counts is the first version that is not shown."""
    show(shop)
    send_once(shop)
    copy = read_copy(shop.layout, SINK.id)
    assert copy
    replace_copy(shop.layout, SINK.id, replace(copy, at="2013-01-01T00:00:00Z"))
    shop.epoch([Sale(2)])
    show(shop)
    since = read_commit_time(shop.layout.serving(shop.view), copy.position.version + 1)
    assert since is not None
    shop.epoch([Sale(3)])
    show(shop)
    found = read(shop, since + timedelta(seconds=2))
    assert (found.behind, found.behind_seconds) == (2, 2.0)
    monkeypatch.setattr("seamline.sinks.feeds.read_commit_time", lambda *_: None)
    assert read(shop, START + timedelta(seconds=5)).behind_seconds == 5.0


def test_prometheus_reads_them_and_a_broken_pipeline_is_in_nobody_s_way(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of pipelines that have sinks."""
    show(shop)
    plain = replace(shop.compiled, definition=replace(shop.compiled.definition, sinks=[]))
    known: dict[str, CompiledPipeline] = {"ruin": shop.compiled, "shop": shop.compiled, "plain": plain}

    def locate(name: str) -> object:
        if name == "ruin":
            raise OSError("the disk is gone")
        return shop.layout

    monkeypatch.setattr(sink_metrics, "locate_tables", locate)
    registry = CollectorRegistry()
    registry.register(PipelineCollector(SINK_FAMILIES, SinkReader(lambda: known).read))
    text = generate_latest(registry).decode()
    assert f'seamline_sink_up{{pipeline="shop",sink="{SINK.id}"}} 0.0' in text
    assert f'seamline_sink_behind_versions{{pipeline="shop",sink="{SINK.id}"}} ' in text
    assert text.count("seamline_sink_up{") == 1
