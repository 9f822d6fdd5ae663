"""What is asked, by whom it was wanted, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class AskedRow:
    """A row that gets an answer."""

    topic_id: str
    """Kafka's id of the topic of its record."""
    partition: int
    """The record's partition."""
    offset: int
    """The record's offset."""
    at: str
    """Its event time, ISO 8601 in UTC, to the microsecond."""
    epoch: int
    """The epoch that has committed it."""
    decided: bool = False
    """Whether it is asked about again by a person's decision."""

    @property
    def place(self) -> Place:
        """Where its record is."""
        return self.topic_id, self.partition, self.offset


Place = tuple[str, int, int]
"""A topic's id, a partition and an offset."""


@dataclass
class Question:
    """A request, and the rows that wait for its answer."""

    key: str
    """The request's values as text: equal ones are one question."""
    request: Mapping[str, Any]
    """What is asked."""
    since: float
    """When it was first wanted, by the process's clock."""
    rows: list[AskedRow] = field(default_factory=list)
    """Who wants it."""
    tries: int = 0
    """Calls that have failed."""

    @property
    def decided(self) -> bool:
        """Whether it is asked for rows of decisions alone."""
        return all(row.decided for row in self.rows)


@dataclass(frozen=True)
class Outcome:
    """What is recorded of a question."""

    values: Mapping[str, Any] = field(default_factory=dict)
    """The answer's columns; empty where there is none."""
    error: str = ""
    """Why there is no answer; empty where there is one."""
    tries: int = 1
    """Calls that were made."""
    seconds: float = 0.0
    """How long the last one took."""
