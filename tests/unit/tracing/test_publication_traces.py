"""Spans of a publication: what it does one after the other, within the task that publishes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tests.unit.past import build
from tests.unit.shop import Sale, Shop, opened

from seamline.cli import main
from seamline.lake.publish.publishing import publish_run
from seamline.lake.store.locations import Location
from seamline.model.errors import PublishRefused
from seamline.tracing import process_traces
from seamline.tracing.traced_publication import publish_traced

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PARTS = ["publish.check", "publish.commit", "publish.serve"]


@pytest.fixture
def shop(tmp_path: Path, warehouse: Location, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """A day that is built and certified, and not published."""
    made = opened(tmp_path, monkeypatch, warehouse)
    made.epoch([Sale(1, "a", 10)])
    build(made, "g", cut=0, publish=False)
    return made


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """What the collector has got; the SDK exports it later, unless it is told to at once."""
    exporter = InMemorySpanExporter()
    monkeypatch.setenv("TRACEPARENT", f"00-{TRACE}-{SPAN}-01")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=3_600_000))
    monkeypatch.setattr("seamline.tracing.exported_spans.open_provider", lambda: provider)
    monkeypatch.setattr(process_traces, "PATIENCE", 60)
    process_traces.open_spans.cache_clear()
    yield exporter
    process_traces.open_spans.cache_clear()
    provider.shutdown()


def list_parts(found: tuple[ReadableSpan, ...]) -> list[str]:
    """Name the parts of a publication, each within the whole, which is within the span that has started it."""
    *parts, whole = found
    assert whole.name == "publish" and whole.parent and whole.context
    assert (f"{whole.context.trace_id:032x}", f"{whole.parent.span_id:016x}") == (TRACE, SPAN)
    for each in parts:
        assert each.parent and each.parent.span_id == whole.context.span_id
    return [each.name for each in parts]


def test_a_publication_has_spans_that_are_exported_as_it_ends(shop: Shop, kept: InMemorySpanExporter) -> None:
    """A task's process is gone before the SDK would export by itself; what it is about is on the spans."""
    publish_traced(shop.compiled, shop.layout, "run-g")
    found = kept.get_finished_spans()
    assert list_parts(found) == PARTS
    assert dict(found[-1].attributes or {}) == {"seamline.pipeline": "shop", "seamline.run": "run-g"}
    assert dict(found[2].attributes or {}) == {"seamline.view": "sales", "seamline.intervals": 1}


def test_a_publication_that_is_refused_says_why(shop: Shop, kept: InMemorySpanExporter) -> None:
    """On the part that refuses, and on the whole; nothing is served."""
    build(shop, "h", cut=0, passed=False, publish=False)
    with pytest.raises(PublishRefused):
        publish_traced(shop.compiled, shop.layout, "run-h")
    found = kept.get_finished_spans()
    assert list_parts(found) == PARTS[:2]
    assert [[event.name for event in each.events] for each in found] == [[], ["exception"], ["exception"]]


def test_the_command_has_the_spans_as_well(shop: Shop, kept: InMemorySpanExporter) -> None:
    """As the task has."""
    assert main(["publish", "shop", "--run", "run-g"]) == 0
    assert list_parts(kept.get_finished_spans()) == PARTS


def test_without_a_collector_nothing_is_measured(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same is published by the same parts."""
    named: list[str] = []

    def phase(name: str, **attributes: str | int) -> AbstractContextManager[None]:
        named.append(name)
        return process_traces.traced(name, **attributes)

    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    process_traces.open_spans.cache_clear()
    done = publish_run(shop.compiled, shop.layout, "run-g", phase=phase)
    assert len(done.statements) == 1
    assert named == PARTS
    assert process_traces.open_spans() is None
