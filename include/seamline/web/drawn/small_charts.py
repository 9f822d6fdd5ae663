"""Small multiples: a chart for each key, drawn here as SVG, on equal axes or each on its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from seamline.model.time.intervals import Interval
from seamline.model.time.window_arithmetic import Ruling
from seamline.model.time.zone_clock import MICROSECOND
from seamline.web.drawn.heat_map import list_window_starts
from seamline.web.drawn.scales import Scale, as_place, format_short, list_drawable
from seamline.web.drawn.series import Row, Series, Subject, is_sure
from seamline.web.drawn.wall_clock import format_window

CHARTS = 12
"""Charts of a page."""
MOST_POINTS = 168
"""Points of a chart: a week of hours."""
DOTTED = 60
"""Points up to which each has a dot."""
WIDTH, HEIGHT = 300, 130
LEFT, RIGHT, TOP, BOTTOM = 44, 8, 8, 18
"""Of a chart, and of what is around its lines."""


@dataclass(frozen=True)
class ChartPoint:
    """A window's number on a small chart."""

    x: float
    """From the left."""
    y: float
    """From above."""
    left: float
    """Where what belongs to it begins, from the left."""
    width: float
    """How wide that is."""
    sure: bool
    """Whether it is certified, and no slice is counted in it."""
    dot: bool
    """Whether it is drawn: there are few, or no line leads to it."""
    told: str
    """All of it in words."""
    explain: str
    """The address of its explanation, empty where there is none."""


@dataclass(frozen=True)
class SmallChart:
    """The chart of a key."""

    name: str
    """The key."""
    told: str
    """What is seen, in words."""
    line: str
    """The line as an SVG path, broken where a window is missing, to points that are certified."""
    slices: str
    """The line to points that are not, or that count slices."""
    area: str
    """What is below the line."""
    points: tuple[ChartPoint, ...]
    """The windows that have a number."""
    ticks: tuple[tuple[float, str], ...]
    """Places from above and what is written there."""


@dataclass(frozen=True)
class SmallMultiples:
    """A page of small charts."""

    charts: tuple[SmallChart, ...]
    """The largest key first."""
    first: str
    """The first window."""
    last: str
    """The last one."""
    scale: Scale
    """The scale of all, or that of the first chart."""
    notes: tuple[str, ...]
    """What was left out."""
    begun: int
    """Keys on pages before."""
    total: int
    """Keys altogether."""


@dataclass(frozen=True)
class TimeAxis:
    """Places of windows from left to right."""

    start: datetime
    """The first window's."""
    end: datetime
    """The last window's."""
    step: timedelta | None
    """The time from a window to the next, None where they do not follow each other evenly."""

    def x(self, moment: datetime) -> float:
        """Return the place of an instant."""
        inside, whole = WIDTH - LEFT - RIGHT, self.end - self.start
        return LEFT + (inside * ((moment - self.start) / whole) if whole else inside / 2)

    def breaks(self, before: datetime, after: datetime) -> bool:
        """Return whether a window is missing between two; a day may have 25 hours, and a pause is no window."""
        return self.step is not None and after - before > self.step * 1.5


