"""Figures as Plotly's JavaScript takes them: plain traces; a page's own style sets their colours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from seamline.model.protocol.comparison import Comparison
from seamline.model.protocol.epoch import Epoch
from seamline.model.time.intervals import format_utc_instant

Figure = dict[str, Any]
PHASES = 60


def make_figure(traces: Sequence[Mapping[str, Any]], title: str, **layout: Any) -> Figure:
    """Make a figure of traces with the title of its y axis."""
    return {
        "data": list(traces),
        "layout": {"yaxis": {"title": {"text": title}, "rangemode": "tozero"}, **layout},
    }


def draw_epoch_phases(epochs: Sequence[Epoch]) -> Figure:
    """Draw the seconds of the last epochs, phase by phase."""
    shown = [each for each in epochs if each.took][-PHASES:]
    names = list(dict.fromkeys(name for each in shown for name in each.took))
    return make_figure(
        [
            {
                "type": "bar",
                "name": name,
                "x": [each.number for each in shown],
                "y": [each.took.get(name, 0) for each in shown],
            }
            for name in names
        ],
        "seconds",
        barmode="stack",
        xaxis={"title": {"text": "epoch"}},
    )


def draw_arrivals(epochs: Sequence[Epoch]) -> Figure:
    """Draw the rows of the last epochs, accepted and refused."""
    shown = list(epochs)[-PHASES:]
    x = [format_utc_instant(each.committed_at) for each in shown]
    return make_figure(
        [
            {"type": "bar", "name": "accepted", "x": x, "y": [each.rows for each in shown]},
            {"type": "bar", "name": "refused", "x": x, "y": [sum(each.refused.values()) for each in shown]},
        ],
        "rows",
        barmode="stack",
    )


def draw_attribution(found: Sequence[Comparison]) -> Figure:
    """Draw how many places each generation changed, by cause."""
    shown = sorted(found, key=lambda each: each.at)
    names = sorted({name for each in shown for name in each.causes})
    x = [f"{each.interval} {each.generation}" for each in shown]
    return make_figure(
        [
            {"type": "bar", "name": name, "x": x, "y": [each.causes.get(name, 0) for each in shown]}
            for name in names
        ],
        "places that differ",
        barmode="stack",
        xaxis={"type": "category", "tickangle": -40, "title": {"text": "interval and generation"}},
    )


def draw_measure(
    series: Sequence[tuple[str, Sequence[Mapping[str, Any]]]], measure: str, seam: str | None
) -> Figure:
    """Draw a measure by window: solid where a generation alone answers, hollow where slices are counted too.

    ``seam`` is the instant from which the batch layer is not final. Of decimals the place is a double's, and what is
    written beside it has all digits.
    """
    traces = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": name,
            "x": [format_utc_instant(row["window_start"]) for row in rows],
            "y": [row[measure] for row in rows],
            **make_hover_texts([row[measure] for row in rows]),
            "customdata": [row["_explain"] for row in rows],
            "meta": {"told": [row["_told"] for row in rows]},
            "marker": {
                "symbol": ["circle-open" if row["speed_part"] else "circle" for row in rows],
                "size": 7,
            },
        }
        for name, rows in series
    ]
    more = {}
    if seam:
        more["shapes"] = [
            {
                "type": "line",
                "x0": seam,
                "x1": seam,
                "y0": 0,
                "y1": 1,
                "yref": "paper",
                "line": {"dash": "dash"},
            }
        ]
        more["annotations"] = [
            {"x": seam, "y": 1, "yref": "paper", "text": "seam", "showarrow": False, "xanchor": "left"}
        ]
    return make_figure(traces, measure, **more)


def make_hover_texts(values: Sequence[Any]) -> Figure:
    """Make what is written beside a point: of decimals themselves, else the page writes its place."""
    if not any(isinstance(value, Decimal) for value in values):
        return {}
    texts = [f"{value:,f}" if isinstance(value, Decimal) else "" for value in values]
    return {"hovertext": texts, "hoverinfo": "x+text+name"}


def draw_layer_parts(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw the rows counted by each layer, window by window."""
    totals: dict[datetime, list[int]] = {}
    for row in rows:
        total = totals.setdefault(row["window_start"], [0, 0])
        total[0] += row["batch_part"]
        total[1] += row["speed_part"]
    x = list(map(format_utc_instant, totals))
    return make_figure(
        [
            {"type": "bar", "name": "batch", "x": x, "y": [each[0] for each in totals.values()]},
            {"type": "bar", "name": "speed", "x": x, "y": [each[1] for each in totals.values()]},
        ],
        "rows counted",
        barmode="stack",
    )
