"""How far a topic of dead letters has been replayed: all of them, and those of single reasons beyond that."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from seamline.model.errors import SetupError

Ends = Mapping[int, int]
"""By partition, the offset below which letters have been replayed."""
ALL = ""
"""Stands for letters of any reason."""


@dataclass(frozen=True)
class Replayed:
    """What was replayed of a topic; it is changed in the transactions that write the records."""

    ends: Mapping[str, Ends] = field(default_factory=dict)
    """By reason; those of ``ALL`` count for each."""

    def find_start(self, reasons: Collection[str], partition: int) -> int:
        """Return the first offset of a partition at which there may be a letter to be replayed."""
        asked = reasons or (ALL,)
        return max(self.find_end(ALL, partition), min(self.find_end(each, partition) for each in asked))

    def find_end(self, reason: str, partition: int) -> int:
        """Return the offset below which letters of a reason were replayed by themselves."""
        return self.ends.get(reason, {}).get(partition, 0)

    def is_due(self, reasons: Collection[str], reason: str, partition: int, offset: int) -> bool:
        """Return whether a letter is to be replayed where those of some ``reasons`` are asked for, all if none."""
        done = max(self.find_end(ALL, partition), self.find_end(reason, partition))
        return offset >= done and (not reasons or reason in reasons)

    def pass_by(self, reasons: Collection[str], partition: int, offset: int) -> Replayed:
        """Return what is replayed once all up to an offset, and it, are that were asked for."""
        ends = {reason: dict(each) for reason, each in self.ends.items()}
        for reason in reasons or (ALL,):
            own = ends.setdefault(reason, {})
            own[partition] = max(own.get(partition, 0), offset + 1)
        return Replayed(ends)

    def to_json(self) -> str:
        """Write it as JSON; the inverse of ``from_json``."""
        found = {reason: {str(part): end for part, end in each.items()} for reason, each in self.ends.items()}
        return json.dumps(found, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes) -> Replayed:
        """Read what ``to_json`` wrote; SetupError for anything else."""
        try:
            found: dict[str, dict[str, int]] = json.loads(text)
            return cls(
                {
                    reason: {int(part): int(end) for part, end in each.items()}
                    for reason, each in found.items()
                }
            )
        except (ValueError, TypeError, AttributeError) as error:
            raise SetupError(
                f"How far dead letters have been replayed cannot be read: {error}.",
                hint="nobody else may write to the topic of the position.",
            ) from error
