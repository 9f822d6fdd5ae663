"""A chart's axis by a scale: logarithmic as the chart library has it, or in both directions as it has not."""

from __future__ import annotations

from seamline.web.charts import Figure
from seamline.web.drawn.scales import Scale, ScaleKind, as_place, format_short
from seamline.web.drawn.series import format_value


def set_axis(figure: Figure, scale: Scale) -> Figure:
    """Return a figure whose numbers are drawn by a scale; what is written beside them stays."""
    axis = dict(figure["layout"]["yaxis"])
    if scale.kind is ScaleKind.LINEAR:
        return figure
    axis.pop("rangemode", None)
    if scale.kind is ScaleKind.LOG:
        return figure | {"layout": figure["layout"] | {"yaxis": axis | {"type": "log"}}}
    ticks = scale.ticks(8)
    axis |= {
        "tickvals": [scale.stretch(each) for each in ticks],
        "ticktext": [format_short(each) for each in ticks],
    }
    data = [
        trace
        | {
            "y": [
                None if (number := as_place(each)) is None else scale.stretch(number) for each in trace["y"]
            ],
            "hovertext": [format_value(each) for each in trace["y"]],
            "hoverinfo": "x+text+name",
        }
        for trace in figure["data"]
    ]
    return figure | {"data": data, "layout": figure["layout"] | {"yaxis": axis}}
