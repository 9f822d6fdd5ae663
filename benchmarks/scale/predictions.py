"""What the model said before it was measured, beside what was measured then.

python -m benchmarks.scale --predict NAME KIND SIZE=VALUE ...    # into predictions.toml; commit it
python -m benchmarks.scale --check                               # measure those that were not measured yet
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks.scale.figures import predict
from benchmarks.scale.toml_text import write_tables
from benchmarks.scale.trials.kinds import measure_apart
from benchmarks.scale.units import Units

FILE = Path(__file__).with_name("predictions.toml")
WITHIN = 0.25


@dataclass(frozen=True)
class Prediction:
    """One trial; units are refined from one round to the next."""

    name: str
    round: int
    kind: str
    sizes: Mapping[str, float]
    predicted: Mapping[str, float]
    measured: Mapping[str, float] = field(default_factory=dict)
    """Empty before it was measured."""

    def errors(self) -> Iterator[tuple[str, float, float, float]]:
        """Give each figure, what was said, what was measured, and by which share of that it was wrong."""
        for figure, said in self.predicted.items():
            if figure in self.measured:
                found = self.measured[figure]
                yield figure, said, found, abs(said - found) / found if found else float(said != found)


def read_predictions(file: Path = FILE) -> list[Prediction]:
    """Read what was predicted."""
    if not file.exists():
        return []
    return [Prediction(**each) for each in tomllib.loads(file.read_text())["prediction"]]


def write_predictions(found: list[Prediction], file: Path = FILE) -> None:
    """Keep what was predicted."""
    tables = [{name: each for name, each in vars(one).items() if each} for one in found]
    file.write_text(write_tables("prediction", tables))


def add_prediction(name: str, kind: str, sizes: Mapping[str, float], units: Units) -> Prediction:
    """Predict a trial, and keep that; ValueError if there is one of that name.

    It is of the round that is not measured yet, or begins another.
    """
    found = read_predictions()
    last = max((each.round for each in found), default=0)
    waiting = any(not each.measured for each in found)
    if any(each.name == name for each in found):
        raise ValueError(f"{name!r} is predicted.\n\nHint: another size is another name.")
    made = Prediction(name, last if waiting else last + 1, kind, sizes, predict(kind, sizes, units))
    write_predictions([*found, made])
    return made


def check_predictions() -> list[Prediction]:
    """Measure what was predicted and not measured, one after another, and keep each."""
    found = read_predictions()
    for at, each in enumerate(found):
        if not each.measured:
            measured = measure_apart(each.kind, each.sizes)
            told = {figure: measured[figure] for figure in each.predicted if figure in measured}
            found[at] = replace(each, measured=told)
            write_predictions(found)
    return found
