"""Spans handed to the SDK, which exports them from a thread of its own and drops what does not fit its queue."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import set_span_in_context, use_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from seamline.plan.stream.phase_spans import PhaseSpan
from seamline.version import VERSION

log = logging.getLogger("seamline.tracing")
EXPORTERS_WORDS = logging.getLogger("opentelemetry.exporter.otlp.proto.http.trace_exporter")
PARENT = "TRACEPARENT"
"""The variable that names the span which has started this process, as W3C's header does."""


class Spans:
    """The spans of one process; ``provider`` has where they go."""

    def __init__(self, provider: TracerProvider | None = None) -> None:
        self.provider = provider or open_provider()
        self.tracer = self.provider.get_tracer("seamline", VERSION)
        self.before_flush: list[Callable[[], None]] = []
        """What makes spans of what is known, before the last are exported."""
        self.parent = TraceContextTextMapPropagator().extract({"traceparent": os.environ.get(PARENT, "")})

    def add(self, spans: Sequence[PhaseSpan]) -> None:
        """Add spans that have ended, in a trace of their own: the first is the parent of the others."""
        first, *others = spans
        whole = self.tracer.start_span(first.name, attributes=dict(first.attributes), start_time=first.start)
        within = set_span_in_context(whole)
        for each in others:
            part = self.tracer.start_span(
                each.name, within, attributes=dict(each.attributes), start_time=each.start
            )
            part.end(each.end)
        whole.end(first.end)

    @contextmanager
    def span(self, name: str, attributes: Mapping[str, str | int]) -> Iterator[None]:
        """Measure a block, within the one around it, else within what has started the process; errors are noted."""
        within = None if self.is_within() else self.parent
        with use_span(self.tracer.start_span(name, within, attributes=dict(attributes)), end_on_exit=True):
            yield

    def is_within(self) -> bool:
        """Return whether a block of ours is being measured."""
        from opentelemetry.trace import get_current_span

        return get_current_span().get_span_context().is_valid

    def flush(self, seconds: float) -> None:
        """Export what has not been, within so many seconds: a collector may be away."""

        def work() -> None:
            for each in self.before_flush:
                each()
            self.provider.force_flush()

        thread = threading.Thread(target=work, name="traces", daemon=True)
        thread.start()
        thread.join(seconds)


class LoggedOnce(SpanExporter):
    """Logs that a collector takes no spans, and that it does again, in place of each attempt at it."""

    def __init__(self, exporter: SpanExporter) -> None:
        self.exporter = exporter
        self.refused = 0
        """Batches that were dropped since the last that was taken."""
        EXPORTERS_WORDS.addFilter(lambda record: False)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Export a batch, within the exporter's time-out."""
        result = self.exporter.export(spans)
        if result is SpanExportResult.SUCCESS and self.refused:
            log.info("Traces are exported again; %s batches were dropped.", self.refused)
        elif result is not SpanExportResult.SUCCESS and not self.refused:
            log.warning("Traces are not exported: the collector of OTEL_EXPORTER_OTLP_ENDPOINT takes none.")
        self.refused = 0 if result is SpanExportResult.SUCCESS else self.refused + 1
        return result

    def shutdown(self) -> None:
        """Close the exporter."""
        self.exporter.shutdown()


def open_provider() -> TracerProvider:
    """Export by OTLP over HTTP, as the SDK's variables say; the service is called seamline unless they do."""
    named = {} if os.environ.get("OTEL_SERVICE_NAME") else {SERVICE_NAME: "seamline"}
    provider = TracerProvider(
        resource=Resource.create({SERVICE_VERSION: VERSION, **named}), shutdown_on_exit=False
    )
    provider.add_span_processor(BatchSpanProcessor(LoggedOnce(OTLPSpanExporter())))
    return provider
