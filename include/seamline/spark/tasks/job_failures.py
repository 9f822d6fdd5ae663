"""What Spark fails with in a job of ours, in a sentence: its JVM has gone, or a task has failed, or lost its worker."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from seamline.model.errors import SparkFailed
from seamline.runtime.storage_failures import explain_storage_failure
from seamline.spark.tasks.kernel_attempts import find_worker_message

OF_MODULE = re.compile(r"^(\w+\.)+(?=\w+: )")
"""What stands before the name of an error's class."""
LEFT = re.compile("Python worker exited unexpectedly[^.:\n]*")
"""What Spark says of a worker that has said nothing itself."""
SPARKS = (Py4JError, PySparkException, ConnectionError, EOFError)
"""What PySpark raises, of the JVM's and of its own; a JVM that has ended is recognized by the socket to it."""


@contextmanager
def translate_spark_errors(what: str) -> Iterator[None]:
    """Raise what Spark fails with as SparkFailed, which says of ``what``; a disk or a store is no fault of Spark's."""
    try:
        yield
    except SPARKS as error:
        if explain_storage_failure(error):
            raise
        raise explain_spark_error(what, error) from error


def explain_spark_error(what: str, error: Exception) -> SparkFailed:
    """Make the error that says what has failed; an error of the JVM's gets its text from the JVM, which may be gone."""
    if not isinstance(error, (Py4JJavaError, PySparkException)):
        return SparkFailed(
            f"Spark's JVM ended in the middle of {what}.",
            hint="nothing was published; run it again. Check the machine's log for a process killed for its memory.",
        )
    words = type(error).__name__
    with suppress(*SPARKS):
        words = find_worker_message(error)
    return SparkFailed(
        f"A Spark task failed in {what}: {words}",
        hint="nothing was published. A worker that ended by itself may have needed more than "
        "Stream(worker_memory=...), or may have read a record or run a measure that ends it.",
    )


def stop_spark(spark: SparkSession) -> None:
    """Stop a Spark of this process, whose JVM may have gone."""
    with suppress(*SPARKS):
        spark.stop()


def describe_failed_step(error: Exception) -> str:
    """Say in a line why a step failed; of what a worker raised, what it said."""
    said = f"{type(error).__name__}: {error}".partition("\n")[0]
    if isinstance(error, (Py4JJavaError, PySparkException)):
        with suppress(*SPARKS):
            found = LEFT.search(str(error))
            said = found[0] if found else OF_MODULE.sub("", find_worker_message(error))
    return said[:500]
