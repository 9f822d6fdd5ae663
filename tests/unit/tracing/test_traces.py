"""Spans of epochs and builds: what the SDK is given, and what a collector gets over HTTP."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.offsets import Lane, OffsetRange
from seamline.plan.stream.phase_spans import PhaseSpan, list_epoch_spans
from seamline.spark.stream.epoch_timing import EpochTiming
from seamline.tracing import epoch_traces, process_traces
from seamline.tracing.configuration import is_traced
from seamline.tracing.epoch_traces import EpochTraces
from seamline.tracing.exported_spans import LoggedOnce, Spans

NOW = datetime(2026, 3, 1, tzinfo=UTC)
EPOCH = Epoch(
    7,
    3,
    NOW,
    "v1",
    ranges=(OffsetRange(Lane("t", 0), 2, 12),),
    accepted={"2026-03-01": 8},
    refused={"rule": 2},
)
PHASES = {"planned": 0.25, "files": 0.5, "master": 0.125}
TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.fixture
def kept() -> InMemorySpanExporter:
    """Spans that the SDK keeps in memory."""
    return InMemorySpanExporter()


@pytest.fixture
def spans(kept: InMemorySpanExporter) -> Spans:
    """The spans of a process."""
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(kept))
    return Spans(provider)


@pytest.fixture(autouse=True)
def opened() -> Iterator[None]:
    """Let each test be a process of its own."""
    process_traces.open_spans.cache_clear()
    yield
    process_traces.open_spans.cache_clear()


def test_phases_follow_each_other() -> None:
    """The first begins with the epoch, and each where the one before it ended."""
    whole, *parts = list_epoch_spans("orders", EPOCH, PHASES, 2_000_000_000)
    assert (whole.name, whole.start, whole.end) == ("epoch", 1_125_000_000, 2_000_000_000)
    assert whole.attributes["seamline.epoch"] == 7
    assert (whole.attributes["seamline.offsets"], whole.attributes["seamline.rows"]) == (10, 8)
    assert parts == [
        PhaseSpan("epoch.planned", 1_125_000_000, 1_375_000_000),
        PhaseSpan("epoch.files", 1_375_000_000, 1_875_000_000),
        PhaseSpan("epoch.master", 1_875_000_000, 2_000_000_000),
    ]


def test_an_epoch_is_a_trace(spans: Spans, kept: InMemorySpanExporter) -> None:
    """Its phases are within it, at the times that they took."""
    spans.add(list_epoch_spans("orders", EPOCH, PHASES, 2_000_000_000))
    *parts, whole = kept.get_finished_spans()
    assert whole.name == "epoch"
    assert whole.parent is None
    assert [each.parent and each.parent.span_id for each in parts] == [whole.context.span_id] * 3
    assert [each.name for each in parts] == ["epoch.planned", "epoch.files", "epoch.master"]
    assert [(each.end_time or 0) - (each.start_time or 0) for each in parts] == [
        250_000_000,
        500_000_000,
        125_000_000,
    ]


def test_a_build_is_within_the_task_that_has_started_it(
    kept: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch, spans: Spans
) -> None:
    """By W3C's header in a variable; a block within another is its child, and an error is on both."""
    monkeypatch.setenv("TRACEPARENT", f"00-{TRACE}-{SPAN}-01")
    monkeypatch.setattr(process_traces, "open_spans", lambda: Spans(spans.provider))

    def fail() -> None:
        with process_traces.traced("build", run="r1"):
            with process_traces.traced("build.certify"):
                pass
            raise ValueError("no such row")

    with pytest.raises(ValueError, match="no such row"):
        fail()
    inner, outer = kept.get_finished_spans()
    assert (inner.name, outer.name) == ("build.certify", "build")
    assert inner.parent is not None
    assert outer.parent is not None
    assert inner.parent.span_id == outer.context.span_id
    assert (f"{outer.context.trace_id:032x}", f"{outer.parent.span_id:016x}") == (TRACE, SPAN)
    assert dict(outer.attributes or {}) == {"seamline.run": "r1"}
    assert outer.events[0].name == "exception"


