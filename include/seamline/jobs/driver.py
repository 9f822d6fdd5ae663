"""A resident Spark driver, for builds that do not start one each: Spark Connect beside a session as jobs have it."""

from __future__ import annotations

import os
import threading

from seamline.lake.storage.layout import warehouse_settings
from seamline.runtime.java import is_in_bucket
from seamline.runtime.process_exit import exit_process
from seamline.runtime.stop_signals import set_when_asked
from seamline.spark.session.session import start_connect_server
from seamline.supervisor.prespawned import SpareProcesses
from seamline.supervisor.resident import TOKEN, make_spare_command, make_token, read_resident_port

LOOKS_EVERY = 1.0


def main() -> int:
    """Serve until told to stop; an error where Spark has gone."""
    os.environ[TOKEN] = make_token()
    halt = threading.Event()
    set_when_asked(halt)
    # It serves builds of all pipelines: what it needs for one bucket is what it needs for another.
    bucket = next(filter(is_in_bucket, warehouse_settings(os.environ).values()), "")
    spark = start_connect_server("seamline resident driver", read_resident_port(), warehouse=bucket)
    print(
        f"Spark Connect on localhost:{read_resident_port()}, UI: {spark.sparkContext.uiWebUrl or 'off'}",
        flush=True,
    )
    spare = SpareProcesses(read_resident_port(), *make_spare_command())
    while not halt.wait(LOOKS_EVERY):
        # It asks the JVM, and raises when there is none.
        spark.conf.get("spark.app.id")
        spare.ensure_waiting()
    spare.stop()
    spark.stop()
    return 0


if __name__ == "__main__":
    exit_process(main())
