"""What people do to our tables with deltalake and with Spark: docs/operating.md says what comes of it, cell by cell."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.faults.rig.foreign import DEEDS, TABLES, Deltalake, Hand, Spark, fares, lived
from tests.lives.world import World

from seamline.lake.storage.delta_table import Table
from seamline.model.errors import ChangedByOthers

PAGE = Path(__file__).parents[2] / "docs/operating.md"


def told() -> dict[tuple[str, str], str]:
    """Read the table of the page: what is said of each deed to each table."""
    lines = PAGE.read_text().partition("## Other engines at our tables")[2].partition("\n## ")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    head, _, *body = rows
    return {(row[0], deed): cell for row in body for deed, cell in zip(head[1:], row[1:], strict=True)}


def test_the_page_has_every_cell() -> None:
    """A table or a deed that is tried and not told, or told and not tried, is a promise of nobody's."""
    assert told().keys() == {(table, deed) for table in TABLES for deed in DEEDS}


@pytest.fixture(scope="module", params=["deltalake", "spark"])
def hand(request: pytest.FixtureRequest) -> Hand:
    """Return the engine by which it is done."""
    if request.param == "deltalake":
        return Deltalake()
    session: Any = request.getfixturevalue("spark")
    return Spark(session)


@pytest.fixture(scope="module")
def world(hand: Hand) -> Iterator[World]:
    """Return one pipeline to all that one engine does: what each leaves, the next meets."""
    with lived() as world:
        yield world


@pytest.mark.faults
@pytest.mark.parametrize("table", TABLES)
def test_a_table_in_other_hands(hand: Hand, world: World, table: str) -> None:
    """Answers, decisions and the log are as by a plain count, the stream goes on, runs publish; or it is refused."""
    found = {deed: fares(world, hand, table, deed) for deed in DEEDS if hand.can(deed)}
    assert found == {deed: told()[table, deed] for deed in found}


ASKED = {
    "columnMapping": "'delta.columnMapping.mode' = 'name'",
    "v2Checkpoint": "'delta.checkpointPolicy' = 'v2'",
    "rowTracking": "'delta.enableRowTracking' = 'true'",
    "inCommitTimestamp": "'delta.enableInCommitTimestamps' = 'true'",
}


@pytest.mark.faults
@pytest.mark.parametrize("feature", ASKED)
def test_what_spark_makes_a_table_ask_for_is_refused(spark: Any, tmp_path: Path, feature: str) -> None:
    """With a sentence that names it; deltalake cannot read it, or would write what Spark does not take for whole."""
    table = Table.ensure(tmp_path / "table", pa.schema([("n", pa.int64())]))
    spark.sql(f"ALTER TABLE delta.`{table.root}` SET TBLPROPERTIES ({ASKED[feature]})").collect()
    with pytest.raises(ChangedByOthers, match=f"now requires .*{feature}"):
        table.refresh()