def test_the_span_around_a_start_is_the_parent_of_what_is_started(spans: Spans) -> None:
    """A build's process finds it; outside of any span there is none."""
    assert process_traces.trace_parent_env() == {}
    with spans.span("task", {}):
        assert process_traces.trace_parent_env()["TRACEPARENT"].startswith("00-")


def test_epochs_are_told_when_they_end() -> None:
    """With all phases, and to nobody where there is no collector."""
    told: list[tuple[int, Mapping[str, float]]] = []
    timing = EpochTiming()
    timing.end(EPOCH)
    timing.told = lambda epoch, seconds: told.append((epoch.number, seconds))
    timing.begin()
    timing.mark("planned")
    timing.end(EPOCH)
    [(number, seconds)] = told
    assert (number, list(seconds)) == (7, ["planned"])


def test_epochs_wait_for_no_trace(
    spans: Spans, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Those that find the queue full have none, which is logged once."""
    go_on = threading.Event()
    monkeypatch.setattr(epoch_traces, "MOST", 1)
    monkeypatch.setattr(spans, "add", lambda found: go_on.wait(60))
    traces = EpochTraces("orders", spans)
    for _ in range(5):
        traces.tell(EPOCH, PHASES)
    go_on.set()
    assert traces.dropped in (3, 4)
    assert caplog.text.count("some have no trace") == 1
    spans.flush(60)


def test_a_collector_that_is_away_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """And that it is back; the exporter would log each attempt."""
    results = [SpanExportResult.FAILURE, SpanExportResult.FAILURE, SpanExportResult.SUCCESS]
    inner = SimpleNamespace(export=lambda spans: results.pop(0))
    exporter = LoggedOnce(inner)  # type: ignore[arg-type]
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            exporter.export([])
    assert [each.message for each in caplog.records] == [
        "Traces are not exported: the collector of OTEL_EXPORTER_OTLP_ENDPOINT takes none.",
        "Traces are exported again; 2 batches were dropped.",
    ]


def test_a_collector_gets_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the official exporter, over HTTP, with the name of the service."""
    taken: list[ExportTraceServiceRequest] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/traces"
            body = self.rfile.read(int(self.headers["Content-Length"]))
            taken.append(ExportTraceServiceRequest.FromString(body))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setattr(process_traces, "PATIENCE", 60)
    try:
        tell = process_traces.trace_epochs("orders")
        assert tell is not None
        tell(EPOCH, PHASES)
        process_traces.flush_traces()
    finally:
        found = process_traces.open_spans()
        assert found is not None
        found.provider.shutdown()
        server.shutdown()
        server.server_close()
        thread.join()
    [resource] = [each for request in taken for each in request.resource_spans]
    service = {each.key: each.value.string_value for each in resource.resource.attributes}
    assert service["service.name"] == "seamline"
    assert sorted(each.name for each in resource.scope_spans[0].spans) == [
        "epoch",
        "epoch.files",
        "epoch.master",
        "epoch.planned",
    ]


@pytest.mark.parametrize(
    ("settings", "traced"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_SDK_DISABLED": "true"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_TRACES_EXPORTER": "none"}, False),
    ],
)
def test_the_variables_of_the_sdk_decide(settings: Mapping[str, str], *, traced: bool) -> None:
    """A collector is named, and nothing turns traces off."""
    assert is_traced(settings) is traced


def test_without_a_collector_nothing_is_imported() -> None:
    """And nothing is called at the end of an epoch."""
    code = """
import sys
from seamline.tracing.process_traces import flush_traces, trace_epochs, traced
assert trace_epochs("orders") is None
with traced("build"):
    pass
flush_traces()
found = [name for name in sys.modules if name.startswith(("opentelemetry", "seamline.tracing.exported"))]
assert not found, found
"""
    env = {name: value for name, value in os.environ.items() if not name.startswith("OTEL")}
    subprocess.run([sys.executable, "-c", code], check=True, env=env)
