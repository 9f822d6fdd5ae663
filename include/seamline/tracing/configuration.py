"""Whether traces are exported: the SDK's own variables say so, and it is not imported to ask them.

They are specified at https://opentelemetry.io/docs/specs/otel/protocol/exporter.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


def is_traced(environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether there is a collector, and traces are not turned off."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    if environ.get("OTEL_TRACES_EXPORTER", "").strip().lower() == "none":
        return False
    return any(environ.get(name) for name in ENDPOINTS)
