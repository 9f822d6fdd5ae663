"""A day is backfilled while the stream appends to it: whatever comes first, the answer is the serial one."""

from __future__ import annotations

import random
import threading
from collections import Counter
from datetime import datetime

import pytest
from pyspark.sql import SparkSession
from tests.e2e.world import DAYS, World

from seamline.lake.publish.planning import job_of, plan_run
from seamline.lake.publish.publishing import publish_run
from seamline.local.flights import Span, read_flights
from seamline.model.time.intervals import Interval, parse_moment
from seamline.quality.certify import certify_run, require_passed
from seamline.spark.build.build import build_intervals

pytestmark = pytest.mark.faults

BOTH = Interval(parse_moment(DAYS[0]), parse_moment("2013-01-03"))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """One warehouse for all trials: each begins with what the one before left."""
    return World(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def late() -> list[str]:
    """When the late flights of all trials so far were to leave."""
    return []


@pytest.mark.parametrize("seed", range(20))
def test_a_backfill_beside_the_stream_equals_the_serial_result(
    seed: int, world: World, late: list[str], spark: SparkSession
) -> None:
    """The moments at which epochs are held fall anywhere between the plan and the publication."""
    chance = random.Random(seed)
    moments = [
        f"{chance.choice(DAYS)[:10]}T{chance.randrange(24):02}:30:00Z" for _ in range(chance.randint(2, 8))
    ]
    pauses = [chance.uniform(0, 1.5) for _ in moments]
    done = threading.Event()

    def stream() -> None:
        for moment, pause in zip(moments, pauses, strict=True):
            done.wait(pause)
            world.late(moment)

    held = world.held
    appending = threading.Thread(target=stream)
    appending.start()
    try:
        run(spark, world, f"beside {seed}", BOTH)
    finally:
        done.set()
        appending.join()
    late += moments
    assert world.held == held + len(moments)
    assert counted(world) == serial(late)
    run(spark, world, f"after {seed}", None)
    assert counted(world) == serial(late)


def run(spark: SparkSession, world: World, name: str, asked: Interval | None) -> None:
    """Plan, build, certify and publish; read before and after."""
    pipeline, layout = world.pipeline, world.layout
    plan = plan_run(pipeline, layout, asked=asked, dirty=asked is None)
    if not plan.builds:
        return
    build_intervals(spark, pipeline, layout, job_of(pipeline, plan, run=name))
    before = world.held
    assert before <= sum(counted(world).values()) <= world.sent
    require_passed(certify_run(pipeline, layout, name))
    publish_run(pipeline, layout, name)
    assert before <= sum(counted(world).values()) <= world.sent


def counted(world: World) -> Counter[tuple[str, datetime]]:
    """Count the merged answer's flights by carrier and hour."""
    return Counter({(row["carrier"], row["window_start"]): row["flights"] for row in world.answer()})


def serial(late: list[str]) -> Counter[tuple[str, datetime]]:
    """Count the flights that were sent, one by one."""
    first = read_flights(Span(parse_moment("2013-01-01"), parse_moment("2013-01-03")))
    found = Counter((str(each["carrier"]), hour(str(each["sched_dep"]))) for each in first)
    found.update(("UA", hour(moment)) for moment in late)
    return found


def hour(moment: str) -> datetime:
    """Return the start of the window that a moment is in."""
    return parse_moment(moment).replace(minute=0, second=0, microsecond=0)
