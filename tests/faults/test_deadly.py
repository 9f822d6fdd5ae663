"""A record that ends the process that judges it, met by a build: refused by its place, and the build goes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import SparkSession
from tests.unit.records import pipeline

from seamline import Tumbling, View, count, sum
from seamline.lake.rejudged import Rejudged
from seamline.testing import Scenario
from seamline.testing.tables import Tables

VIEW = View("all_rows", keys=[], window=Tumbling("1 day"), measures={"n": count()})
BEFORE = pipeline("text STRING, at TIMESTAMP", views=[VIEW])
AFTER = replace(
    BEFORE,
    transform="tests.unit.steps:deadly",
    transform_schema="length INT",
    views=[replace(VIEW, measures={"n": count(), "letters": sum("length")})],
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
    verdicts = Rejudged(engine.pipeline, engine.layout).verdicts().values()
    assert [dict(each.refused) for each in verdicts] == [{"kernel error": 1}, {"kernel error": 1}]
    assert [dict(each.accepted) for each in verdicts] == [
        {"2024-01-19T00:00:00Z": 3},
        {"2024-01-19T00:00:00Z": 1},
    ]
