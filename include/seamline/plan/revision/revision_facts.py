"""What the definitions of one revision say, as JSON that one process writes and another reads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

Facts = Mapping[str, Any]
"""What a version's fingerprint is made of, or a setting's value: JSON."""


@dataclass(frozen=True)
class ViewFacts:
    """One view of a definition."""

    id: str
    """Its version, ``name/fingerprint``."""
    facts: Facts
    """What its fingerprint is made of."""

    @property
    def name(self) -> str:
        """The view's name."""
        return self.id.partition("/")[0]


@dataclass(frozen=True)
class PipelineFacts:
    """One pipeline of a revision."""

    name: str
    """The pipeline's name."""
    record_version: str
    """What turns a raw record into a row."""
    views: tuple[ViewFacts, ...]
    """Its views, in order."""
    settings: Facts
    """Each setting as it is stored, by its name."""

    def view(self, name: str) -> ViewFacts | None:
        """Find a view by name."""
        return next((each for each in self.views if each.name == name), None)


@dataclass(frozen=True)
class RevisionFacts:
    """The definitions of a revision."""

    pipelines: Mapping[str, PipelineFacts] = field(default_factory=dict)
    """The pipelines that may run, by name."""
    problems: tuple[str, ...] = ()
    """What keeps others from running, each with its file and line."""

    def to_json(self) -> str:
        """Write it for another process."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> RevisionFacts:
        """Read what ``to_json`` wrote."""
        row = json.loads(text)
        found = {
            name: PipelineFacts(**{**each, "views": tuple(ViewFacts(**view) for view in each["views"])})
            for name, each in row["pipelines"].items()
        }
        return cls(found, tuple(row["problems"]))
