"""What is served, changed and given back by the commands that people use, on real Spark."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from tests.e2e.world import DAYS, Resident, World

from seamline.lake.tables.manifest_table import ManifestTable
from seamline.local.flights import Span, read_flights
from seamline.model.time.intervals import parse_moment

VIEW = "flights.delay_by_carrier"


@pytest.fixture(scope="module")
def built(world: World, driver: Resident) -> World:
    """Have both days built."""
    done = world.seamline("run", "flights", "--dirty", SPARK_REMOTE=driver.url)
    assert done.returncode == 0, done.stderr
    return world


def generation(world: World, day: str) -> str:
    """Return the generation of a day that is served."""
    [view] = [each for each in world.pipeline.views if each.name == "delay_by_carrier"]
    return ManifestTable.ensure(world.layout).read().published[view.id, day].generation


def departed(world: World) -> Counter[str]:
    """Add up by carrier what the answers call departed."""
    found = Counter[str]()
    for row in world.answer():
        found[row["carrier"]] += row["departed"]
    return +found


def test_a_rolled_back_day_loses_no_event(built: World, driver: Resident) -> None:
    """The flight that came after the earlier generation's cut is counted from the slices again."""
    first = generation(built, DAYS[0])
    built.late(DAYS[0])
    served = built.answer()
    done = built.seamline("run", "flights", "--dirty", SPARK_REMOTE=driver.url)
    assert done.returncode == 0, done.stderr
    assert generation(built, DAYS[0]) != first
    back = built.seamline("rollback", VIEW, "2013-01-01", "--reason", "a test")
    assert back.returncode == 0, back.stderr
    assert generation(built, DAYS[0]) == first
    assert built.answer() == served
    assert "rolled back" in built.seamline("status", "flights").stdout


def test_an_edited_view_is_compared_served_and_given_back(built: World, driver: Resident) -> None:
    """Both versions count every flight; only what the edit is about differs, and both ways are one commit.

    What a person has rolled back is not built again behind his back: the upgrade is refused until he gives it free.
    """
    [old] = [each for each in built.pipeline.views if each.name == "delay_by_carrier"]
    before = departed(built)
    text = built.definition.read_text()
    edited = text.replace('count("dep_delay")', 'count("dep_delay", where="dep_delay > 0")', 1)
    assert edited != text
    built.definition.write_text(edited)
    built.late(DAYS[1])
    refused = built.seamline("upgrade", VIEW, "--flip", SPARK_REMOTE=driver.url)
    assert (refused.returncode, "a rollback holds it" in refused.stderr) == (32, True)
    free = built.seamline("rollback", VIEW, "2013-01-01", "--release", "--reason", "a test")
    assert free.returncode == 0, free.stderr
    flights_of = Counter(row["carrier"] for row in built.answer())
    done = built.seamline("upgrade", VIEW, "--flip", "--format", "json", SPARK_REMOTE=driver.url)
    assert done.returncode == 0, done.stderr
    changed = [json.loads(line) for line in done.stdout.splitlines()]
    assert changed
    assert all(row["_departed_before"] > row["_departed_after"] for row in changed)
    late = Counter(
        str(each["carrier"])
        for each in read_flights(Span(parse_moment("2013-01-01"), parse_moment("2013-01-03")))
        if (each["dep_delay"] or 0) > 0
    )
    assert departed(built) == late
    assert Counter(row["carrier"] for row in built.answer()) == flights_of
    back = built.seamline("flip", VIEW, "--to", old.fingerprint)
    assert back.returncode == 0, back.stderr
    assert departed(built) == before
