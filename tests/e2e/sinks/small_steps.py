"""``python -m tests.e2e.sinks.small_steps ...``: the command line, with transactions of three changes or records."""

from __future__ import annotations

from seamline.cli import run
from seamline.lake.read.sinks import logged_records, served_changes, shown_rows
from seamline.sinks import kafka_target, sending
from seamline.sinks.letters import replaying

if __name__ == "__main__":
    shown_rows.BATCH = 3
    served_changes.BATCH, sending.MOST_BATCHES, kafka_target.AT_ONCE = 3, 1, 4
    logged_records.BATCH = replaying.AT_ONCE = 3
    run()
