"""The end of a process: by an exit code that says what went wrong, beside native threads that outlive Python."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from seamline.model.errors import SeamlineError
from seamline.runtime.storage_failures import explain_storage_failure


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


def run_reported(work: Callable[[], str]) -> int:
    """Print what a job's work returns, or the error of ours that it ends with, whose exit code is returned."""
    try:
        print(work())
    except Exception as error:
        ours = error if isinstance(error, SeamlineError) else explain_storage_failure(error)
        if ours is None:
            raise
        print(ours, file=sys.stderr)
        return ours.exit_code
    return 0
