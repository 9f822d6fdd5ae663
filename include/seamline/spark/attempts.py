"""One run of the kernel over a micro-batch: how it is laid out, what it made, and what it failed with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from seamline.kernel.judging import KernelResult
from seamline.model.offsets import OffsetRange
from seamline.plan.epochs import tasks


@dataclass(frozen=True)
class Attempt:
    """What one run of the kernel made, under which number, for which views, with which look-ups."""

    number: int
    views: frozenset[str]
    versions: Mapping[str, str]
    result: KernelResult

    def facts(self, ranges: Sequence[OffsetRange]) -> dict[str, Any]:
        """Give what the ledger's row says of it."""
        result = self.result
        return {
            "ranges": tuple(ranges),
            "accepted": dict(result.accepted),
            "refused": dict(result.refused),
            "late": dict(result.late),
            "very_late": dict(result.very_late),
            "max_event_time": result.max_event_time,
            "lookups": self.versions,
        }


class KernelFailed(Exception):
    """The kernel's run ended in ``cause``."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


def narrow(frame: DataFrame, ranges: Sequence[OffsetRange]) -> DataFrame:
    """Let fewer tasks read a small epoch: each of them costs time of its own, and makes a file."""
    count = tasks(sum(map(len, ranges)))
    return frame.coalesce(count) if count < len(ranges) else frame


def said(error: Exception) -> str:
    """Give the last line of the worker's own words, which Spark puts before the JVM's stack."""
    words = str(error).split("\tat ")[0].strip().splitlines()
    return (words[-1] if words else type(error).__name__)[:500]
