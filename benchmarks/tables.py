"""Writes what a suite has measured as the tables of docs/performance.md: `python -m benchmarks.tables`

Reads .seamline/bench; a section that was not run is left out.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from benchmarks.names import NAMES
from benchmarks.results import Results
from benchmarks.summary import GOALS, of_systems, summary

Found = Mapping[str, Any]


def main() -> int:
    """Print each table that there are figures for."""
    sections = {
        "drain": drain,
        "freshness": freshness,
        "batch": batch,
        "airflow_runs": airflow_runs,
        "ageing": ageing,
        "web": web,
    }
    every = {name: Results(name).read() for name in (*sections, "builds")}
    for name, made in sections.items():
        if found := every[name]:
            print(f"## {name}\n", *made(found), "", sep="\n")
    print("## goals\n", *goals(every), sep="\n")
    return 0


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Write a table."""
    yield f"| {' | '.join(head)} |"
    yield f"| {' | '.join('---' for _ in head)} |"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def drain(found: Found) -> Iterator[str]:
    """Write the medians of each system, the slowest last."""
    runs = of_systems({"drain": found}, "drain")

    def middle(name: str, figure: str) -> float:
        return median(run[figure] for run in runs[name])

    order = sorted(runs, key=lambda name: -middle(name, "steady_rate"))
    rows = [
        (
            NAMES[name],
            f"{middle(name, 'steady_rate'):,.0f}",
            f"{middle(name, 'whole_rate'):,.0f}",
            f"{middle(name, 'cpu_per_million'):.1f}",
            f"{middle(name, 'whole_cpu_per_million'):.1f}",
            f"{middle(name, 'first_epoch'):.1f}",
            f"{middle(name, 'peak_mb'):,.0f}",
        )
        for name in order
    ]
    head = ("", "events/s, steady", "whole", "CPU s per million, steady", "whole", "first epoch, s", "MB")
    return table(head, rows)


def freshness(found: Found) -> Iterator[str]:
    """Write a line for each run."""
    rows = [
        (
            NAMES[run["system"]],
            f"{run['rate']:,}",
            run["trigger"],
            str(run["views"]),
            f"{run['p50']:.2f}",
            f"{run['p90']:.2f}",
            f"{run['p99']:.2f}",
            f"{run['cores']:.2f}",
        )
        for run in found["runs"]
    ]
    return table(("", "events/s", "trigger", "views", "p50, s", "p90", "p99", "cores"), rows)


def batch(found: Found) -> Iterator[str]:
    """Write the seconds of one build by each."""
    rows = [
        (NAMES[name], f"{found['cold'][name]:.2f}", f"{found['warm'][name]:.2f}")
        for name in sorted(found["warm"], key=lambda name: found["warm"][name])
    ]
    return table(("states of 12 million rows", "first, s", "warm, s"), rows)


def airflow_runs(found: Found) -> Iterator[str]:
    """Write what a day takes through Airflow, by connection."""
    kinds = [name for name in ("spark", "spark_connect") if name in found]
    rows = [
        (
            f"`{kind}`",
            f"{found[kind]['whole']:.1f}",
            f"{found[kind]['command']:.1f}",
            *(f"{found[kind]['tasks'][task]:.1f}" for task in ("plan", "build", "certify", "publish")),
        )
        for kind in kinds
    ]
    return table(
        ("Spark connection", "served after, s", "the command", "plan", "build", "certify", "publish"), rows
    )


def ageing(found: Found) -> Iterator[str]:
    """Write answers by question, and the cost."""
    questions = ("point", "old_point", "ten_minutes")
    rows = [
        (
            question.replace("_", " "),
            *(
                f"{found[f'{question}_{how}_{share}_ms']:.1f}"
                for how in ("cached", "changed")
                for share in ("p50", "p99")
            ),
        )
        for question in questions
    ]
    yield from table(("", "nothing new: p50, ms", "p99", "an epoch before each: p50, ms", "p99"), rows)
    yield ""
    yield (
        f"{found['epochs']:,} epochs: the last hundred take {found['ratio']:.2f} times what the first do; "
        f"{found['files_per_million']:.0f} files and {found['log_entries_per_million']:.0f} log entries per million "
        f"events, {found['bytes_per_event']:.0f} bytes an event."
    )


def web(found: Found) -> Iterator[str]:
    """Write points by rate, pages, and the audit."""
    rates = sorted(
        int(name.split("_")[2]) for name in found if name.startswith("point_cached_") and "p50" in name
    )
    rows = [
        (
            str(rate),
            *(
                f"{found[f'point_{how}_{rate}_{share}_ms']:.1f}"
                for how in ("cached", "changed")
                for share in ("p50", "p99")
            ),
        )
        for rate in rates
    ]
    head = ("points a second", "nothing new: p50, ms", "p99", "an epoch every half second: p50, ms", "p99")
    yield from table(head, rows)
    yield ""
    names = [name.removesuffix("_first_ms") for name in found if name.endswith("_first_ms")]
    pages = [
        (name.removeprefix("page_"), f"{found[f'{name}_ms']:.0f}", f"{found[f'{name}_first_ms']:.0f}")
        for name in names
    ]
    yield from table(("page", "load, ms", "the first time"), pages)
    yield ""
    yield f"An audit of {found['audit_offsets']:,} offsets takes {found['audit_s']:.1f} s."


def goals(every: Mapping[str, Found | None]) -> Iterator[str]:
    """Write each goal beside what was measured."""
    figures = summary(every)
    rows = []
    for goal in GOALS:
        figure = figures[goal.group][goal.name]
        bound = f"{'>=' if goal.at_least else '<='} {goal.bound:g}"
        said = "not run" if figure is None else f"{figure:.3g}"
        met = "" if figure is None else "yes" if goal.met(figure) else "**no**"
        rows.append((f"`{goal.group}.{goal.name}`", bound, said, met))
    return table(("figure", "goal", "measured", "met"), rows)


if __name__ == "__main__":
    sys.exit(main())
