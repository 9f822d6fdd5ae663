"""Draws what a suite has measured for docs/performance.md: `python -m benchmarks.plots`

Reads .seamline/bench and writes docs/plots/*.svg; a section that was not run keeps the plot it has.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.names import NAMES
from benchmarks.results import Results
from benchmarks.summary import of_systems

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "plots"
OURS, OTHERS, INK = "#0a6e6e", "#b8b2a7", "#333333"
# Text stays text, and the same figures give the same file.
mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "seamline", "font.size": 9})


def main() -> int:
    """Draw what there is."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for section, draw in (("drain", drain), ("freshness", freshness), ("batch", batch)):
        found = Results(section).read()
        if found is None:
            print(f"{section}: not run")
            continue
        figure = draw(found)
        figure.savefig(FOLDER / f"{section}.svg", bbox_inches="tight", metadata={"Date": None})
        print(f"{section}: {FOLDER / section}.svg")
    return 0


def drain(found: Mapping[str, Any]) -> Figure:
    """Draw rates beside what a million events cost."""
    runs = of_systems({"drain": found}, "drain")
    order = sorted(runs, key=lambda name: median(run["steady_rate"] for run in runs[name]))
    figure = Figure(figsize=(9, 0.4 * len(order) + 1))
    left, right = figure.subplots(1, 2, sharey=True)
    bars(left, order, [[run["steady_rate"] / 1000 for run in runs[name]] for name in order])
    left.set_xlabel("thousand events a second (more is better)")
    bars(right, order, [[run["cpu_per_million"] for run in runs[name]] for name in order])
    right.set_xlabel("CPU seconds per million events (less is better)")
    return figure


def freshness(found: Mapping[str, Any]) -> Figure:
    """Draw how old events are when they are first seen counted: a line from p50 to p99, by run."""
    runs = sorted(found["runs"], key=lambda run: -run["p50"])
    figure = Figure(figsize=(7, 0.35 * len(runs) + 1))
    axes = figure.subplots()
    for at, run in enumerate(runs):
        ink = OURS if run["system"] == "seamline" else OTHERS
        axes.plot([run["p50"], run["p99"]], [at, at], color=ink, linewidth=3, solid_capstyle="round")
        axes.plot([run["p50"]], [at], "o", color=ink)
        axes.annotate(
            f"{run['p50']:.2f} / {run['p99']:.2f} s",
            (run["p99"], at),
            (6, 0),
            textcoords="offset points",
            va="center",
            color=INK,
        )
    said = [
        f"{NAMES[run['system']]}, {run['rate']:,}/s, trigger {run['trigger']}{views(run)}" for run in runs
    ]
    axes.set_yticks(range(len(runs)), said)
    axes.set_ylim(-0.5, len(runs) - 0.5)
    axes.set_xlabel("seconds from an event's creation to an answer that counts it: p50 to p99")
    plain(axes)
    return figure


def views(run: Mapping[str, Any]) -> str:
    """Say how many views there are, if there are several."""
    return f", {run['views']} views" if run["views"] > 1 else ""


def batch(found: Mapping[str, Any]) -> Figure:
    """Draw the seconds of a build, warm."""
    warm = found["warm"]
    order = sorted(warm, key=lambda name: -warm[name])
    figure = Figure(figsize=(7, 0.4 * len(order) + 1))
    axes = figure.subplots()
    bars(axes, order, [[warm[name]] for name in order])
    axes.set_xlabel("seconds for the states of one interval, warm (less is better)")
    return figure


def bars(axes: Axes, names: Sequence[str], figures: Sequence[Sequence[float]]) -> None:
    """Draw a bar for each median, with the single runs as dots on it."""
    middles = [median(each) for each in figures]
    axes.barh(
        range(len(names)),
        middles,
        color=[OURS if name == "seamline" else OTHERS for name in names],
        height=0.6,
    )
    for at, (middle, each) in enumerate(zip(middles, figures, strict=True)):
        if len(each) > 1:
            axes.plot(each, [at] * len(each), ".", color=INK, markersize=3)
        axes.annotate(
            f"{middle:,.3g}" if middle < 1000 else f"{middle:,.0f}",
            (max(each), at),
            (6, 0),
            textcoords="offset points",
            va="center",
            color=INK,
        )
    axes.set_yticks(range(len(names)), [NAMES[name] for name in names])
    plain(axes)


def plain(axes: Axes) -> None:
    """Leave away what is not needed, and leave room for the figures at the ends of the bars."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlim(0, axes.get_xlim()[1] * 1.2)


if __name__ == "__main__":
    sys.exit(main())
