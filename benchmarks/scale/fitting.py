"""Units from observations: the least squares of relative errors, with no unit below zero.

python -m benchmarks.scale --calibrate
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.scale.figures import FITTED
from benchmarks.scale.toml_text import write_tables
from benchmarks.scale.units import STATED, WAITED, Unit

FILE = Path(__file__).with_name("observations.toml")
COMMAND = "python -m benchmarks.scale --calibrate"
KINDS = {"_s": "s", "_mb": "MB", "_bytes": "bytes"}


@dataclass(frozen=True)
class Observation:
    """One trial that was run to find units."""

    kind: str
    sizes: Mapping[str, float]
    figures: Mapping[str, float]


def read_observations(file: Path = FILE) -> list[Observation]:
    """Read the trials that are kept."""
    return [Observation(**each) for each in tomllib.loads(file.read_text())["trial"]]


def write_observations(found: Iterable[Observation], file: Path = FILE) -> None:
    """Keep trials."""
    file.write_text(write_tables("trial", [vars(each) for each in found]))


def fit_units(observations: Iterable[Observation]) -> dict[str, Unit]:
    """Find the units of every figure that is a sum of them."""
    found: dict[str, Unit] = {}
    seen, stated = (
        list(observations),
        {name: each["value"] for name, each in tomllib.loads(STATED.read_text()).items()},
    )
    for (kind, figure), terms in FITTED.items():
        mine = [
            (terms(each.sizes), each.figures[figure])
            for each in seen
            if each.kind == kind and figure in each.figures
        ]
        if not mine:
            continue
        of = next(kind_ for ending, kind_ in KINDS.items() if figure.endswith(ending))
        for name, value in solve(
            mine, {**stated, **{name: each.value for name, each in found.items()}}
        ).items():
            found[name] = Unit(value, of, f"{COMMAND} {kind}")
    return found


def solve(mine: list[tuple[Mapping[str, float], float]], known: Mapping[str, float]) -> dict[str, float]:
    """Solve for the units of one figure that are not ``known``; those that come out below zero are none."""
    known = {**known, WAITED: 1.0}
    names = [name for name in mine[0][0] if name not in known]
    kept = list(names)
    while kept:
        rows, wanted = [], []
        for terms, value in mine:
            said = sum(times * known[name] for name, times in terms.items() if name in known)
            rows.append([terms.get(name, 0.0) / value for name in kept])
            wanted.append((value - said) / value)
        found = np.linalg.lstsq(np.array(rows), np.array(wanted), rcond=None)[0]
        if found.min() >= 0:
            break
        kept.pop(int(np.argmin(found * np.array(rows).max(axis=0))))
    solved = dict(zip(kept, found.tolist(), strict=True)) if kept else {}
    return {name: solved.get(name, 0.0) for name in names}
