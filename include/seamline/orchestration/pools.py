"""The pools our tasks run in; a task whose pool is missing waits for ever."""

from __future__ import annotations

STREAM = "seamline_stream"
BATCH = "seamline_batch"

POOLS = {
    STREAM: (8, "Reconciles streams: seconds each, never behind a backfill."),
    BATCH: (1, "Spark builds: one at a time on a small machine."),
}
"""Name to slots and description."""
