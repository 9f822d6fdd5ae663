"""One number taken apart: its parts, and whether they add up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from seamline.lake.read import originals
from seamline.lake.read.answer_ways import IntervalAnswer
from seamline.model.protocol.certificate_checks import Certificate
from seamline.model.protocol.restatement import Restatement
from seamline.model.time.intervals import Interval

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Part:
    """A share of the number: from one generation, or from the slices of one run of epochs."""

    source: str
    epochs: tuple[int, int]
    rows: int
    values: Row


@dataclass(frozen=True)
class Explanation:
    """Where a number comes from. ``originals`` counts the master's rows that should be in it, by interval.

    ``restated`` are the decisions by which rows up to the cut were judged again, by interval.
    """

    view: str
    key: Row
    window: Interval
    row: Row
    intervals: Mapping[str, IntervalAnswer]
    certificates: Mapping[str, Certificate]
    parts: Sequence[Part]
    originals: Mapping[str, originals.CountedRecords]
    together: Row
    page: Sequence[Row]
    restated: Mapping[str, Sequence[Restatement]] = field(default_factory=dict)

    @property
    def proofs(self) -> list[tuple[str, bool]]:
        """What must hold if the number is right, and whether it does."""
        counted = self.row["batch_part"] + self.row["speed_part"]
        batch = sum(each.batch for each in self.originals.values())
        speed = sum(each.speed for each in self.originals.values())
        apart = sum(part.rows for part in self.parts)
        return [
            (f"parts hold {apart} rows, the answer counts {counted}", apart == counted),
            (
                "the parts merged give the answer",
                all(is_same_value(self.row[k], v) for k, v in self.together.items()),
            ),
            (
                f"batch: {batch} rows of the master up to the cuts, {self.row['batch_part']} counted",
                batch == self.row["batch_part"],
            ),
            (
                f"speed: {speed} rows of the master above the cuts, {self.row['speed_part']} counted",
                speed == self.row["speed_part"],
            ),
        ]

    @property
    def proven(self) -> bool:
        """True if everything adds up."""
        return all(holds for _, holds in self.proofs)


def is_same_value(left: Any, right: Any) -> bool:
    """Compare two presented values; sums of floats may differ in their last digits."""
    if isinstance(left, float) and isinstance(right, float):
        return abs(left - right) <= 1e-9 * max(1.0, abs(left), abs(right))
    return bool(left == right)
