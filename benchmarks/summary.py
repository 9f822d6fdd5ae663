"""What a run's figures say together: ratios of medians, and how they stand to the goals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

Found = Mapping[str, Mapping[str, Any] | None]
"""The figures of sections by their names, None of those that were not run."""
Summary = dict[str, dict[str, float | None]]
BY_HAND = ("spark_lambda", "spark_tuned")
AT_ONCE, EACH_SECOND = "0 seconds", "1 second"


@dataclass(frozen=True)
class Goal:
    """A figure that is to be at least, or at most, so much."""

    group: str
    name: str
    bound: float
    at_least: bool = False

    def met(self, figure: float) -> bool:
        """Return whether it is."""
        return figure >= self.bound if self.at_least else figure <= self.bound


GOALS = (
    Goal("throughput", "ratio_vs_spark_lambda", 2.8, at_least=True),
    Goal("throughput", "ratio_vs_spark_stateful", 2.0, at_least=True),
    Goal("throughput", "ratio_vs_flink_same_work", 1.1, at_least=True),
    Goal("throughput", "cpu_vs_flink_same_work", 0.9),
    Goal("throughput", "ratio_vs_flink_aggregate", 0.35, at_least=True),
    Goal("throughput", "cpu_s_per_million", 4.5),
    Goal("freshness", "p50_s", 0.6),
    Goal("freshness", "p99_s", 1.0),
    Goal("freshness", "p50_at_20000_s", 0.6),
    Goal("freshness", "p99_at_20000_s", 1.0),
    Goal("freshness", "twenty_views_over_one", 2.0),
    Goal("freshness", "p50_each_second_s", 1.0),
    Goal("freshness", "p99_each_second_s", 1.5),
    Goal("freshness", "cores_each_second", 0.8),
    Goal("freshness", "first_epoch_s", 15.0),
    Goal("batch", "ratio_vs_duckdb", 2.0),
    Goal("batch", "ratio_vs_spark_sql", 4.0, at_least=True),
    Goal("batch", "late_row_over_interval", 1.5),
    Goal("batch", "airflow_beyond_build_s", 20.0),
    Goal("batch", "airflow_resident_beyond_build_s", 10.0),
    Goal("serving", "point_p99_ms", 5.0),
    Goal("serving", "point_changed_p99_ms", 20.0),
    Goal("cost", "last_epoch_over_first", 1.2),
)


def summary(found: Found) -> Summary:
    """Work out the figures; None where the section they need was not run."""
    drain, fresh = of_systems(found, "drain"), of_systems(found, "freshness")
    mine, by_hand = drain.get("seamline", ()), [drain.get(name, ()) for name in BY_HAND]
    fastest = max(by_hand, key=lambda runs: middle(runs, "steady_rate") or 0.0)
    stateful, same, alone = (drain.get(name, ()) for name in ("spark_stateful", "flink_work", "flink_only"))
    live = list(fresh.get("seamline", ()))
    slow, fast, often = (
        [run for run in live if (run["rate"], run["trigger"], run["views"]) == wanted]
        for wanted in ((5000, AT_ONCE, 1), (20000, AT_ONCE, 1), (5000, EACH_SECOND, 1))
    )
    many = [run for run in live if run["views"] == 20]
    batch, builds, aged, runs = (
        found.get(name) or {} for name in ("batch", "builds", "ageing", "airflow_runs")
    )
    warm = batch.get("warm", {})
    return {
        "throughput": {
            "events_per_s": middle(mine, "steady_rate"),
            "ratio_vs_spark_lambda": over(middle(mine, "steady_rate"), middle(fastest, "steady_rate")),
            "ratio_vs_spark_stateful": over(middle(mine, "steady_rate"), middle(stateful, "steady_rate")),
            "ratio_vs_flink_same_work": over(middle(mine, "steady_rate"), middle(same, "steady_rate")),
            "cpu_vs_flink_same_work": over(middle(mine, "cpu_per_million"), middle(same, "cpu_per_million")),
            "ratio_vs_flink_aggregate": over(middle(mine, "steady_rate"), middle(alone, "steady_rate")),
            "cpu_s_per_million": middle(mine, "cpu_per_million"),
        },
        "freshness": {
            "p50_s": middle(slow, "p50"),
            "p99_s": middle(slow, "p99"),
            "cores": middle(slow, "cores"),
            "p50_at_20000_s": middle(fast, "p50"),
            "p99_at_20000_s": middle(fast, "p99"),
            "twenty_views_over_one": over(middle(many, "p50"), middle(slow, "p50")),
            "p50_each_second_s": middle(often, "p50"),
            "p99_each_second_s": middle(often, "p99"),
            "cores_each_second": middle(often, "cores"),
            "first_epoch_s": middle(mine, "first_epoch"),
        },
        "batch": {
            "ratio_vs_duckdb": over(warm.get("seamline"), warm.get("duckdb")),
            "ratio_vs_spark_sql": over(warm.get("spark sql"), warm.get("seamline")),
            "late_row_over_interval": builds.get("late_row_over_interval"),
            "hundred_days_one_by_one_s": builds.get("hundred_one_by_one_s"),
            "hundred_days_at_once_s": builds.get("hundred_at_once_s"),
            "airflow_beyond_build_s": beyond(runs.get("spark", {}).get("whole"), builds.get("day_s")),
            "airflow_resident_beyond_build_s": beyond(
                runs.get("spark_connect", {}).get("whole"), builds.get("day_s")
            ),
        },
        "serving": {
            "point_p99_ms": aged.get("point_cached_p99_ms"),
            "point_changed_p99_ms": aged.get("point_changed_p99_ms"),
        },
        "cost": {
            "last_epoch_over_first": aged.get("ratio"),
            "files_per_million": aged.get("files_per_million"),
            "log_entries_per_million": aged.get("log_entries_per_million"),
            "bytes_per_event": aged.get("bytes_per_event"),
        },
    }


def of_systems(found: Found, section: str) -> dict[str, list[Mapping[str, Any]]]:
    """Sort a section's runs by the system they are of."""
    runs: dict[str, list[Mapping[str, Any]]] = {}
    for run in (found.get(section) or {}).get("runs", ()):
        runs.setdefault(run["system"], []).append(run)
    return runs


def middle(runs: Iterable[Mapping[str, Any]], name: str) -> float | None:
    """Return the median of a figure; None of no runs."""
    figures = [run[name] for run in runs]
    return median(figures) if figures else None


def over(one: float | None, other: float | None) -> float | None:
    """Divide what is there."""
    return one / other if one is not None and other else None


def beyond(whole: float | None, part: float | None) -> float | None:
    """Leave a part out of what is there."""
    return whole - part if whole is not None and part is not None else None


def complete(figures: Summary) -> bool:
    """Return whether nothing is missing."""
    return all(figure is not None for group in figures.values() for figure in group.values())


def lines(figures: Summary) -> Iterator[str]:
    """Say each figure that has a goal, and whether it is met."""
    for goal in GOALS:
        figure = figures[goal.group][goal.name]
        bound = f"{'>=' if goal.at_least else '<='} {goal.bound:g}"
        said = "not run" if figure is None else f"{figure:.2f}  {'met' if goal.met(figure) else 'MISSED'}"
        yield f"{goal.group + '.' + goal.name:38} {bound:>8}  {said}"
