"""Heat maps: windows laid out by the clock, a row for each day, or by key, a row for each; bounded either way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

from seamline.model.compile.compiled_pipeline import CompiledView
from seamline.model.definition.windows import CountWindow
from seamline.model.protocol.seam import Status
from seamline.model.time.intervals import EPOCH, Interval
from seamline.model.time.window_arithmetic import Ruling
from seamline.model.time.zone_clock import MICROSECOND
from seamline.web.drawn.scales import Scale, as_place, format_short, list_drawable, spread
from seamline.web.drawn.series import Row, Series, Subject, choose_series, is_sure
from seamline.web.drawn.wall_clock import Reading, format_window

DAY, SHORTEST = timedelta(days=1), timedelta(minutes=15)
STEPS = 7
"""Colours of the scale: style sheets have one for each."""
MOST_CELLS = 2_000
MOST_KEYS = 25
MOST_WINDOWS = 72
"""Columns of a heat map by keys."""
WRITTEN = 26
"""Columns up to which the values are written into the cells."""
Column = tuple[timedelta, bool]
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


class CellKind(StrEnum):
    """What a cell of a heat map is.

    SURE: a certified number. UNSURE: one that is not certified, or that counts slices. NULL: a row without a number.
    EMPTY: a window without a row. BUILDING: its interval gives no number until it is built. BESIDE: out of the range,
    or a time that clocks do not show on that day.
    """

    SURE = "sure"
    UNSURE = "unsure"
    NULL = "null"
    EMPTY = "empty"
    BUILDING = "building"
    BESIDE = "beside"


@dataclass(frozen=True)
class HeatCell:
    """A cell of a heat map."""

    kind: CellKind
    """What it is."""
    told: str = ""
    """All of it in words; empty if it is BESIDE."""
    step: int = 0
    """Its colour, from 0, if it has a number."""
    written: str = ""
    """Its number in a few characters."""
    explain: str = ""
    """The address of its explanation, empty where there is none."""


@dataclass(frozen=True)
class HeatRow:
    """A row of a heat map."""

    label: str
    """The day, the week or the key."""
    cells: tuple[HeatCell, ...]
    """One for each column."""


@dataclass(frozen=True)
class HeatMap:
    """A heat map."""

    rows: tuple[HeatRow, ...]
    """From above."""
    heads: tuple[str, ...]
    """The labels of the columns."""
    shown: tuple[bool, ...]
    """Which labels there is room for."""
    legend: tuple[str, ...]
    """The least value of each colour, and the greatest of the last."""
    scale: Scale
    """The scale of the colours."""
    corner: str
    """What the rows are."""
    title: str
    """What is drawn."""
    notes: tuple[str, ...] = ()
    """What was left out, or is not as asked for."""
    others: tuple[str, ...] = ()
    """Names of the keys that could be drawn instead, largest first."""

    @property
    def kinds(self) -> set[CellKind]:
        """The kinds of cells that occur."""
        return {cell.kind for row in self.rows for cell in row.cells}

    @property
    def written(self) -> bool:
        """Whether there is room for the numbers."""
        return len(self.heads) <= WRITTEN


def find_unfit(view: CompiledView) -> str:
    """Say why windows cannot be columns; empty if they can."""
    windows = view.windows
    even = isinstance(windows, Ruling) and windows.step == windows.size
    if not even or isinstance(view.window, CountWindow):
        said = f"Windows of {view.name} ({view.window}) do not follow each other evenly"
        return f"{said}: a heat map has no columns for them."
    return ""


def find_unfit_clock(view: CompiledView) -> str:
    """Say why windows that can be columns cannot be laid out by the clock; empty if they can."""
    assert isinstance(view.windows, Ruling)
    slide = view.windows.slide * MICROSECOND
    if slide < SHORTEST or slide > DAY or DAY % slide:
        said = f"Windows of {view.name} ({view.window}) are no even parts of a day of 15 minutes or more"
        return f"{said}: keys are drawn over time."
    return ""


def list_window_starts(windows: Ruling, span: Interval, most: int) -> list[datetime]:
    """List when windows start in a span, the last ones if there are more than ``most``."""
    first, last = (
        windows.last_starting_by((each - EPOCH) // MICROSECOND - 1) for each in (span.start, span.end)
    )
    numbers = range(max(first + 1, last + 1 - most), last + 1)
    found = (EPOCH + windows.at(number) * MICROSECOND for number in numbers)
    return sorted({each for each in found if span.start <= each < span.end})


def place_by_clock(moment: datetime, zone: ZoneInfo, slide: timedelta) -> tuple[date, Column]:
    """Place a window: by its day and time, or, of windows of a day, by its week (its Monday) and day.

    The column is the time since midnight, or since Monday, and whether clocks show it again.
    """
    reading = Reading.at(moment, zone)
    if slide < DAY:
        return reading.day, (reading.time, reading.again)
    monday = reading.day - timedelta(days=reading.day.weekday())
    return monday, (timedelta(days=reading.day.weekday()), False)


def lay_out_clock(
    subject: Subject, series: Sequence[Series], asked: str, span: Interval, *, log: bool
) -> HeatMap:
    """Lay out one key by the clock: hours of days, or days of weeks."""
    (name, rows), note = choose_series(series, asked)
    windows = subject.view.windows
    assert isinstance(windows, Ruling)
    slide = windows.slide * MICROSECOND
    starts = list_window_starts(windows, span, MOST_CELLS)
    found = {row["window_start"]: row for row in rows}
    scale = Scale.fit(list_drawable(row[subject.measure] for row in rows), log=log)
    placed: dict[tuple[date, Column], datetime] = {}
    for each in starts:
        day, (time, again) = place_by_clock(each, subject.zone, slide)
        # Days of another clock may begin twice on one day of this one, when one of the two is put back.
        placed[day, (time, again or (day, (time, False)) in placed)] = each
    columns = sorted({column for _, column in placed})
    days = sorted({day for day, _ in placed})
    laid = []
    for day in days:
        windows_of = [placed.get((day, column)) for column in columns]
        cells = [
            make_cell(subject, name, found.get(each) if each else None, each, scale) for each in windows_of
        ]
        laid.append(HeatRow(format_day(day, slide), tuple(cells)))
    first = starts[0] if starts else span.end
    notes = [note] if note else []
    if any(row["window_start"] < first for row in rows):
        notes.append(f"Windows before {format_window(first, subject.zone)} are left out.")
    short = slide < DAY
    heads = tuple(
        f"{format_time(time) if short else WEEKDAYS[time.days]}{' again' if again else ''}"
        for time, again in columns
    )
    thinned = thin_heads(columns) if short else [True] * len(heads)
    return HeatMap(
        tuple(laid),
        heads,
        tuple(thinned),
        list_legend(scale),
        scale,
        "day" if short else "week of",
        f"{subject.measure} of {name} by {'time' if short else 'weekday'}{tell_days(days)}",
        tuple(notes),
        tuple(each for each, _ in series[:MOST_KEYS] if each != name),
    )


def lay_out_keys(subject: Subject, series: Sequence[Series], span: Interval, *, log: bool) -> HeatMap:
    """Lay out the largest keys over time."""
    drawn = series[:MOST_KEYS]
    windows = subject.view.windows
    starts = (
        list_window_starts(windows, span, MOST_WINDOWS + 1)
        if isinstance(windows, Ruling)
        else sorted({row["window_start"] for _, rows in drawn for row in rows})
    )
    kept = starts[-MOST_WINDOWS:]
    scale = Scale.fit(
        list_drawable(
            row[subject.measure] for _, rows in drawn for row in rows if row["window_start"] >= kept[0]
        )
        if kept
        else (),
        log=log,
    )
    laid = []
    for name, rows in drawn:
        found = {row["window_start"]: row for row in rows}
        laid.append(
            HeatRow(name, tuple(make_cell(subject, name, found.get(each), each, scale) for each in kept))
        )
    notes = [
        f"{len(series) - MOST_KEYS:,} smaller keys are left out." if len(series) > MOST_KEYS else "",
        f"Windows before {format_window(kept[0], subject.zone)} are left out."
        if len(starts) > len(kept)
        else "",
    ]
    every = -(-len(kept) // 8)
    return HeatMap(
        tuple(laid),
        tuple(f"{each.astimezone(subject.zone):%m-%d %H:%M}" for each in kept),
        tuple(place % every == 0 for place in range(len(kept))),
        list_legend(scale),
        scale,
        "key",
        f"{subject.measure} by key and window",
        tuple(filter(None, notes)),
    )


def make_cell(subject: Subject, name: str, row: Row | None, start: datetime | None, scale: Scale) -> HeatCell:
    """Make a cell of a window's row; None for a window that has none, or for no window."""
    if start is None:
        return HeatCell(CellKind.BESIDE)
    if row is None:
        return make_empty_cell(subject, name, start)
    value = as_place(row[subject.measure])
    told, link = subject.tell(name, row), subject.link(row)
    if value is None:
        return HeatCell(CellKind.NULL, told, explain=link)
    kind = CellKind.SURE if is_sure(row) else CellKind.UNSURE
    return HeatCell(kind, told, scale.step(value, STEPS), format_short(value), link)


