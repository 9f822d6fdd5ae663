"""Run the sinks of a pipeline: ``python -m seamline.sinks PIPELINE SUPERVISOR``, started by the supervisor it names."""

from __future__ import annotations

import logging
import sys
import threading

from seamline.lake.storage.layout import definitions_folder, locate_tables
from seamline.model.compile.catalog import load_pipeline
from seamline.model.errors import SeamlineError
from seamline.runtime.process_exit import exit_process
from seamline.runtime.stop_signals import set_when_asked
from seamline.sinks.sinks_process import run_sinks, supervised


def main(argv: list[str]) -> int:
    """Run until stopped; give the exit code."""
    if len(argv) != 2:
        print(
            "A stream's supervisor starts this process. Use `seamline sinks run PIPELINE`.", file=sys.stderr
        )
        return 2
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    logging.getLogger("seamline.sinks").setLevel(logging.INFO)
    name, supervisor = argv
    stop = threading.Event()
    set_when_asked(stop)
    try:
        layout = locate_tables(name)
        return run_sinks(
            load_pipeline(definitions_folder(), name), layout, stop, supervised(layout, supervisor)
        )
    except SeamlineError as error:
        print(error, file=sys.stderr, flush=True)
        return error.exit_code


if __name__ == "__main__":
    exit_process(main(sys.argv[1:]))
