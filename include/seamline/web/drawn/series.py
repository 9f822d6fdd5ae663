"""The series of an answer: the rows of one key each, with a name, the link to explain a row, and what is told of it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from urllib.parse import quote, urlencode
from zoneinfo import ZoneInfo

from seamline.lake.engine.windowing import format_grouping_set as spelled_set
from seamline.lake.read.answer_ways import IntervalAnswer
from seamline.model.compile.compiled_pipeline import GROUPING, CompiledPipeline, CompiledView
from seamline.model.time.intervals import format_utc_instant
from seamline.web.drawn.scales import list_drawable
from seamline.web.drawn.wall_clock import format_window
from seamline.web.render import format_quantity

Row = Mapping[str, Any]
Series = tuple[str, Sequence[Row]]
"""The name of a key, and its rows by window."""


@dataclass(frozen=True)
class Subject:
    """What is drawn: a measure of a view, by the clocks of a zone, and how its intervals were answered."""

    pipeline: CompiledPipeline
    """The pipeline."""
    view: CompiledView
    """The version that answered."""
    measure: str
    """The column that is drawn."""
    zone: ZoneInfo
    """The zone in which windows are told and laid beside each other."""
    root: str
    """Where our pages are."""
    explained: bool
    """Whether there is a page that explains a row: of the served version alone."""
    intervals: Mapping[str, IntervalAnswer]
    """How each interval was answered, by its id."""

    def link(self, row: Row) -> str:
        """Return the address of a row's explanation, empty where there is none."""
        return link_row(row, self.view, self.pipeline.name, self.root) if self.explained else ""

    def tell(self, name: str, row: Row) -> str:
        """Say of a row what it counts, and where that comes from."""
        when, value = format_window(row["window_start"], self.zone), format_value(row[self.measure])
        return f"{name}, {when}: {value}. {self.tell_origin(row)}"

    def tell_origin(self, row: Row) -> str:
        """Say where the number of a row comes from, as far as its answer says it."""
        how = "Certified" if row["certified"] else "Not certified"
        how += "" if row["complete"] else ", window still open"
        way = self.intervals.get(self.pipeline.grid.of(row["window_start"]).id)
        built = f", generation {way.generation} up to cut {way.cut}" if way and way.generation else ""
        batch = format_quantity(row["batch_part"], "row")
        parts = f"{batch} by the batch layer{built}, {row['speed_part']:,} by the speed layer"
        return f"{how}: {parts}, right up to epoch {row['epoch']}."


def is_sure(row: Row) -> bool:
    """Return whether a number is certified, and no slice is counted in it."""
    return bool(row["certified"]) and not row["speed_part"]


def format_value(value: Any) -> str:
    """Format a measure's value with all its digits."""
    match value:
        case None:
            return "NULL"
        case Decimal():
            return f"{value:,f}"
        case float():
            return f"{value:,.6g}"
        case int():
            return f"{value:,}"
    return str(value)


def link_row(row: Row, view: CompiledView, pipeline: str, root: str) -> str:
    """Return the address of a row's explanation."""
    window = "/".join(
        format_utc_instant(row[name]) for name in ("window_start", "window_end") if row[name] is not None
    )
    sets = [each for each in view.sets if view.grouped and spelled_set(each) == row[GROUPING]]
    names = next(iter(sets), view.sets[0])
    keys = [
        ("null", name) if row[name] is None else (f"key.{name}", format_key_value(row[name]))
        for name in names
    ]
    query = urlencode([*keys, ("window", window)])
    return f"{root}/pipelines/{pipeline}/explain/{quote(view.name)}?{query}"


def format_key_value(value: Any) -> str:
    """Format a key's value as the API takes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Decimal):
        return f"{value:f}"
    return format_utc_instant(value) if hasattr(value, "tzinfo") else str(value)


def by_key(rows: Iterable[dict[str, Any]], view: CompiledView) -> list[tuple[str, list[dict[str, Any]]]]:
    """Sort rows into series by grouping set and key, each by window, and write a name for each."""
    found: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    names = [*([GROUPING] if view.grouped else []), *(key.name for key in view.keys)]
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    for some in found.values():
        some.sort(key=lambda row: row["window_start"])
    return [(format_series_name(values, view), some) for values, some in found.items()]


def format_series_name(values: Sequence[Any], view: CompiledView) -> str:
    """Format the name of a series; a text that could be taken for something else is in quotes."""
    grouping, keys = (f"{values[0]} ", values[1:]) if view.grouped else ("", values)
    return f"{grouping}{', '.join(map(format_distinct_key, keys))}" or view.name


def format_distinct_key(value: Any) -> str:
    """Format a key's value beside others."""
    if not isinstance(value, str):
        return "NULL" if value is None else format_key_value(value)
    plain = value and value != "NULL" and not value.startswith('"') and ", " not in value
    return value if plain else json.dumps(value, ensure_ascii=False)


def find_largest_value(rows: Sequence[Mapping[str, Any]], measure: str) -> float:
    """Find a series' largest value, about, by which the drawn ones are chosen; one without numbers is the smallest."""
    return max(list_drawable(row[measure] for row in rows) if measure else (), default=-math.inf)


def choose_series(series: Sequence[Series], asked: str) -> tuple[Series, str]:
    """Choose the series that is drawn where one is: the one asked for, else the first; say so if there is none such.

    There is at least one.
    """
    found = next((each for each in series if each[0] == asked), None)
    if found or not asked:
        return found or series[0], ""
    return series[0], f"There is no {asked} in this range."
