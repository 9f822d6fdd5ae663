"""What is known to be wrong still, each as a test that says so: one that passes some day fails here, and moves."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest
from tests.unit.shop import DEFINITION, START, Sale, Shop, sales_pipeline

from seamline.lake.reads import answer
from seamline.lake.remembered import REMEMBERED
from seamline.model import windows
from seamline.model.clock import ALWAYS, Clock

HOUR = 3_600_000_000


@pytest.mark.xfail(strict=True, reason="slices do not say by which rules of a zone their panes were cut")
def test_panes_that_a_newer_tzdata_makes_finer_are_made_anew(tmp_path: Path) -> None:
    """A zone gets summer time for a day that has been read: hours of its day are in a stored pane of three."""
    text = DEFINITION.replace('Tumbling("1 hour")', 'Tumbling("1 day", zone="Asia/Tokyo")')
    text = text.replace('"2013-01-01"', '"2012-12-31"')
    old, since = sales_pipeline(text=text), int(START.timestamp()) * 1_000_000
    with patch.object(windows, "clock_of", lambda *_: Clock((ALWAYS, since), (9 * HOUR, 10 * HOUR))):
        new = sales_pipeline(text=text)
    told = []
    for name, pipeline in (("before", old), ("anew", new)):
        shop = Shop(tmp_path / name, pipeline)
        shop.epoch([Sale(13 * 60 + 30), Sale(14 * 60 + 30), Sale(15 * 60 + 30)])
        REMEMBERED.answers.clear()
        rows = answer(new, new.views[0], shop.layout).table.to_pylist()
        told.append([(row["window_start"], row["orders"]) for row in rows])
    assert told[0] == told[1]
