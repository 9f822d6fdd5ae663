"""What the model says of each figure that a trial measures, by the same functions that answer for a workload."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from benchmarks.scale import answering, building, epoch, parsing, requests
from benchmarks.scale.compaction import STARTED, Pace, count_epoch_tasks, simulate
from benchmarks.scale.units import WAITED, Terms, Units

Sizes = Mapping[str, float]
EDGE_EPOCHS = 30
"""Epochs from edge to edge in the trial that holds epochs."""
CORES = 2
"""Of the trials' streams."""
FITTED: dict[tuple[str, str], Callable[[Sizes], Terms]] = {
    ("life", "commit_cpu_s"): lambda s: {"commit": 1, "epoch.view": s["views"]},
    ("stream", "epoch_cpu_s"): lambda s: epoch.epoch_terms(
        s["epoch"],
        count_epoch_tasks(s["epoch"], int(s["partitions"])),
        s["views"],
        s["partitions"],
        s.get("cache", epoch.CONSUMERS),
    ),
    ("stream", "python_mb"): lambda s: {"driver.python": 1},
    ("stream", "jvm_mb"): lambda s: epoch.jvm_terms(s["partitions"]),
    ("stream", "workers_mb"): lambda s: {"worker": CORES},
    ("stream", "master_bytes"): lambda s: {"stored": 1},
    ("lanes", "lanes_cpu_s"): lambda s: epoch.lane_terms(s["partitions"]),
    ("lanes", "entry_bytes"): lambda s: epoch.entry_terms(s["partitions"]),
    ("life", "upkeep_cpu_s"): lambda s: {
        **building.upkeep_terms(s["upkeep"] * (s["views"] + 2), s["views"]),
        "upkeep.record": s["upkeep"] * s["events"],
    },
    ("life", "footer_cpu_s"): lambda s: {"upkeep.footer": 1},
    ("merge", "merge_cpu_s"): lambda s: {"state.merge": s["states"]},
    ("merge", "merge_mb"): lambda s: {"merge.mb": 1, "state.mb": s["states"]},
    ("keys", "serving_cpu_s"): lambda s: answering.serving_terms(s["keys"]),
    ("keys", "answer_cpu_s"): lambda s: answering.interval_terms(s["keys"]),
    ("keys", "keys_mb"): lambda s: answering.showing_terms(s["keys"]),
    ("keys", "point_cpu_s"): lambda s: answering.point_terms(s["keys"]),
    ("intervals", "publish_cpu_s"): lambda s: building.publication_terms(s["intervals"]),
    ("intervals", "manifest_cpu_s"): lambda s: building.manifest_terms(s["intervals"]),
    ("intervals", "plan_cpu_s"): lambda s: building.plan_terms(s["intervals"]),
    ("intervals", "day_cpu_s"): lambda s: answering.day_terms(s["intervals"], answering.DAY * s["keys"]),
    ("intervals", "whole_cpu_s"): lambda s: {
        "whole": 1,
        "whole.interval": s["intervals"],
        "whole.state": s["intervals"] * s["keys"],
    },
    ("intervals", "process_mb"): lambda s: {
        "process.mb": 1,
        "statement.mb": s["intervals"],
        "answer.mb": s["intervals"] * s["keys"],
    },
    ("requests", "commit_wall_s"): lambda s: {
        "store.commit": 1,
        "store.commit.view": s["views"],
        WAITED: requests.commit_trips(int(s["views"])) * s["rtt"] / 1000,
    },
    ("requests", "idle_wall_s"): lambda s: {"store.idle": 1, WAITED: s["rtt"] / 1000},
    ("requests", "news_wall_s"): lambda s: {
        "store.news": 1,
        "store.news.view": s["views"],
        WAITED: 2 * s["rtt"] / 1000,
    },
    ("pipelines", "parse_first_cpu_s"): lambda s: parsing.parse_terms(s["pipelines"], changed=True),
    ("pipelines", "parse_warm_cpu_s"): lambda s: parsing.parse_terms(s["pipelines"], changed=False),
    ("pipelines", "task_cpu_s"): lambda s: parsing.task_terms(s["pipelines"]),
    ("pipelines", "reconcile_cpu_s"): lambda s: parsing.reconcile_terms(s["pipelines"]),
}
"""Figures that are sums of units, by trial and name.

Their units are fitted to what was measured, figure by figure: those that one has found are known to the next.
"""


def run_step_terms(step: str, sizes: Sizes) -> Terms:
    """Return what a step of a run over so many days pays."""
    return building.run_terms(step, sizes["days"])


for _step in building.STEPS:
    FITTED["builds", f"{_step}_cpu_s"] = partial(run_step_terms, _step)


def predict_requests(sizes: Sizes, units: Units) -> dict[str, float]:
    """Count an epoch's requests, and those of an answer; the first checkpoints of tables are among them."""
    views, epochs = int(sizes["views"]), sizes["epochs"]
    whole = requests.count_epoch(views, 1, units)
    written = (epochs + STARTED) // requests.CHECKPOINT * requests.CHECKPOINT / epochs
    found = {kind: count * written for kind, count in whole.items() if kind != "PUT"}
    share = (views + 2) / requests.CHECKPOINT * 2
    put = whole["PUT"] - share + share * written
    told = {kind.lower(): count for kind, count in {**found, "PUT": put}.items()}
    told["idle_gets"] = requests.TABLES_OF_AN_ANSWER
    return told | ({"commit_row": requests.commit_trips(views) + 1} if sizes["rtt"] else {})


def predict_life(sizes: Sizes, units: Units) -> dict[str, float]:
    """Simulate the files and entries that a trial's tables end with."""
    pace = Pace(
        seconds=2,
        records=sizes["events"],
        tasks=1,
        states=100,
        distinct=600,
        edge_epochs=EDGE_EPOCHS,
    )
    told = simulate(pace, epochs=int(sizes["epochs"]), upkeep_epochs=int(sizes["upkeep"]))
    return {
        "slice_files": told.slice_files,
        "master_files": told.master_files,
        "entries": told.slice_entries + told.master_entries,
    }


COUNTED: dict[str, Callable[[Sizes, Units], dict[str, float]]] = {
    "requests": predict_requests,
    "life": predict_life,
}
"""Figures that are counted, not fitted, by trial."""


def predict(kind: str, sizes: Sizes, units: Units) -> dict[str, float]:
    """Say what a trial of these sizes would measure."""
    sums = {name: units.total(terms(sizes)) for (trial, name), terms in FITTED.items() if trial == kind}
    return sums | (COUNTED[kind](sizes, units) if kind in COUNTED else {})
