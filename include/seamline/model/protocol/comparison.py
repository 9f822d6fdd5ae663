"""What a generation changed of what was answered before it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime

from seamline.model.time.intervals import format_utc_instant, parse_moment


@dataclass(frozen=True)
class Change:
    """A measure: at how many places it differs, and the largest relative change (after less before, by before).

    ``most`` is None where it is no number, or was 0 or nothing before.
    """

    count: int
    most: float | None


@dataclass(frozen=True)
class Comparison:
    """One interval of a view version: its new generation beside the answer to the same cut.

    Before it ``former`` answered (nothing: the slices alone), and slices up to ``until``. Places are a key and a pane:
    ``missing`` are gone, ``extra`` are new. ``causes`` counts those that differ by cause, ``alarm`` names one that
    nothing explains.
    """

    view: str
    interval: str
    generation: str
    cut: int
    former: str
    until: int
    at: datetime
    equal: int
    changed: int
    missing: int
    extra: int
    measures: Mapping[str, Change]
    causes: Mapping[str, int]
    alarm: str = ""

    @property
    def differing(self) -> int:
        """Places that differ."""
        return self.changed + self.missing + self.extra

    def to_json(self) -> str:
        """Write it as it is kept."""
        return json.dumps({**asdict(self), "at": format_utc_instant(self.at)})

    @classmethod
    def from_json(cls, text: str) -> Comparison:
        """Read what ``to_json`` wrote."""
        row = json.loads(text)
        measures = {name: Change(**each) for name, each in row["measures"].items()}
        return cls(**{**row, "at": parse_moment(row["at"]), "measures": measures})
