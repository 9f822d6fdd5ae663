"""What a generation changed of what was answered before it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime

from seamline.model.time.intervals import format_utc_instant, parse_moment


@dataclass(frozen=True)
class Change:
    """What has changed of a measure."""

    count: int
    """At how many places it differs."""
    most: float | None
    """The largest relative change, (after - before) / before; None where it is no number, or was 0 or
    nothing before."""
    bare: int = 0
    """At how many of them a number changes that was 0 before, or is nothing on one side: it has no relative change."""


@dataclass(frozen=True)
class Comparison:
    """One interval of a view version: its new generation beside the answer to the same cut.

    A place is a key and a pane.
    """

    view: str
    """The view version, ``name/fingerprint``."""
    interval: str
    """The interval's id."""
    generation: str
    """The id of the new generation."""
    cut: int
    """Its cut."""
    former: str
    """The id of the generation that answered before; empty where slices alone did."""
    until: int
    """The last epoch of the slices that answered before."""
    at: datetime
    """When they were compared, UTC."""
    equal: int
    """Places that are equal."""
    changed: int
    """Places that differ."""
    missing: int
    """Places that are gone."""
    extra: int
    """Places that are new."""
    measures: Mapping[str, Change]
    """What has changed of each measure, by its name."""
    causes: Mapping[str, int]
    """Places that differ, by cause."""
    alarm: str = ""
    """What nothing explains, in a sentence; empty where all is explained."""

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
