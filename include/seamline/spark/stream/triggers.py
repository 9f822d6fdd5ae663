"""Spark's own timing of each trigger, for the ledger row of the next epoch."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from pyspark import SparkContext
from pyspark.sql.streaming.listener import StreamingQueryListener

from seamline.spark.stream.epoch_timing import EpochTiming

log = logging.getLogger("seamline.stream")


class Triggers(StreamingQueryListener):
    """Leaves the durations of the last trigger that had a batch in ``timing``.

    They are seconds by Spark's names (``triggerExecution``, ``addBatch``, ``walCommit``, ...), and ``rows_per_second``
    that came in. Spark calls this in a thread of its own: it does nothing but keep what it is given.
    """

    def __init__(self, timing: EpochTiming) -> None:
        self.timing = timing

    def onQueryStarted(self, event: object) -> None:  # noqa: N802 - Spark's name
        """Nothing is to be done."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """Keep what is said of a trigger."""
        self.record_progress(event.progress.json)

    def onQueryTerminated(self, event: object) -> None:  # noqa: N802 - Spark's name
        """Nothing is to be done: the driver looks after its query itself."""

    def record_progress(self, text: str) -> None:
        """Record a trigger's progress, which Spark writes as JSON."""
        self.timing.trigger = trigger_of(json.loads(text)) or self.timing.trigger

    @property
    def _jlistener(self) -> Any:
        if not hasattr(self, "_told"):
            self._told = SparkContext._jvm.PythonStreamingQueryListenerWrapper(JvmListener(self))  # type: ignore[union-attr] # noqa: SLF001
        return self._told


class JvmListener:
    """What Spark calls. PySpark's own asks the JVM for each field of an event, at 34 ms of CPU an epoch; this once."""

    def __init__(self, triggers: Triggers) -> None:
        self.triggers = triggers

    def onQueryStarted(self, event: object) -> None:  # noqa: N802
        """Nothing is to be done."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        """Hand on the progress; whatever is wrong with it is no reason to end a query."""
        try:
            self.triggers.record_progress(event.progress().json())
        except Exception as error:  # noqa: BLE001
            log.warning("A trigger's progress cannot be read: %s", error)

    def onQueryIdle(self, event: object) -> None:  # noqa: N802
        """Nothing is to be done."""

    def onQueryTerminated(self, event: object) -> None:  # noqa: N802
        """Nothing is to be done."""

    class Java:
        """The interface of the JVM."""

        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)


def trigger_of(progress: Mapping[str, Any]) -> dict[str, float]:
    """Return a trigger's durations in seconds and its rows per second; nothing of one without a batch."""
    durations = progress.get("durationMs") or {}
    if "addBatch" not in durations:
        return {}
    took = {name: millis / 1000 for name, millis in sorted(durations.items())}
    rate = progress.get("inputRowsPerSecond")
    return took if rate is None else {**took, "rows_per_second": round(float(rate), 1)}
