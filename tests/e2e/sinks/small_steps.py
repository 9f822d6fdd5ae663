"""``python -m tests.e2e.sinks.small_steps ...``: the command line, with transactions of three changes."""

from __future__ import annotations

from seamline.cli import run
from seamline.lake.read.sinks import served_changes, shown_rows
from seamline.sinks import kafka_target, sending

if __name__ == "__main__":
    shown_rows.BATCH = 3
    served_changes.BATCH, sending.MOST_BATCHES, kafka_target.AT_ONCE = 3, 1, 4
    run()
