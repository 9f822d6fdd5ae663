"""What people do to our tables with deltalake: docs/operating.md says what comes of it, and each cell is tried."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.faults.foreign import DEEDS, TABLES, fares, lived

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


@pytest.mark.faults
@pytest.mark.parametrize("deed", DEEDS)
@pytest.mark.parametrize("table", TABLES)
def test_a_foreign_deed(table: str, deed: str, tmp_path: Path) -> None:
    """Answers, decisions and claims are what they were, the next epoch counts once, and upkeep changes nothing."""
    assert fares(lived(tmp_path), table, deed) == told()[table, deed]
