"""A person corrects the table of a look-up, and restates with it what has closed."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from typing import ClassVar

from tests.lives.events.batching import Build, Publish, day_of
from tests.lives.events.faults import Mishap
from tests.lives.events.sending import Send, close
from tests.lives.events.streaming import Epoch, Idle
from tests.lives.operations import Operation
from tests.lives.rates import LOOKUP
from tests.lives.world import World

from seamline.lake.publish.generation_history import roll_back_interval
from seamline.lake.publish.lookup_restating import restate_lookup
from seamline.model.errors import BadRange, NotFound, PublishRefused
from seamline.model.time.intervals import Interval
from seamline.plan.publish.publication import Decision


@dataclass(frozen=True)
class Correct(Operation):
    """The table is another from now on."""

    harmless: ClassVar[bool] = True
    seed: int

    @classmethod
    def draw(cls, chance: Random) -> Correct:
        return cls(chance.randrange(4))

    def run(self, world: World) -> None:
        world.correct(self.seed)


@dataclass(frozen=True)
class Restate(Operation):
    """The table is corrected, and rows of some days are restated with it; what is refused is passed over.

    First time may go on, so that the days close (``closes``). The stream ``names`` the decision at once, or when it
    next idles; it may die at one of its commits.
    """

    weight: ClassVar[int] = 4
    seed: int
    day: int
    days: int
    closes: bool
    names: bool
    at: int
    mishap: Mishap
    sent: Send

    @classmethod
    def draw(cls, chance: Random) -> Restate:
        return cls(
            chance.randrange(4),
            chance.choice([0, 0, 1]),
            chance.choice([1, 1, 2]),
            chance.random() < 0.6,
            chance.random() < 0.7,
            chance.choice([-1, -1, -1, 0, 1, 2]),
            chance.choice([Mishap.DIES_BEFORE, Mishap.DIES_AFTER]),
            Send.draw(chance),
        )

    def run(self, world: World) -> None:
        if not world.log:
            return
        if self.closes:
            close(world, self.seed, 3)
            Epoch(40).run(world)
            Idle(3).run(world)
        world.correct(self.seed)
        span = Interval(day_of(self.day).start, day_of(self.day + self.days - 1).end)
        with suppress(BadRange, NotFound):
            world.restated.append(
                restate_lookup(
                    world.pipeline,
                    world.layout,
                    LOOKUP,
                    span,
                    actor="a person",
                    reason="so",
                    now=datetime.now(UTC),
                )
            )
        if self.names:
            with world.driving(), world.watched():
                driver = world.running()
                if self.at >= 0:
                    world.fates.ask(self.mishap, self.at)
                driver.epochs.state_news(len(world.restated))
            self.sent.run(world)


@dataclass(frozen=True)
class BuildRestated(Operation):
    """A run builds what waits for it, and the views that waited go on."""

    weight: ClassVar[int] = 3
    sent: Send

    @classmethod
    def draw(cls, chance: Random) -> BuildRestated:
        return cls(Send.draw(chance))

    def run(self, world: World) -> None:
        Build(-1, "").run(world)
        Publish(0, "").run(world)
        Idle(1000).run(world)
        self.sent.run(world)
        Epoch(10).run(world)


@dataclass(frozen=True)
class RollBackJoined(Operation):
    """A person rolls an interval of joined rows back; not to what was built before a restatement."""

    day: int

    @classmethod
    def draw(cls, chance: Random) -> RollBackJoined:
        return cls(chance.randrange(3))

    def run(self, world: World) -> None:
        view = world.pipeline.views[-1].name
        if world.log:
            with suppress(PublishRefused, BadRange, NotFound):
                decision = Decision("x", "y", rollback=True, despite=True)
                roll_back_interval(world.pipeline, world.layout, view, day_of(self.day), decision=decision)
                world.seen.clear()


KINDS: tuple[type[Operation], ...] = (Correct, Restate, BuildRestated, RollBackJoined)