def make_empty_cell(subject: Subject, name: str, start: datetime) -> HeatCell:
    """Make the cell of a window without a row."""
    when = f"{name}, {format_window(start, subject.zone)}"
    way = subject.intervals.get(subject.pipeline.grid.of(start).id)
    if way and way.status is Status.BUILDING:
        return HeatCell(CellKind.BUILDING, f"{when}: no number until the interval is built.")
    return HeatCell(CellKind.EMPTY, f"{when}: no rows.")


def format_day(day: date, slide: timedelta) -> str:
    """Format the label of a row."""
    return f"{WEEKDAYS[day.weekday()]} {day:%m-%d}" if slide < DAY else day.isoformat()


def tell_days(days: Sequence[date]) -> str:
    """Say which days there are, oldest first; rows have no room for years."""
    return f", {days[0]} to {days[-1]}" if days else ""


def format_time(time: timedelta) -> str:
    """Format a time of the day."""
    minutes = time // timedelta(minutes=1)
    return f"{minutes // 60:02}:{minutes % 60:02}"


def thin_heads(columns: Sequence[Column]) -> list[bool]:
    """Choose the columns whose time is written above them: about every third hour, and none twice."""
    hours = 3 if len(columns) > 8 else 1
    shown, last = [], None
    for time, again in columns:
        part = time // timedelta(hours=hours)
        shown.append(part != last and not again)
        last = part
    return shown


def list_legend(scale: Scale) -> tuple[str, ...]:
    """List the borders of the colours."""
    return tuple(map(format_short, spread(scale, STEPS + 1)))
