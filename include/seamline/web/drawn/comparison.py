"""What a page shows of two ranges: differences and ratios by window of one key, and sums by key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import localcontext
from typing import Any

from seamline.model.compile.compiled_pipeline import CompiledView
from seamline.model.time.intervals import Interval, format_utc_instant
from seamline.model.time.window_arithmetic import Ruling
from seamline.model.types.decimals import EXACT
from seamline.web.charts import Figure, make_figure
from seamline.web.drawn.log_axis import set_axis
from seamline.web.drawn.scales import Scale, as_place, list_drawable
from seamline.web.drawn.series import Row, Series, Subject, choose_series
from seamline.web.drawn.two_ranges import Shift, WindowPair, pair_windows
from seamline.web.drawn.wall_clock import format_window

MOST_PAIRS, MOST_COMPARED = 400, 50
ADDED = ("count", "sum")
"""Kinds of measures that may be added over windows and keys."""


@dataclass(frozen=True)
class ComparedWindow:
    """A window of this range beside that of the other."""

    when: str
    """When it starts in this range; empty where it has none."""
    other_when: str
    """When it starts in the other one."""
    this: Any
    """Its number; None for NULL and for no window."""
    other: Any
    """That of the other range."""
    difference: Any
    """This less the other, None if one is missing."""
    ratio: float | None
    """This by the other, None if one is missing or the other is zero."""
    said: str
    """What is missing, in words; empty if nothing is."""
    explain: str
    """The address of the explanation of this range's number, empty where there is none."""
    explain_other: str
    """That of the other one's."""


@dataclass(frozen=True)
class ComparedKey:
    """A key in both ranges, over the windows that both have."""

    name: str
    """The key."""
    this: Any
    """The sum in this range."""
    other: Any
    """The sum in the other one."""
    difference: Any
    """This less the other."""
    ratio: float | None
    """This by the other, None if that is zero."""
    only_this: int
    """Windows with a row in this range alone."""
    only_other: int
    """Windows with a row in the other range alone."""


@dataclass(frozen=True)
class RangeComparison:
    """Two ranges of a view."""

    name: str
    """The key that is drawn."""
    other: Interval
    """The other range."""
    windows: tuple[ComparedWindow, ...]
    """The windows of the key, in order."""
    keys: tuple[ComparedKey, ...]
    """Sums by key, the largest first; none of a measure that cannot be added."""
    names: tuple[str, ...]
    """Names of the keys that could be drawn instead."""
    figure: Figure
    """Both ranges over the time of this one."""
    differences: Figure
    """The differences over the time of this range."""
    notes: tuple[str, ...]
    """What is missing, and what was left out."""
    scale: Scale
    """The scale of the figure."""


def may_add(view: CompiledView, measure: str) -> bool:
    """Return whether a measure may be added over windows: it is a count or a sum, and no row is in two windows."""
    found = next((each.measure.kind for each in view.measures if each.name == measure), "")
    windows = view.windows
    apart = not isinstance(windows, Ruling) or windows.slide == windows.size == windows.step
    return found in ADDED and apart


def compare_ranges(
    subject: Subject,
    other_subject: Subject,
    series: Sequence[Series],
    others: Sequence[Series],
    asked: str,
    other: Interval,
    shift: Shift,
    *,
    log: bool,
) -> RangeComparison:
    """Compare the series of two ranges, of which at least one has a key."""
    known, counterparts = dict(series), dict(others)
    names = [*known, *(name for name in counterparts if name not in known)]
    (name, _), note = choose_series([(each, ()) for each in names], asked)
    pairs = pair_rows(known.get(name, ()), counterparts.get(name, ()), shift, subject)
    shown = pairs[-MOST_PAIRS:]
    windows = [compare_window(subject, other_subject, *each) for each in shown]
    added = may_add(subject.view, subject.measure)
    keys = (
        [
            compare_key(
                each,
                pair_rows(known.get(each, ()), counterparts.get(each, ()), shift, subject),
                subject.measure,
            )
            for each in names[:MOST_COMPARED]
        ]
        if added
        else []
    )
    one, two = (
        sum(pair.other is None for pair, _, _ in pairs),
        sum(pair.this is None for pair, _, _ in pairs),
    )
    notes = [
        note,
        f"{count_windows(one)} only in this range." if one else "",
        f"{count_windows(two)} only in the other range." if two else "",
        f"The first {count_windows(len(pairs) - len(shown))} left out." if len(shown) < len(pairs) else "",
        f"{len(names) - MOST_COMPARED:,} smaller keys are left out." if len(names) > MOST_COMPARED else "",
        "" if added else f"{subject.measure} is not added up: it is no count or sum, or its windows overlap.",
    ]
    figure, scale = draw_both(subject, other_subject, shown, other, log=log)
    return RangeComparison(
        name,
        other,
        tuple(windows),
        tuple(keys),
        tuple(names[:MOST_COMPARED]),
        figure,
        draw_differences(shown, subject),
        tuple(filter(None, notes)),
        scale,
    )


