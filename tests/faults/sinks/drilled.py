"""A sink that is killed again and again while its table moves on, by real processes of the command line."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path

from tests.faults.sinks.forked import Forking
from tests.faults.sinks.places import Place
from tests.faults.sinks.shown_shop import ShownShop

from seamline.model.protocol.sinks.positions import SinkPosition

BETWEEN = "sink_rows"
"""Rows are with the target, the position that says so is not."""
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


class Drilled(ShownShop):
    """One shop with one sink, whose process is killed."""

    def __init__(self, folder: Path, place: Place, seed: int, forking: Forking) -> None:
        super().__init__(folder, [place], seed)
        self.place, self.seed, self.forking = place, seed, forking
        self.kills: list[Kill] = []

    def run(self, fail: str = "") -> tuple[int, str]:
        """Send what is new, with a failpoint that may end that."""
        return self.forking.run(
            {**os.environ, **self.env, "SEAMLINE_FAIL": fail}, ["sinks", "run", "shop", "--once"]
        )

    def kill(self, step: int, point: str) -> None:
        """Send, and be killed at a point; position, rows and what has reached the target prove where."""
        before, effects = self.place.position(), self.place.effects() if step else ""
        # A script that is not the last of its write leaves the position as it is, however many there were before.
        passing = self.dice.randrange(1, 5) if self.place.kind == "redis" and point == BETWEEN else 1
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
        self.require_shown(after)
        told = [each.to_json() if each else "" for each in (before, after)]
        self.kills.append(Kill(self.place.kind, self.seed, step, point, told[0], told[1], reached))

    def require_shown(self, position: SinkPosition | None) -> None:
        """Hold the target to its position: rows are those of its version, or of one of both ends of its way."""
        held = self.place.read()
        if position is None:
            assert held == {} or self.place.kind == "redis", held
        elif position.toward is None:
            assert held == self.versions[position.version]
        else:
            ends = self.versions.get(position.version, {}), self.versions[position.toward]
            assert held.keys() <= ends[0].keys() | ends[1].keys()
            for place, row in held.items():
                assert row in (ends[0].get(place), ends[1].get(place)), (place, row)

    def drill(self, kills: int, steps: int = 60) -> None:
        """Be killed so often between rows and position, each fifth time elsewhere; in the end the target is whole."""
        for step in range(steps):
            if sum(each.point == BETWEEN for each in self.kills) == kills:
                break
            self.move_on()
            self.kill(step, BETWEEN if step % 5 != 4 else OTHERS[step // 5 % len(OTHERS)])
            if self.dice.random() < 0.4:
                self.send()
        self.send()
        assert self.place.read() == self.newest
        self.place.check()

    def send(self) -> None:
        """Send what is new."""
        code, said = self.run()
        assert code == 0, said
