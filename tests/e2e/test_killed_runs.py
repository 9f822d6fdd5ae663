"""A batch run that dies at any of its commits: nothing is seen of it or all of it, and the next one mends it."""

from __future__ import annotations

import pytest
from tests.e2e.world import DAYS, Resident, World

from seamline.runtime.failpoints import BATCH

SPAN = ("--from", DAYS[0], "--to", "2013-01-03T00:00:00Z")
UNSEEN = {"states", "generation", "built", "certified"}
FEW = {"generation", "published"}
"""Points before and behind which a run is seen; the slow suite tries all."""


@pytest.mark.parametrize(
    "point", [pytest.param(each, marks=[] if each in FEW else pytest.mark.faults) for each in BATCH]
)
def test_a_run_that_is_killed_shows_nothing_or_everything(point: str, world: World, driver: Resident) -> None:
    """Kill -9 just after it; each next run starts on what the one before left behind."""
    world.late(DAYS[1])
    before, served = world.published(), world.answer()
    died = world.seamline("run", "flights", *SPAN, SPARK_REMOTE=driver.url, SEAMLINE_FAIL=f"{point}:1")
    assert died.returncode == -9, died.stderr
    now = world.published()
    changed = {day for day in DAYS if now.get(day) != before.get(day)}
    assert changed == (set() if point in UNSEEN else set(DAYS))
    assert world.answer() == served


def test_the_run_after_all_of_them_leaves_nothing_to_do(world: World, driver: Resident) -> None:
    """What they left is in nobody's way, and no row is counted twice."""
    served = world.answer()
    done = world.seamline("run", "flights", *SPAN, SPARK_REMOTE=driver.url)
    assert done.returncode == 0, done.stderr
    assert world.answer() == served
    assert sum(row["flights"] for row in served) == world.sent
    assert "nothing to do" in world.seamline("plan", "flights").stdout
