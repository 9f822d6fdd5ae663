"""What a task does about an error: some are there again at any retry, some are gone in a minute."""

from __future__ import annotations

import functools
from collections.abc import Callable
from datetime import timedelta
from typing import ParamSpec, TypeVar

from airflow.sdk import Context, RetryDecision, RetryPolicy

from seamline.model.errors import (
    AirflowUnavailable,
    Conflict,
    DiskFull,
    IntervalRunning,
    KafkaUnavailable,
    LeaseHeld,
    ReadUnstable,
    SeamlineError,
    SparkFailed,
    StoreUnavailable,
)
from seamline.runtime.storage_failures import explain_storage_failure

P = ParamSpec("P")
R = TypeVar("R")

WAITS = 6
"""Retries beyond those of the definition, for a run that waits for another at the same interval."""
PASSING = (
    Conflict,
    LeaseHeld,
    KafkaUnavailable,
    ReadUnstable,
    DiskFull,
    StoreUnavailable,
    SparkFailed,
    AirflowUnavailable,
)
DELAY, LONGEST = timedelta(seconds=30), timedelta(minutes=10)


class ByKind(RetryPolicy):
    """Fail at once what stays wrong (data, definitions, ranges), and back off from what passes.

    A conflict, Kafka, files, a store and whatever is not ours are tried again ``retries`` times, a half minute apart
    and then twice as long each time; an interval that another run builds is waited for WAITS times more.
    """

    def __init__(self, retries: int) -> None:
        self.retries = retries

    def evaluate(
        self, exception: BaseException, try_number: int, max_tries: int, context: Context | None = None
    ) -> RetryDecision:
        """Decide; ``try_number`` is 1 for the first."""
        delay = min(DELAY * 2 ** min(try_number - 1, 10), LONGEST)
        reason = first_line(exception)
        if isinstance(exception, IntervalRunning):
            return RetryDecision.retry(delay, reason)
        if isinstance(exception, SeamlineError) and not isinstance(exception, PASSING):
            return RetryDecision.fail(reason)
        if try_number > self.retries:
            return RetryDecision.fail(reason)
        return RetryDecision.retry(delay, reason)


def first_line(error: BaseException) -> str:
    """Name an error and what it says, in one line."""
    text = str(error.message if isinstance(error, SeamlineError) else error)
    return f"{type(error).__name__}: {text.partition(chr(10))[0]}"


def log_failure_reason(task: Callable[P, R]) -> Callable[P, R]:
    """Let a task's log begin its failure with the reason, above any traceback."""

    @functools.wraps(task)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return task(*args, **kwargs)
        except SeamlineError as error:
            print(f"{type(error).__name__}: {error}")
            raise
        except Exception as error:
            if (ours := explain_storage_failure(error)) is None:
                raise
            print(f"{type(ours).__name__}: {ours}")
            raise ours from error

    return call
