"""The trials that units are fitted to."""

from __future__ import annotations

from benchmarks.scale import units
from benchmarks.scale.fitting import Observation, fit_units, read_observations, write_observations
from benchmarks.scale.predictions import read_predictions
from benchmarks.scale.toml_text import write_named
from benchmarks.scale.trials.kinds import measure_apart

CALIBRATION: tuple[tuple[str, dict[str, float]], ...] = (
    ("stream", {"records": 2_000_000, "epoch": 250_000, "views": 1, "partitions": 4}),
    ("stream", {"records": 2_000_000, "epoch": 250_000, "views": 6, "partitions": 4}),
    ("stream", {"records": 600_000, "epoch": 15_000, "views": 1, "partitions": 4}),
    ("stream", {"records": 600_000, "epoch": 30_000, "views": 1, "partitions": 48}),
    ("stream", {"records": 600_000, "epoch": 30_000, "views": 1, "partitions": 150}),
    ("stream", {"records": 600_000, "epoch": 30_000, "views": 1, "partitions": 150, "cache": 512}),
    ("stream", {"records": 800_000, "epoch": 40_000, "views": 4, "partitions": 100}),
    ("life", {"epochs": 600, "events": 400, "views": 3, "upkeep": 300}),
    ("life", {"epochs": 150, "events": 400, "views": 1, "upkeep": 75}),
    ("life", {"epochs": 60, "events": 20_000, "views": 1, "upkeep": 30}),
    ("life", {"epochs": 120, "events": 2000, "views": 8, "upkeep": 60}),
    ("lanes", {"partitions": 10}),
    ("lanes", {"partitions": 500}),
    ("merge", {"states": 400_000}),
    ("merge", {"states": 4_000_000}),
    ("keys", {"keys": 1000}),
    ("keys", {"keys": 300_000}),
    ("keys", {"keys": 3_000_000}),
    ("intervals", {"intervals": 300, "keys": 10}),
    ("intervals", {"intervals": 3000, "keys": 10}),
    ("intervals", {"intervals": 1000, "keys": 300}),
    ("intervals", {"intervals": 8000, "keys": 10}),
    ("requests", {"epochs": 100, "views": 2, "rtt": 0}),
    ("requests", {"epochs": 50, "views": 12, "rtt": 0}),
    ("requests", {"epochs": 50, "views": 2, "rtt": 27}),
    ("requests", {"epochs": 50, "views": 12, "rtt": 27}),
    ("pipelines", {"pipelines": 20}),
    ("pipelines", {"pipelines": 150}),
    ("builds", {"days": 3}),
    ("builds", {"days": 10}),
    ("builds", {"days": 40}),
)
"""A few sizes of each kind; others are predicted."""


def calibrate() -> None:
    """Measure all, keep what was found, and the units that follow."""
    found = []
    for kind, sizes in CALIBRATION:
        found.append(Observation(kind, sizes, measure_apart(kind, sizes)))
        print(found[-1], flush=True)
    write_observations(found)
    keep_units()


def list_measured() -> list[Observation]:
    """List all that was measured: the trials for units, and those that were predicted."""
    checked = [each for each in read_predictions() if each.measured]
    return read_observations() + [Observation(each.kind, each.sizes, each.measured) for each in checked]


def keep_units() -> None:
    """Write the units that follow from all that was measured."""
    units.FILE.write_text(
        write_named({name: vars(each) for name, each in fit_units(list_measured()).items()})
    )
    print(f"written: {units.FILE}")
