"""Heat maps and small charts: each window has one place, and what is missing is told apart from zero."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from seamline.lake.read.answer_ways import IntervalAnswer
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.definition.layers import Batch
from seamline.model.definition.pipeline import Pipeline, View
from seamline.model.definition.sources import KafkaSource
from seamline.model.definition.windows import Cumulating, Global, Session, Sliding, Tumbling, Window
from seamline.model.measures import avg, count, sum
from seamline.model.protocol.seam import Status
from seamline.model.time.intervals import Interval, format_utc_instant
from seamline.web.drawn.comparison import compare_ranges, may_add
from seamline.web.drawn.heat_map import (
    MOST_CELLS,
    MOST_KEYS,
    MOST_WINDOWS,
    CellKind,
    find_unfit,
    find_unfit_clock,
    lay_out_clock,
    lay_out_keys,
)
from seamline.web.drawn.log_axis import set_axis
from seamline.web.drawn.scales import Scale
from seamline.web.drawn.series import Subject
from seamline.web.drawn.small_charts import CHARTS, MOST_POINTS, draw_small
from seamline.web.drawn.two_ranges import Shift

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
START = datetime(2025, 10, 25, tzinfo=UTC)


def subject(
    window: Window, zone: str = "UTC", intervals: Mapping[str, IntervalAnswer] | None = None
) -> Subject:
    """Compile a view of one key, and say that its measure ``n`` is drawn."""
    pipeline = compile_pipeline(
        Pipeline(
            name="p",
            source=KafkaSource(topic="t", schema="k STRING, v BIGINT, at TIMESTAMP", event_time="at"),
            views=[
                View("v", keys=["k"], window=window, measures={"n": count(), "s": sum("v"), "m": avg("v")})
            ],
            batch=Batch(interval="1 day", start="2020-01-01"),
        )
    )
    return Subject(pipeline, pipeline.views[0], "n", ZoneInfo(zone), "", True, intervals or {})


def row(start: datetime, value: Any, key: str = "a", *, speed: int = 0, size: timedelta = HOUR) -> dict:
    """Make a row of an answer."""
    return {
        "k": key, "window_start": start, "window_end": start + size, "n": value, "batch_part": 1,
        "speed_part": speed, "epoch": 3, "certified": not speed, "complete": True,
    }  # fmt: skip


def test_hours_are_laid_out_by_day_and_what_is_missing_is_said() -> None:
    """A number, one that counts slices, NULL, no row, no number yet, and what is beside the range."""
    building = IntervalAnswer(Status.BUILDING, -1, "", 0, 0)
    it = subject(Tumbling("1 hour"), intervals={"2025-10-26T00:00:00Z": building})
    rows = [row(START + HOUR, 5), row(START + 2 * HOUR, 7, speed=1), row(START + 3 * HOUR, None)]
    span = Interval(START + HOUR, START + 30 * HOUR)
    heat = lay_out_clock(it, [("a", rows)], "", span, log=False)
    assert [each.label for each in heat.rows] == ["Sat 10-25", "Sun 10-26"]
    first, second = (each.cells for each in heat.rows)
    kinds = [CellKind.BESIDE, CellKind.SURE, CellKind.UNSURE, CellKind.NULL, CellKind.EMPTY]
    assert [each.kind for each in first[:5]] == kinds and len(first) == 24
    assert second[0].kind is CellKind.BUILDING and second[6].kind is CellKind.BESIDE
    assert first[1].written == "5" and first[1].step < first[2].step
    assert "a, 2025-10-25 01:00 UTC: 5. Certified: 1 row by the batch layer" in first[1].told
    assert "Not certified" in first[2].told and first[4].told.endswith("no rows.")
    assert "window=2025-10-25T01%3A00%3A00Z%2F2025-10-25T02%3A00%3A00Z" in first[1].explain


def test_an_hour_that_clocks_show_twice_has_a_column_of_its_own() -> None:
    """Neither of the two is lost; on other days that column is empty."""
    it = subject(Tumbling("1 hour"), "Europe/Berlin")
    begin = datetime(2025, 10, 25, tzinfo=it.zone).astimezone(UTC)
    rows = [row(begin + number * HOUR, number) for number in range(49)]
    heat = lay_out_clock(it, [("a", rows)], "", Interval(begin, begin + 49 * HOUR), log=False)
    assert heat.heads[2:5] == ("02:00", "02:00 again", "03:00") and len(heat.heads) == 25
    told = [each.kind for each in (heat.rows[0].cells[3], heat.rows[1].cells[3])]
    assert told == [CellKind.BESIDE, CellKind.SURE]
    assert sorted(int(cell.written) for line in heat.rows for cell in line.cells if cell.told) == [*range(49)]


def test_an_hour_that_clocks_skip_is_beside() -> None:
    """It is no window without rows."""
    it = subject(Tumbling("1 hour"), "Europe/Berlin")
    begin = datetime(2025, 3, 29, tzinfo=it.zone).astimezone(UTC)
    rows = [row(begin + number * HOUR, number) for number in range(47)]
    heat = lay_out_clock(it, [("a", rows)], "", Interval(begin, begin + 47 * HOUR), log=False)
    assert heat.rows[1].cells[2].kind is CellKind.BESIDE
    assert CellKind.EMPTY not in heat.kinds


def test_days_are_laid_out_by_week() -> None:
    """A column for each day of the week."""
    it = subject(Tumbling("1 day"))
    rows = [row(START + number * DAY, number, size=DAY) for number in range(10)]
    heat = lay_out_clock(it, [("a", rows)], "", Interval(START, START + 10 * DAY), log=False)
    assert heat.heads == ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
    assert [each.label for each in heat.rows] == ["2025-10-20", "2025-10-27", "2025-11-03"]
    assert [cell.written for cell in heat.rows[0].cells] == ["", "", "", "", "", "0", "1"]


def test_days_that_begin_on_the_same_day_of_another_clock_are_both_drawn() -> None:
    """In the Azores a day of UTC begins at 00:00 in summer and at 23:00 in winter: twice on the day of the change."""
    it = subject(Tumbling("1 day"), "Atlantic/Azores")
    rows = [row(START + number * DAY, number, size=DAY) for number in range(4)]
    heat = lay_out_clock(it, [("a", rows)], "", Interval(START, START + 4 * DAY), log=False)
    assert sorted(cell.written for line in heat.rows for cell in line.cells if cell.told) == [
        "0",
        "1",
        "2",
        "3",
    ]
    assert heat.heads == ("Mon", "Sat", "Sun", "Sun again")


def test_a_heat_map_is_bounded_and_says_what_it_leaves_out() -> None:
    """The newest windows are drawn, and the largest keys."""
    it = subject(Tumbling("1 hour"))
    many = [row(START + number * HOUR, number) for number in range(MOST_CELLS + 50)]
    span = Interval(START, START + len(many) * HOUR)
    heat = lay_out_clock(it, [("a", many)], "gone", span, log=True)
    assert sum_cells(heat.rows) == MOST_CELLS
    assert heat.notes[0] == "There is no gone in this range." and "are left out" in heat.notes[1]
    keys = [(f"k{number}", many[-200:]) for number in range(MOST_KEYS + 3)]
    heat = lay_out_keys(it, keys, span, log=False)
    assert (len(heat.rows), len(heat.heads)) == (MOST_KEYS, MOST_WINDOWS)
    assert heat.notes[0].startswith("3 smaller keys")


def sum_cells(rows: Any) -> int:
    """Count the cells that are windows."""
    return len([cell for each in rows for cell in each.cells if cell.told])


@pytest.mark.parametrize("window", [Session("1 hour"), Global(), Cumulating("1 day", "1 hour")], ids=str)
def test_windows_that_are_no_columns_are_said(window: Window) -> None:
    """They have no common starts, or several ends for one."""
    assert "do not follow each other evenly" in find_unfit(subject(window).view)


def test_windows_that_do_not_suit_the_clock_are_drawn_by_key() -> None:
    """Five minutes would be 288 columns, and a week is no day."""
    for size, suits in (("1 hour", True), ("1 day", True), ("5 minutes", False), ("7 days", False)):
        view = subject(Tumbling(size)).view
        assert not find_unfit(view) and (not find_unfit_clock(view)) is suits, size
    assert not find_unfit(subject(Sliding("1 hour", "30 minutes")).view)


def test_small_charts_have_equal_axes_or_their_own() -> None:
    """On equal axes a tenth is a tenth as high; on its own axis it is as high as any."""
    it = subject(Tumbling("1 hour"))
    series = [
        (name, [row(START + number * HOUR, number * by, name) for number in range(5)])
        for name, by in (("a", 10), ("b", 1))
    ]
    span = Interval(START, START + 5 * HOUR)
    equal = draw_small(it, series, span, page=0, equal=True, log=False)
    own = draw_small(it, series, span, page=0, equal=False, log=False)
    tops = [min(point.y for point in chart.points) for chart in equal.charts]
    assert tops[0] == min(tops) and tops[1] > 90
    assert [min(point.y for point in chart.points) for chart in own.charts] == [8, 8]
    assert equal.charts[0].told == "a: 5 windows, from 0 to 40, the last 40"


def test_a_line_is_broken_where_a_window_is_missing() -> None:
    """Nothing is drawn over what is not there, and what is alone has a dot."""
    it = subject(Tumbling("1 hour"))
    rows = [row(START + number * HOUR, 3) for number in (0, 1, 4)] + [row(START + 5 * HOUR, 3, speed=1)]
    [chart] = draw_small(
        it, [("a", rows)], Interval(START, START + 6 * HOUR), page=0, equal=True, log=True
    ).charts
    assert chart.line.count("M") == 1 and chart.slices.count("M") == 1
    assert chart.line.count("L") + chart.slices.count("L") == 2


def test_small_charts_are_paged_and_bounded() -> None:
    """So many keys a page, and so many windows; a page beyond the last is the last."""
    it = subject(Tumbling("1 hour"))
    rows = [row(START + number * HOUR, number) for number in range(MOST_POINTS + 9)]
    series = [(f"k{number}", rows) for number in range(CHARTS + 2)]
    small = draw_small(it, series, Interval(START, START + len(rows) * HOUR), page=9, equal=True, log=False)
    assert len(small.charts) == 2 and small.begun == CHARTS
    assert len(small.charts[0].points) == MOST_POINTS and "left out" in small.notes[0]


def test_two_ranges_are_compared_window_by_window() -> None:
    """Differences and ratios where both have a number, words where one has not, sums over what both have."""
    it = subject(Tumbling("1 hour"))
    this = [("a", [row(START, 10), row(START + HOUR, 4)]), ("b", [row(START, 1, "b")])]
    before = [("a", [row(START - DAY, 5), row(START - DAY + 2 * HOUR, 9)])]
    found = compare_ranges(it, it, this, before, "", Interval(START - DAY, START), Shift(DAY), log=False)
    assert [(each.this, each.other, each.difference, each.ratio) for each in found.windows] == [
        (10, 5, 5, 2.0), (4, None, None, None), (None, 9, None, None)
    ]  # fmt: skip
    assert [each.said for each in found.windows] == [
        "", "no row in the other range", "no row in this range"
    ]  # fmt: skip
    first, second = found.keys
    assert (first.this, first.other, first.only_this, first.only_other) == (10, 5, 1, 1)
    assert (second.this, second.other, second.only_this) == (0, 0, 1)
    assert found.notes == ("1 window is only in this range.", "1 window is only in the other range.")
    [one, two] = found.figure["data"]
    assert one["y"] == [10, 4, None] and two["y"] == [5, None, 9]
    assert one["x"] == two["x"] == [format_utc_instant(START + number * HOUR) for number in range(3)]
    assert found.differences["data"][0]["y"] == [5]
    axes = [each["layout"]["xaxis"] for each in (found.figure, found.differences)]
    edges = [format_utc_instant(START + each * HOUR) for each in (-0.5, 2.5)]
    assert axes[0] == axes[1] == {"range": edges}


def test_decimals_are_compared_with_all_their_digits() -> None:
    """Thirty-eight of them, of differences and of sums."""
    it = subject(Tumbling("1 hour"))
    large, small = Decimal("9" * 36 + ".99"), Decimal("0.01")
    this = [("a", [row(START, large), row(START + HOUR, large)])]
    before = [("a", [row(START - DAY, small), row(START - DAY + HOUR, large)])]
    found = compare_ranges(it, it, this, before, "", Interval(START - DAY, START), Shift(DAY), log=False)
    assert str(found.windows[0].difference) == "9" * 36 + ".98"
    assert (str(found.keys[0].this), str(found.keys[0].other)) == (
        "1" + "9" * 36 + ".98",
        "1" + "0" * 36 + ".00",
    )
    assert str(found.keys[0].difference) == "9" * 36 + ".98"


def test_averages_and_windows_that_overlap_are_not_added() -> None:
    """A sum of averages means nothing, and a row in two windows would count twice."""
    assert may_add(subject(Tumbling("1 hour")).view, "s")
    assert not may_add(subject(Tumbling("1 hour")).view, "m")
    assert not may_add(subject(Sliding("1 hour", "30 minutes")).view, "s")


def test_a_chart_with_negative_numbers_says_their_values_on_a_logarithmic_axis() -> None:
    """Places are stretched, what is written beside them is not; positive numbers leave it to the library."""
    figure = {"data": [{"y": [-100, None, 1000]}], "layout": {"yaxis": {"rangemode": "tozero"}}}
    found = set_axis(figure, Scale.fit([-100, 1000], log=True))
    [trace] = found["data"]
    assert trace["hovertext"] == ["-100", "NULL", "1,000"] and trace["y"][1] is None
    assert found["layout"]["yaxis"]["ticktext"] == ["0", "1,000"]
    assert set_axis(figure, Scale.fit([1, 10], log=True))["layout"]["yaxis"] == {"type": "log"}
    assert set_axis(figure, Scale.fit([1, 10])) is figure