def count_windows(number: int) -> str:
    """Write how many windows are meant, with the verb."""
    return f"{number:,} window is" if number == 1 else f"{number:,} windows are"


Paired = tuple[WindowPair, Row | None, Row | None]
"""Two windows and their rows."""


def pair_rows(rows: Sequence[Row], others: Sequence[Row], shift: Shift, subject: Subject) -> list[Paired]:
    """Pair the rows of a key in two ranges."""
    this = {row["window_start"]: row for row in rows}
    other = {row["window_start"]: row for row in others}
    return [
        (
            pair,
            this.get(pair.this) if pair.this else None,
            other.get(pair.other) if pair.other else None,
        )
        for pair in pair_windows(this, other, shift, subject.zone)
    ]


def compare_values(this: Any, other: Any) -> tuple[Any, float | None]:
    """Return the difference of two numbers, and this by the other; None where one is missing."""
    if this is None or other is None:
        return None, None
    one, two = as_place(this), as_place(other)
    # Decimals have up to 38 digits, of which Python's own context would keep 28.
    with localcontext(EXACT):
        return this - other, one / two if one is not None and two else None


def compare_window(
    subject: Subject, other_subject: Subject, pair: WindowPair, row: Row | None, other: Row | None
) -> ComparedWindow:
    """Compare a window."""
    this, that = (each[subject.measure] if each else None for each in (row, other))
    difference, ratio = compare_values(this, that)
    missing = "" if row and other else "no row in the other range" if row else "no row in this range"
    if missing and not pair.shown:
        missing = f"the clock does not show this time in {'the other' if row else 'this'} range"
    return ComparedWindow(
        format_window(pair.this, subject.zone) if pair.this else "",
        format_window(pair.other, subject.zone) if pair.other else "",
        this,
        that,
        difference,
        ratio,
        missing,
        subject.link(row) if row else "",
        other_subject.link(other) if other else "",
    )


def compare_key(name: str, pairs: Sequence[Paired], measure: str) -> ComparedKey:
    """Add up a key's numbers over the windows that both ranges have."""
    both = [
        (row[measure], other[measure])
        for _, row, other in pairs
        if row and other and row[measure] is not None and other[measure] is not None
    ]
    with localcontext(EXACT):
        this, that = sum(each for each, _ in both), sum(each for _, each in both)
    return ComparedKey(
        name,
        this,
        that,
        *compare_values(this, that),
        sum(other is None for _, _, other in pairs),
        sum(row is None for _, row, _ in pairs),
    )


def draw_both(
    subject: Subject, other_subject: Subject, pairs: Sequence[Paired], other: Interval, *, log: bool
) -> tuple[Figure, Scale]:
    """Draw both ranges over the time of this one; a window that is missing is a gap."""
    placed = [each for each in pairs if each[0].place]
    x = [format_utc_instant(pair.place) for pair, _, _ in placed if pair.place]
    lines: list[Mapping[str, Any]] = []
    sides = (
        ("this range", subject, 1, "solid"),
        (f"from {other.start:%Y-%m-%d}", other_subject, 2, "dash"),
    )
    for name, of, at, dash in sides:
        rows: list[Row | None] = [each[at] for each in placed]  # type: ignore[misc]
        lines.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": name,
                "x": x,
                "y": [row[subject.measure] if row else None for row in rows],
                "line": {"dash": dash},
                "marker": {"size": 6, "symbol": "circle" if dash == "solid" else "square-open"},
                "customdata": [of.link(row) if row else "" for row in rows],
                "meta": {"told": [of.tell(name, row) if row else "" for row in rows]},
            }
        )
    scale = Scale.fit(list_drawable(each for line in lines for each in line["y"]), log=log)
    return set_axis(make_figure(lines, subject.measure, **lay_time(pairs)), scale), scale


def draw_differences(pairs: Sequence[Paired], subject: Subject) -> Figure:
    """Draw the differences of the windows that both ranges have."""
    known = [
        (pair.this, compare_values(row[subject.measure], other[subject.measure])[0])
        for pair, row, other in pairs
        if pair.this and row and other
    ]
    return make_figure(
        [
            {
                "type": "bar",
                "name": "difference",
                "x": [format_utc_instant(at) for at, _ in known],
                "y": [each for _, each in known],
            }
        ],
        "this less the other",
        showlegend=False,
        **lay_time(pairs),
    )


def lay_time(pairs: Sequence[Paired]) -> Mapping[str, Any]:
    """Lay the windows of this range on an axis, the same for all charts, with half a window on either side."""
    starts = [pair.place for pair, _, _ in pairs if pair.place]
    if len(starts) < 2:
        return {}
    half = (starts[-1] - starts[0]) / (len(starts) - 1) / 2
    return {"xaxis": {"range": [format_utc_instant(starts[0] - half), format_utc_instant(starts[-1] + half)]}}
