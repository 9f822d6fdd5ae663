"""Intervals as a calendar: years of days at one look, and one month of them interval by interval."""

from __future__ import annotations

from calendar import monthrange
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cached_property
from itertools import groupby

from markupsafe import Markup

from seamline.model.time.intervals import Grid, format_utc_instant, parse_moment
from seamline.serve.trust.interval_shades import Shade, Square

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
SPANS = ((DAY, 4), (HOUR / 2, 7), (HOUR / 60, 10), (timedelta(0), 13))
"""How many letters of an interval's id name the span that is drawn in full, by the least length of intervals: a year, a
month, a day or an hour, so that a page has not more squares than a browser can show."""
HEIGHTS: Mapping[Shade, int] = {
    Shade.CERTIFIED: 7,
    Shade.OPEN: 4,
    Shade.PROVISIONAL: 10,
    Shade.DECIDED: 12,
    Shade.NEVER: 14,
    Shade.DIRTY: 16,
    Shade.FAILED: 20,
    Shade.HOLED: 20,
}
"""How tall a day is drawn, of 20: the worse, the taller, for those who cannot tell the colours. In order of gravity."""
GRAVITY = {shade: rank for rank, shade in enumerate(HEIGHTS)}


@dataclass(frozen=True)
class Strip:
    """A row of a calendar: a year of long intervals, a month of days, a day of hours, or an hour of shorter ones."""

    label: str
    """The year, month, day or hour."""
    squares: tuple[Square | None, ...]
    """One for each column; None where an interval has no rows."""


@dataclass(frozen=True)
class Month:
    """A month of a year, a bar a day."""

    name: str
    """As 2026-03."""
    bars: Mapping[Shade, str]
    """The bars of each shade as an SVG path: a day is 1 wide, and all are 20 high."""
    days: int
    """How many it has."""
    tally: Mapping[Shade, int]
    """How many of the intervals that touch it are so, the gravest first; none if it has no rows."""

    @cached_property
    def said(self) -> str:
        """Return it in words."""
        return f"{self.name}: " + ", ".join(
            f"{number:,} {shade.value}" for shade, number in self.tally.items()
        )

    @cached_property
    def drawn(self) -> Markup:
        """Return it as an image."""
        paths = (
            f'<path class="{name.value.replace(" ", "-")}" d="{bar}"/>' for name, bar in self.bars.items()
        )
        box = f'<svg viewBox="0 0 {self.days} 20" preserveAspectRatio="none" aria-hidden="true">'
        return Markup(f"{box}{''.join(paths)}</svg>")


@dataclass(frozen=True)
class Year:
    """A row of the calendar of years."""

    name: str
    """As 2026."""
    months: tuple[Month, ...]
    """All twelve."""


def lay_out_years(known: Iterable[Square], grid: Grid) -> list[Year]:
    """Lay intervals out as years of days, newest first: a day has the shade of its gravest interval."""
    days: dict[tuple[int, int], dict[int, Shade]] = {}
    tallies: dict[tuple[int, int], Counter[Shade]] = {}
    for each in known:
        start = parse_moment(each.cell.interval)
        touched = list_days(start, grid.named(each.cell.interval).end)
        for month in {(day.year, day.month) for day in touched}:
            tallies.setdefault(month, Counter())[each.shade] += 1
        for day in touched:
            known_days = days.setdefault((day.year, day.month), {})
            worst = known_days.get(day.day, each.shade)
            known_days[day.day] = max(worst, each.shade, key=GRAVITY.__getitem__)
    years = sorted({year for year, _ in days}, reverse=True)
    return [
        Year(
            f"{year:04}",
            tuple(
                draw_month(year, month, days.get((year, month), {}), tallies.get((year, month), Counter()))
                for month in range(1, 13)
            ),
        )
        for year in years
    ]


def list_days(start: datetime, end: datetime) -> list[date]:
    """List the days, UTC, that an interval touches."""
    last = end - timedelta.resolution
    return [date.fromordinal(day) for day in range(start.toordinal(), last.toordinal() + 1)]


def draw_month(year: int, month: int, days: Mapping[int, Shade], tally: Counter[Shade]) -> Month:
    """Draw a month, days of one shade beside each other as one bar."""
    bars: dict[Shade, str] = {}
    for (shade, _), run in groupby(enumerate(sorted(days)), lambda each: (days[each[1]], each[1] - each[0])):
        held = [day for _, day in run]
        bar = f"M{held[0] - 1} 20v-{HEIGHTS[shade]}h{len(held)}v{HEIGHTS[shade]}z"
        bars[shade] = bars.get(shade, "") + bar
    gravest = sorted(tally, key=GRAVITY.__getitem__, reverse=True)
    counts = {shade: tally[shade] for shade in gravest}
    return Month(f"{year:04}-{month:02}", bars, monthrange(year, month)[1], counts)


def list_span(known: Iterable[Square], span: str) -> list[Square]:
    """List the intervals that start in a month such as 2026-03, or in another span."""
    return [each for each in known if each.cell.interval.startswith(span)]


def name_span(id: str, length: timedelta) -> str:
    """Name the span of an interval that is drawn in full."""
    return id[: next(letters for least, letters in SPANS if length >= least)]


def lay_out_strips(known: Sequence[Square], length: timedelta) -> list[Strip]:
    """Lay intervals out: minutes by hour, hours by day, days by month, longer ones by year; oldest first."""
    rows: dict[str, dict[int, Square]] = {}
    for each in known:
        label, column = locate_in_strip(parse_moment(each.cell.interval), length)
        rows.setdefault(label, {})[column] = each
    width = max((max(row) + 1 for row in rows.values()), default=0)
    return [
        Strip(label, tuple(row.get(column) for column in range(width))) for label, row in sorted(rows.items())
    ]


def locate_in_strip(start: datetime, length: timedelta) -> tuple[str, int]:
    """Locate the row and the column of an interval."""
    text = format_utc_instant(start)
    if length < HOUR / 2:
        hour = start.replace(minute=0, second=0, microsecond=0)
        return text[:13], int((start - hour) / length)
    if length < DAY:
        midnight = start.replace(hour=0, minute=0, second=0, microsecond=0)
        return text[:10], int((start - midnight) / length)
    if length == DAY:
        return text[:7], start.day - 1
    january = start.replace(month=1, day=1, hour=0, minute=0, second=0, microsecond=0)
    return text[:4], int((start - january) / length)
