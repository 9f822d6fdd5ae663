"""Which intervals watermarks may have changed: those with rows that had not closed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.unit.model.processes.test_process_pipelines import CARTS

from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.protocol.epoch import Epoch
from seamline.plan.batch.interval_arrivals import list_timed_changes

PIPELINE = compile_pipeline(CARTS)
START = datetime(2026, 1, 5, tzinfo=UTC)
OURS, OTHERS = PIPELINE.clock, "another clock"


def epoch(number: int, mark: float, *hours: int, clock: str = OURS) -> Epoch:
    """Return an epoch with a row in each of some hours, which records a watermark so many hours after the start."""
    accepted = {f"2026-01-05T{hour:02d}:00:00Z": 1 for hour in hours}
    at = START + timedelta(hours=mark)
    return Epoch(number, 1, START, PIPELINE.record_version, accepted=accepted, watermark=at, clock=clock)


def changed(*log: Epoch, until: int = 9) -> list[tuple[str, int]]:
    """List the hours that may have changed, with the epochs."""
    found = list_timed_changes(
        log, PIPELINE.grid, PIPELINE.views[0], PIPELINE.timed.watermark_at, until=until
    )
    return [(interval[11:13], first) for interval, first, _, _ in found]


def test_an_hour_changes_until_the_watermark_has_passed_its_end() -> None:
    """And not again; one without rows never does."""
    log = [epoch(0, 0.5, 0, 1), epoch(1, 1.5), epoch(2, 1.5), epoch(3, 9)]
    assert changed(*log) == [("00", 0), ("01", 0), ("00", 1), ("01", 1), ("01", 3)]
    assert changed(*log, until=1) == [("00", 0), ("01", 0), ("00", 1), ("01", 1)]


def test_a_watermark_of_another_clock_says_nothing() -> None:
    """It may be ahead of all that these rows will ever see."""
    log = [epoch(0, 20, clock=OTHERS), epoch(1, 0.5, 0), epoch(2, 21, clock=OTHERS), epoch(3, 0.8)]
    assert changed(*log) == [("00", 1), ("00", 3)]
