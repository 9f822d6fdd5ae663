"""Waits in Airflow's triggerer: one thread looks at the tables for all of them, at each in turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from seamline.model.errors import ReadUnstable, SeamlineError, StoreUnavailable
from seamline.model.time.intervals import Interval
from seamline.orchestration.failures import first_line
from seamline.orchestration.store_connection import store_settings
from seamline.runtime.storage_failures import explain_storage_failure

if TYPE_CHECKING:
    from seamline.lake.publish.interval_watch import Watch
    from seamline.plan.publish.awaited_intervals import Readiness

PASSING = (ReadUnstable, StoreUnavailable)
"""What the next look may find gone."""
LOOKS = ThreadPoolExecutor(1, thread_name_prefix="seamline-looks")
"""A store's keys are in the environment while somebody looks, and a store that hangs holds up no event loop."""


class SeamlineCompleteTrigger(BaseTrigger):
    """Fires once the intervals of a view have come as far as ``watch`` says.

    It runs no definition, and asks for nothing but what is new in three tables: the ledger's end, the manifest, and
    which intervals have rows. Without a ``watch`` it fires after one interval: the store was away when that was to be
    made. An event that says ``again`` asks the task to look for itself: event times have another clock by now.
    """

    def __init__(self, watch: dict[str, Any], store: str = "", poke_interval: float = 60.0) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.watch, self.store, self.poke_interval = watch, store, poke_interval
        self._opened: Watch | None = None

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Write it for another process."""
        return (
            "seamline.provider.triggers.SeamlineCompleteTrigger",
            {"watch": self.watch, "store": self.store, "poke_interval": self.poke_interval},
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look until nothing is lacking; an error that stays is an event, too."""
        loop, said = asyncio.get_running_loop(), ""
        if not self.watch:
            await asyncio.sleep(self.poke_interval)
            yield fire({"again": True})
            return
        while True:
            try:
                found = await loop.run_in_executor(LOOKS, self.look)
            except Exception as error:  # noqa: BLE001 - the task fails with it
                ours = explain_storage_failure(error) or error
                if not isinstance(ours, PASSING):
                    yield fire({"error": first_line(ours), "lasting": isinstance(ours, SeamlineError)})
                    return
                lacking = first_line(ours)
            else:
                if not found.lacking:
                    yield fire({"span": self.watch["span"], "found": describe_readiness(found)})
                    return
                if self._opened and self._opened.outdated:
                    yield fire({"again": True})
                    return
                lacking = found.lacking
            if lacking != said:
                said = lacking
                self.log.info("waiting: %s", lacking)
            await asyncio.sleep(self.poke_interval)

    def look(self) -> Readiness:
        """Look once."""
        from seamline.lake.publish.interval_watch import Watch

        with store_settings(self.store):
            self._opened = self._opened or Watch.from_json(self.watch)
            return self._opened.look()


def fire(found: dict[str, Any]) -> TriggerEvent:
    """Make an event."""
    return TriggerEvent(found)  # type: ignore[no-untyped-call]


def describe_readiness(found: Readiness) -> dict[str, Any]:
    """Say in JSON which publications answer for the intervals: the XCom of the sensor."""
    newest = found.statements[-1] if found.statements else None
    return {
        "cut": max((each.epoch for each in found.statements), default=None),
        "rows": sum(each.rows for each in found.statements),
        "intervals": len(found.statements),
        "run": newest.run if newest else "",
    }


def read_event(event: Mapping[str, Any]) -> tuple[Interval, dict[str, Any]]:
    """Return the span of a trigger and what it has found; the reason if it could not look.

    SeamlineError for what stays wrong; RuntimeError for an error that is not ours, and may be gone at the next try.
    """
    if said := event.get("error"):
        if not event.get("lasting", True):
            raise RuntimeError(said)
        raise SeamlineError(str(said), hint="see the task's log; the wait cannot go on.")
    return Interval.parse(event["span"]), dict(event["found"])
