"""A record that ends the process that judges it, met by a build: refused by its place, and the build goes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession
from tests.e2e.world import DAYS, World
from tests.faults.rig.processes import require_none
from tests.unit.records import pipeline

from seamline import Tumbling, View, count
from seamline import sum as total
from seamline.lake.tables.reprocessed import Reprocessed
from seamline.testing import Scenario
from seamline.testing.tables import Tables

VIEW = View("all_rows", keys=[], window=Tumbling("1 day"), measures={"n": count()})
BEFORE = pipeline("text STRING, at TIMESTAMP", views=[VIEW])
AFTER = replace(
    BEFORE,
    transform="tests.unit.steps:deadly",
    transform_schema="length INT",
    views=[replace(VIEW, measures={"n": count(), "letters": total("length")})],
)


def test_a_build_gets_past_a_record_that_ends_its_worker(
    spark: SparkSession, scenario: Callable[..., Scenario]
) -> None:
    """Each build judged it again, and no build of the new definition ever ended."""
    shop = scenario(BEFORE, spark=spark, now="2024-01-20")
    texts = ["a", "bb", "fugu", "dddd", "fugu", "e"]
    for some in (texts[:4], texts[4:]):
        shop.send(*({"text": text, "at": "2024-01-19T10:00:00Z"} for text in some))
        shop.epoch()
    shop.redefine(AFTER)
    assert isinstance(shop.engine, Tables)
    shop.batch("2024-01-19")
    engine = shop.engine
    verdicts = Reprocessed(engine.pipeline, engine.layout).verdicts().values()
    assert [dict(each.refused) for each in verdicts] == [{"kernel error": 1}, {"kernel error": 1}]
    assert [dict(each.accepted) for each in verdicts] == [
        {"2024-01-19T00:00:00Z": 3},
        {"2024-01-19T00:00:00Z": 1},
    ]


def test_builds_that_die_of_a_record_get_past_it_one_after_another(tmp_path: Path) -> None:
    """Driver, JVM and workers die at once, as of the machine: each run began at full size, and died of the same."""
    world = World(tmp_path)
    words = ("run", "flights", "--from", DAYS[0], "--to", "2013-01-03T00:00:00Z")
    world.late(DAYS[1])
    deadly = f'"flight": {9000 + world.sent - 1}'
    text = world.definition.read_text()
    world.definition.write_text(text.replace("rules=[", 'rules=[Rule("named", "carrier <> \'\'"), '))
    deaths = 0
    while (done := world.seamline(*words, SEAMLINE_DEADLY=deadly)).returncode == -9:
        deaths += 1
        require_none(world.home)
        assert deaths < 10
    assert done.returncode == 0, done.stderr
    # Shares of 1,800 records, of 56, of one; and that three times alone.
    assert deaths in (5, 6)
    verdicts = [*Reprocessed(world.pipeline, world.layout).verdicts().values()]
    assert sum(each.refused.get("kernel error", 0) for each in verdicts) == 1
    assert sum(sum(each.accepted.values()) for each in verdicts) == world.sent - 1
    assert not [*(tmp_path / "warehouse" / "flights" / "records").glob("*/attempt*")]
