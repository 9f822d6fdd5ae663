"""What is drawn of a view's answer: lines by key, a heat map, small multiples, or two ranges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from seamline.model.protocol.seam import Status
from seamline.model.time.intervals import Interval, format_utc_instant, parse_moment
from seamline.web.charts import draw_measure
from seamline.web.drawn.comparison import compare_ranges
from seamline.web.drawn.heat_map import HeatMap, find_unfit, find_unfit_clock, lay_out_clock, lay_out_keys
from seamline.web.drawn.log_axis import set_axis
from seamline.web.drawn.scales import Scale, list_drawable
from seamline.web.drawn.series import Series, Subject
from seamline.web.drawn.small_charts import CHARTS, draw_small
from seamline.web.drawn.two_ranges import read_shift, shift_range
from seamline.web.drawn.view_request import ViewRequest

LINES = 8
"""Keys of a chart of lines."""
LISTED = 50
"""Pairs of windows of a table's page."""
BESIDE = timedelta(days=1)
OtherRange = Callable[[Interval], tuple[Subject, Sequence[Series]]]
"""Answers for another range, as was answered for this one."""


def draw_picture(
    subject: Subject, series: Sequence[Series], asked: ViewRequest, read_other: OtherRange
) -> dict[str, Any]:
    """Draw what is asked for, for the page's template; BadRange for a comparison with what is no range.

    ``asked`` names the range that is shown, and a measure; ``series`` are its keys, the largest first.
    """
    found: dict[str, Any] = {"told_scale": "", "unfit": "", "tabs": list_tabs(subject, asked)}
    found |= dict.fromkeys(("figure", "heat", "small"))
    if asked.draw == "compared":
        return found | draw_compared(subject, series, asked, read_other)
    if not series:
        return found
    if asked.draw == "heat":
        return found | draw_heat(subject, series, asked)
    if asked.draw == "small" and subject.view.keys:
        return found | draw_small_page(subject, series, asked)
    if asked.draw == "small":
        found["unfit"] = f"{subject.view.name} has no keys: it has one line, and no small charts."
    return found | draw_lines(subject, series, asked)


def list_tabs(subject: Subject, asked: ViewRequest) -> list[tuple[str, str, bool]]:
    """List the pictures that suit the view: a name, an address, and whether it is the one that is shown."""
    names = {"lines": "Lines", "heat": "Heat map", "small": "Small multiples", "compared": "Two ranges"}
    return [
        (name, asked.address(draw=draw), draw == asked.draw)
        for draw, name in names.items()
        if draw != "small" or subject.view.keys
    ]


def find_span(series: Sequence[Series], asked: ViewRequest) -> Interval:
    """Return the range: as asked for, and where a bound was not named, as far as there are rows."""
    starts = [row["window_start"] for _, rows in series for row in (rows[0], rows[-1])]
    first = parse_moment(asked.start) if asked.start else min(starts)
    last = parse_moment(asked.end) if asked.end else max(starts) + timedelta.resolution
    return Interval(first, last)


def find_drawn_span(series: Sequence[Series], asked: ViewRequest) -> Interval:
    """Return what is drawn of the range: a day before the first row and after the last there is nothing to see."""
    span = find_span(series, asked)
    starts = [row["window_start"] for _, rows in series for row in (rows[0], rows[-1])]
    return Interval(max(span.start, min(starts) - BESIDE), min(span.end, max(starts) + BESIDE))


def draw_lines(subject: Subject, series: Sequence[Series], asked: ViewRequest) -> dict[str, Any]:
    """Draw the largest keys as lines."""
    seam = min(
        (id for id, each in subject.intervals.items() if each.status is not Status.CERTIFIED), default=None
    )
    drawn = [
        (name, [{**row, "_explain": subject.link(row), "_told": subject.tell(name, row)} for row in rows])
        for name, rows in series[:LINES]
    ]
    scale = Scale.fit(list_drawable(row[subject.measure] for _, rows in drawn for row in rows), log=asked.log)
    figure = set_axis(draw_measure(drawn, subject.measure, seam), scale)
    return {"figure": figure, "drawn": len(drawn), "series": len(series), "told_scale": scale.told()}


def draw_heat(subject: Subject, series: Sequence[Series], asked: ViewRequest) -> dict[str, Any]:
    """Draw a heat map: by the clock where windows suit it and one key is meant, else by key."""
    if unfit := find_unfit(subject.view):
        return draw_lines(subject, series, asked) | {"unfit": unfit}
    span = find_drawn_span(series, asked)
    unfit = find_unfit_clock(subject.view)
    by_key = asked.by == "keys" or (not asked.by and len(series) > 1 and not asked.series)
    heat: HeatMap = (
        lay_out_keys(subject, series, span, log=asked.log)
        if by_key or unfit
        else lay_out_clock(subject, series, asked.series, span, log=asked.log)
    )
    others = [(name, asked.address(by="clock", series=name)) for name in heat.others]
    ways = [
        ("by clock", asked.address(by="clock"), not (by_key or unfit)),
        ("by key", asked.address(by="keys"), bool(by_key or unfit)),
    ]
    return {
        "heat": heat,
        "others": others,
        "ways": ways if subject.view.keys and not unfit else [],
        "unfit": unfit if asked.by == "clock" else "",
        "told_scale": heat.scale.told(),
    }


def draw_small_page(subject: Subject, series: Sequence[Series], asked: ViewRequest) -> dict[str, Any]:
    """Draw a page of small charts."""
    small = draw_small(
        subject,
        series,
        find_drawn_span(series, asked),
        page=asked.page,
        equal=asked.axes == "equal",
        log=asked.log,
    )
    page = small.begun // CHARTS
    more = small.begun + len(small.charts) < small.total
    return {
        "small": small,
        "told_scale": small.scale.told() if asked.axes == "equal" else "",
        "charts_before": asked.address(page=page - 1) if page else "",
        "charts_after": asked.address(page=page + 1) if more else "",
    }


def draw_compared(
    subject: Subject, series: Sequence[Series], asked: ViewRequest, read_other: OtherRange
) -> dict[str, Any]:
    """Draw this range and another one."""
    if not (asked.start and asked.end) and not series:
        return {}
    span = find_span(series, asked)
    shift = read_shift(asked.other or asked.against, span, subject.zone)
    other = shift_range(span, shift, subject.zone)
    other_subject, others = read_other(other)
    found: dict[str, Any] = {"other": other, "others": []}
    if not series and not others:
        return found | {"compared": None}
    compared = compare_ranges(
        subject, other_subject, series, others, asked.series, other, shift, log=asked.log
    )
    page = min(asked.page, max(len(compared.windows) - 1, 0) // LISTED)
    more = (page + 1) * LISTED < len(compared.windows)
    return found | {
        "compared": compared,
        "listed": compared.windows[page * LISTED : (page + 1) * LISTED],
        "earlier": asked.address(page=page - 1) if page else "",
        "later": asked.address(page=page + 1) if more else "",
        "other_address": asked.address(
            draw="lines",
            start=format_utc_instant(other.start),
            end=format_utc_instant(other.end),
            against="",
            other="",
        ),
        "others": [(name, asked.address(series=name)) for name in compared.names if name != compared.name],
        "told_scale": compared.scale.told(),
    }
