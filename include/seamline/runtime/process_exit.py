"""The end of a process that runs native threads beside Python."""

from __future__ import annotations

import logging
import os
import sys
from contextlib import suppress
from typing import NoReturn


def exit_process(code: int) -> NoReturn:
    """End the process now with ``code``, once what was said is written out.

    The threads of DuckDB, Delta and the Kafka client outlive Python's own teardown, and crash in it now and then:
    a job that had ended well, or with a code that means something, would be reported as killed by a signal.
    Spark's JVM ends with the pipe to its parent.
    """
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        # Nobody may be left to read it.
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
