"""An alarm after silence in PyFlink, for its own interpreter: prints how many alarms there were, and the job's seconds.

    PYTHON silence_in_pyflink.py FILE SECONDS LATENESS MODE

FILE has a line ``user,milliseconds`` for each row, in the order in which they come.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from typing import Any

from pyflink.common import Configuration, Row, Types
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor
from pyflink.table import StreamTableEnvironment

ROWS = """
    CREATE TABLE rows_in (
        user_id BIGINT,
        ms BIGINT,
        ts AS TO_TIMESTAMP_LTZ(ms, 3),
        WATERMARK FOR ts AS ts - INTERVAL '{lateness}' SECOND
    ) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv')
"""
KEPT = 200_000
"""Keys of which a Python worker keeps states: all of them, which is kinder than the default of 1,000."""


class Silence(KeyedProcessFunction):
    """Counts the rows of a user, and emits them once nothing was heard for some seconds."""

    def __init__(self, seconds: int) -> None:
        self.wait = seconds * 1000

    def open(self, runtime_context: Any) -> None:
        """Open the states: how many rows, and when the alarm is due."""
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.LONG()))
        self.due = runtime_context.get_state(ValueStateDescriptor("due", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> None:
        """Count, and wait from the last row."""
        due, at = self.due.value(), ctx.timestamp() + self.wait
        self.seen.update((self.seen.value() or 0) + 1)
        if due is None or at > due:
            if due is not None:
                ctx.timer_service().delete_event_time_timer(due)
            ctx.timer_service().register_event_time_timer(at)
            self.due.update(at)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Row]:
        """Nobody came."""
        yield Row(ctx.get_current_key(), self.seen.value())
        self.seen.clear()
        self.due.clear()


def main(path: str, seconds: str, lateness: str, mode: str) -> None:
    """Run the job to the end of the file."""
    settings = Configuration()
    for name, value in {
        "python.execution-mode": mode,
        "python.executable": sys.executable,
        "python.client.executable": sys.executable,
        "python.state.cache-size": str(KEPT),
        "python.map-state.read-cache-size": str(KEPT),
    }.items():
        settings.set_string(name, value)
    env = StreamExecutionEnvironment.get_execution_environment(settings)
    env.set_parallelism(2)
    tables = StreamTableEnvironment.create(env)
    tables.execute_sql(ROWS.format(path=path, lateness=lateness))
    rows = tables.to_data_stream(tables.sql_query("SELECT user_id, ts FROM rows_in"))
    shape = Types.ROW([Types.LONG(), Types.LONG()])
    alarms = rows.key_by(lambda row: row[0], key_type=Types.LONG()).process(Silence(int(seconds)), shape)
    began = time.monotonic()
    with alarms.execute_and_collect() as found:
        count = sum(1 for _ in found)
    print(json.dumps({"alarms": count, "seconds": time.monotonic() - began}))


if __name__ == "__main__":
    main(*sys.argv[1:])
