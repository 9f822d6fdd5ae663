"""Which failures a driver lives through, how it ends, and what it says then."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

from pyspark.sql import SparkSession

from seamline.model.errors import (
    Conflict,
    KafkaUnavailable,
    RegistryUnavailable,
    SeamlineError,
    SparkFailed,
    StoreUnavailable,
)
from seamline.runtime.process_exit import exit_process

AWAY = (KafkaUnavailable, RegistryUnavailable, StoreUnavailable)
"""What is waited for as long as it takes: a new driver could do no more."""
TRIED_AGAIN = (Conflict, SparkFailed, *AWAY)
"""What a new query of the same driver may do better; of other errors it ends."""


def format_driver_failure(failure: BaseException | None) -> str:
    """Describe what went wrong without the JVM's part of the stack."""
    return str(failure).split("\tat py4j.")[0].rstrip()[-3000:]


def exit_with_error(error: SeamlineError) -> NoReturn:
    """Exit at once with the error's code: nothing more may be written."""
    print(error, file=sys.stderr)
    exit_process(error.exit_code)


def jvm_pid(spark: SparkSession) -> int | None:
    """Return the process id of Spark's JVM."""
    process: Any = getattr(spark.sparkContext._gateway, "proc", None)  # noqa: SLF001
    return process.pid if process is not None else None
