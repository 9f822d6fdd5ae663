"""A sink that is killed again and again while its table moves on, by real processes of the command line."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from tests.faults.sinks.forked import Forking

from seamline.model.protocol.sinks.positions import SinkPosition

BETWEEN = "sink_rows"
"""Rows are with the target, the position that says so is not."""
P_contra = TypeVar("P_contra", contravariant=True)
Q = TypeVar("Q", bound="Struck")
OTHERS = ("sink_taken", "sink_written", "sink_sent")
MOVED = ("sink_written", "sink_sent")
"""Points at which the position has moved."""


@dataclass(frozen=True)
class Kill:
    """One process that was killed, and what proves where."""

    target: str
    """The kind of the target."""
    seed: int
    """The seed of the life that it was a part of."""
    step: int
    """Its number there."""
    point: str
    """The commit point."""
    before: str
    """The position before the process was started."""
    after: str
    """The position after it was killed."""
    reached: bool
    """Whether rows had reached the target."""


class Struck(Protocol):
    """A target whose writer is killed, as strangers see it."""

    kind: str

    def position(self) -> SinkPosition | None:
        """Read the position that others see."""

    def effects(self) -> str:
        """Return something that is another as soon as rows have reached the target, seen by others or not."""


class Moving(Protocol[P_contra]):
    """What is sent to the target: it moves on, and knows what it was at each position."""

    env: Mapping[str, str]
    """The variables by which the command line finds it."""
    dice: random.Random

    def move_on(self) -> None:
        """Have something new that is to be sent."""

    def require_shown(self, place: P_contra, position: SinkPosition | None) -> None:
        """Hold a target to its position."""

    def require_whole(self, place: P_contra) -> None:
        """Require that a target has all, each once."""


class Drilled(Generic[Q]):
    """One sink, whose process is killed."""

    def __init__(self, world: Moving[Q], place: Q, seed: int, forking: Forking) -> None:
        self.world, self.place, self.seed, self.forking = world, place, seed, forking
        self.kills: list[Kill] = []

    def run(self, fail: str = "") -> tuple[int, str]:
        """Send what is new, with a failpoint that may end that."""
        return self.forking.run(
            {**os.environ, **self.world.env, "SEAMLINE_FAIL": fail}, ["sinks", "run", "shop", "--once"]
        )

    def kill(self, step: int, point: str) -> None:
        """Send, and be killed at a point; position, rows and what has reached the target prove where."""
        before, effects = self.place.position(), self.place.effects() if step else ""
        # A script that is not the last of its write leaves the position as it is, however many there were before.
        passing = self.world.dice.randrange(1, 5) if self.place.kind == "redis" and point == BETWEEN else 1
        code, said = self.run(f"{point}:{passing}")
        if code == 0:
            return
        assert code == -signal.SIGKILL, said
        reached = self.place.effects() != effects
        after = self.place.position()
        if point == BETWEEN:
            assert reached, "no row had reached the target"
            # Keys are seen as they are set, and the position says before that the target is on the way.
            assert (after and after.toward) if self.place.kind == "redis" else after == before, (
                before,
                after,
            )
        if point in MOVED:
            assert after != before
        self.world.require_shown(self.place, after)
        told = [each.to_json() if each else "" for each in (before, after)]
        self.kills.append(Kill(self.place.kind, self.seed, step, point, told[0], told[1], reached))

    def drill(self, kills: int, steps: int = 60) -> None:
        """Be killed so often between rows and position, each fifth time elsewhere; in the end the target is whole."""
        for step in range(steps):
            if sum(each.point == BETWEEN for each in self.kills) == kills:
                break
            self.world.move_on()
            self.kill(step, BETWEEN if step % 5 != 4 else OTHERS[step // 5 % len(OTHERS)])
            if self.world.dice.random() < 0.4:
                self.send()
        self.send()
        self.world.require_whole(self.place)

    def send(self) -> None:
        """Send what is new."""
        code, said = self.run()
        assert code == 0, said
