"""The traces of a process; without a collector nothing of the SDK is imported, and nothing is measured."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import TYPE_CHECKING

from seamline.model.protocol.epoch import Epoch
from seamline.tracing.configuration import is_traced

if TYPE_CHECKING:
    from seamline.tracing.exported_spans import Spans

log = logging.getLogger("seamline.tracing")
PATIENCE = 2.0
"""Seconds that the end of a process waits for its last spans."""


@cache
def open_spans() -> Spans | None:
    """Open what exports spans, once a process; None where there is no collector, or it cannot be."""
    if not is_traced():
        return None
    try:
        from seamline.tracing.exported_spans import Spans

        return Spans()
    except ImportError as error:
        log.warning("Traces are not exported: %s. pip install 'seamline[traces]'.", error)
    except Exception:
        log.exception("Traces are not exported")
    return None


def traced(name: str, **attributes: str | int) -> AbstractContextManager[None]:
    """Return what measures a block; its attributes are in the words of ours, without ``seamline.``."""
    spans = open_spans()
    if spans is None:
        return nullcontext()
    return spans.span(name, {f"seamline.{key}": value for key, value in attributes.items()})


def trace_epochs(pipeline: str) -> Callable[[Epoch, Mapping[str, float]], None] | None:
    """Return what is to be called with each epoch and the seconds of its phases; None without a collector."""
    spans = open_spans()
    if spans is None:
        return None
    from seamline.tracing.epoch_traces import EpochTraces

    return EpochTraces(pipeline, spans).tell


def flush_traces() -> None:
    """Export what is left, as a process ends."""
    if open_spans.cache_info().currsize and (spans := open_spans()):
        spans.flush(PATIENCE)


def trace_parent_env() -> dict[str, str]:
    """Return the variable by which a process that is started now has the present span for a parent."""
    if "opentelemetry.trace" not in sys.modules:
        return {}
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return {"TRACEPARENT": carrier["traceparent"]} if carrier.get("traceparent") else {}
