"""Which rows are read to take a joined number apart."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.unit.model.test_joins import ADS

from seamline.lake.joins.original_pairs import find_key_columns, write_key_conditions
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.time.intervals import Interval

[VIEW] = compile_pipeline(ADS).views
DAY = datetime(2026, 1, 5, tzinfo=UTC)


def test_what_is_compared_narrows_both_sides() -> None:
    """The ad of the left row is that of the right one, which is known before they are joined."""
    assert VIEW.join
    assert find_key_columns(VIEW.join, "shown_ad") == [(0, "ad"), (1, "ad")]
    assert find_key_columns(VIEW.join, "clicked_ad") == [(0, "ad"), (1, "ad")]
    assert find_key_columns(VIEW.join, "shown_site") == [(0, "site")]
    hour = Interval(DAY, DAY + timedelta(hours=1))
    left, right = write_key_conditions(VIEW.join, ["shown_site"], [hour])
    assert left.startswith("_event_time >= make_timestamptz(")
    assert left.endswith('"site" IS NOT DISTINCT FROM (SELECT "shown_site" FROM sought)')
    assert right == "true", "a right row may be up to an hour away, and has no site"
