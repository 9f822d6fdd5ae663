"""One number taken apart: its parts, and whether they add up."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
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
    """What it is from, for people."""
    epochs: tuple[int, int]
    """The first and the last, inclusive."""
    rows: int
    """Records counted."""
    values: Row
    """Presented measures of this share, by name."""


@dataclass(frozen=True)
class Explanation:
    """Where a number comes from."""

    view: str
    """The qualified name: ``pipeline.view``."""
    key: Row
    """Values by key column; None is NULL."""
    window: Interval
    """Half-open; a window without an end ends at FOREVER."""
    row: Row
    """The answer's row, by column."""
    intervals: Mapping[str, IntervalAnswer]
    """How each interval that the number depends on was answered, by interval id."""
    certificates: Mapping[str, Certificate]
    """Of the generations that answer, by interval id; intervals without one are left out."""
    parts: Sequence[Part]
    """Generations first, then slices by epoch."""
    originals: Mapping[str, originals.CountedRecords]
    """The master's rows that belong in the number, counted by interval id."""
    together: Row
    """Presented measures of all parts merged, by name."""
    page: Sequence[Row]
    """The master's rows of one page, in the order in which they came."""
    restated: Mapping[str, Sequence[Restatement]] = field(default_factory=dict)
    """The decisions by which rows up to the cut were validated again, by interval id; empty ones are left out."""

    @property
    def proofs(self) -> list[tuple[str, bool]]:
        """What must be true if the number is right, and whether it is."""
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
                f"batch: {batch} rows up to the cuts, {self.row['batch_part']} counted",
                batch == self.row["batch_part"],
            ),
            (
                f"speed: {speed} rows above the cuts, {self.row['speed_part']} counted",
                speed == self.row["speed_part"],
            ),
        ]

    @property
    def proven(self) -> bool:
        """True if everything adds up."""
        return all(holds for _, holds in self.proofs)

    def serialize(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "view": self.view,
            "key": self.key,
            "window": {"start": self.window.start, "end": self.row["window_end"]},
            "row": self.row,
            "parts": [asdict(part) for part in self.parts],
            "proofs": [{"said": said, "holds": holds} for said, holds in self.proofs],
            "proven": self.proven,
            "certificates": {id: json.loads(each.to_json()) for id, each in self.certificates.items()},
            "rows": list(self.page),
        }


def is_same_value(left: Any, right: Any) -> bool:
    """Compare two presented values; sums of floats may differ in their last digits."""
    if isinstance(left, float) and isinstance(right, float):
        return abs(left - right) <= 1e-9 * max(1.0, abs(left), abs(right))
    return bool(left == right)
