"""Which offsets the lineage of a stream has told: each once, also those of a driver that died without a word.

What the server has not taken is told with the next event; what a dead driver read, with the end of its run, by the
driver after it. A run whose beginning was never taken is not known there: the end of the one before has its offsets.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from seamline.model.protocol.offsets import Lane, OffsetRange, Vector, ranges_between
from seamline.plan.lineage.lineage_events import RunState


@dataclass(frozen=True)
class Told:
    """What the server has taken."""

    run: str = ""
    """The id of the newest run of which it has the beginning and not the end; empty for none."""
    vector: Vector = field(default_factory=dict)
    """Up to where it knows the offsets that were read."""
    ended: str = ""
    """What has become of that run; empty while it goes on, or died."""
    error: str = ""
    """Why it failed."""

    def to_json(self) -> str:
        """Write it as the driver keeps it for the next one."""
        vector = {str(lane): at for lane, at in self.vector.items()}
        return json.dumps({"run": self.run, "vector": vector, "ended": self.ended, "error": self.error})

    @classmethod
    def from_json(cls, text: str) -> Told:
        """Read what ``to_json`` wrote; nothing of what cannot be read."""
        try:
            row: Mapping[str, Any] = json.loads(text)
            vector = {Lane.parse(lane): int(at) for lane, at in row["vector"].items()}
            return cls(str(row["run"]), vector, str(row["ended"]), str(row["error"]))
        except (ValueError, KeyError, TypeError, AttributeError):
            return cls()


@dataclass(frozen=True)
class Step:
    """An event that is due."""

    state: RunState
    """What it says of the run."""
    run: str
    """The run's id."""
    ranges: tuple[OffsetRange, ...]
    """The offsets that it tells."""
    error: str = ""
    """Why the run failed."""
    after: Told = Told()
    """What the server has taken once it has taken this."""


def plan_steps(
    told: Told, run: str, began: Vector, here: Vector, ending: RunState | None = None, error: str = ""
) -> Iterator[Step]:
    """List what is due of a run that began at a vector and is now ``here``; ``ending`` it, where it is over.

    Nothing is due of a run that goes on and has read nothing more.
    """
    if told.run and told.run != run:
        state = RunState(told.ended) if told.ended else RunState.ABORT
        yield Step(state, told.run, ranges_of_known(told.vector, began), told.error, Told("", began))
    if told.run != run:
        told = Told(run, began)
        yield Step(
            RunState.START,
            run,
            tuple(OffsetRange(lane, at, at) for lane, at in sorted(began.items())),
            after=told,
        )
    ranges = ranges_between(told.vector, here)
    if ending:
        yield Step(ending, run, ranges, error, Told("", here))
    elif ranges:
        yield Step(RunState.RUNNING, run, ranges, after=replace(told, vector=here))


def ranges_of_known(start: Vector, end: Vector) -> tuple[OffsetRange, ...]:
    """List what lies between two vectors of different drivers: where a new lane began nobody knows any more."""
    return ranges_between(start, {lane: at for lane, at in end.items() if lane in start})