def draw_small(
    subject: Subject, series: Sequence[Series], span: Interval, *, page: int, equal: bool, log: bool
) -> SmallMultiples:
    """Draw the keys of a page."""
    page = min(page, max(len(series) - 1, 0) // CHARTS)
    begun = page * CHARTS
    windows = subject.view.windows
    even = isinstance(windows, Ruling) and windows.step == windows.size
    starts = (
        list_window_starts(windows, span, MOST_POINTS + 1)
        if even and isinstance(windows, Ruling)
        else sorted({row["window_start"] for _, rows in series for row in rows})
    )
    kept = starts[-MOST_POINTS:]
    first, last = kept[0], kept[-1]
    step = windows.slide * MICROSECOND if even and isinstance(windows, Ruling) else None
    shown = [(name, [row for row in rows if first <= row["window_start"] <= last]) for name, rows in series]
    common = fit_rows(subject, [row for _, rows in shown for row in rows], log=log)
    charts = [
        draw_chart(
            subject,
            each,
            TimeAxis(first, last, step),
            common if equal else fit_rows(subject, each[1], log=log),
        )
        for each in shown[begun : begun + CHARTS]
    ]
    cut = len(starts) > len(kept)
    return SmallMultiples(
        tuple(charts),
        format_window(first, subject.zone),
        format_window(last, subject.zone),
        common,
        (f"Windows before {format_window(first, subject.zone)} are left out.",) if cut else (),
        begun,
        len(series),
    )


def fit_rows(subject: Subject, rows: Sequence[Row], *, log: bool) -> Scale:
    """Fit a scale to rows, with zero in it if it is linear."""
    return Scale.fit(list_drawable(row[subject.measure] for row in rows), log=log, zero=True)


def draw_chart(subject: Subject, series: Series, axis: TimeAxis, scale: Scale) -> SmallChart:
    """Draw one key."""
    name, rows = series
    known = [(row, value) for row in rows if (value := as_place(row[subject.measure])) is not None]
    places = [(axis.x(row["window_start"]), height_of(scale, value)) for row, value in known]
    base = height_of(scale, min(max(0.0, scale.low), scale.high))
    runs: list[list[int]] = []
    for at, (row, _) in enumerate(known):
        if at and not axis.breaks(known[at - 1][0]["window_start"], row["window_start"]):
            runs[-1].append(at)
        else:
            runs.append([at])
    few, alone = len(known) <= DOTTED, {run[0] for run in runs if len(run) == 1}
    edges = list_edges([x for x, _ in places])
    points = [
        ChartPoint(
            round(x, 1),
            round(y, 1),
            round(left, 1),
            round(right - left, 1),
            is_sure(row),
            few or at in alone,
            subject.tell(name, row),
            subject.link(row),
        )
        for at, ((row, _), (x, y), (left, right)) in enumerate(zip(known, places, edges, strict=True))
    ]
    return SmallChart(
        name,
        tell_chart(name, [value for _, value in known]),
        draw_steps(places, [at for run in runs for at in run[1:] if points[at].sure]),
        draw_steps(places, [at for run in runs for at in run[1:] if not points[at].sure]),
        "".join(
            f"M{places[run[0]][0]:.1f} {base:.1f}"
            + "".join(f"L{places[at][0]:.1f} {places[at][1]:.1f}" for at in run)
            + f"L{places[run[-1]][0]:.1f} {base:.1f}z"
            for run in runs
            if len(run) > 1
        ),
        tuple(points),
        tuple((round(height_of(scale, each), 1), format_short(each)) for each in scale.ticks(3)),
    )


def height_of(scale: Scale, value: float) -> float:
    """Return the place of a value from above."""
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * scale.place(value)


def draw_steps(places: Sequence[tuple[float, float]], to: Sequence[int]) -> str:
    """Draw the line to some points, each from the one before it."""
    found, last = [], -1
    for at in to:
        begin = "" if at - 1 == last else "M{:.1f} {:.1f}".format(*places[at - 1])
        found.append(begin + "L{:.1f} {:.1f}".format(*places[at]))
        last = at
    return "".join(found)


def list_edges(places: Sequence[float]) -> list[tuple[float, float]]:
    """List what belongs to each point: from half way to the one before to half way to the next, and to the borders."""
    middles = [(a + b) / 2 for a, b in pairwise(places)]
    return list(zip([LEFT, *middles], [*middles, WIDTH], strict=True)) if places else []


def tell_chart(name: str, values: Sequence[float]) -> str:
    """Say what is seen of a key."""
    if not values:
        return f"{name}: no numbers"
    least, most, last = map(format_short, (min(values), max(values), values[-1]))
    return f"{name}: {len(values)} windows, from {least} to {most}, the last {last}"
