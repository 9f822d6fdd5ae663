"""What runs, upkeep and people do to what is published."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import ClassVar

from tests.lives.checks import check, check_log
from tests.lives.events.faults import Mishap
from tests.lives.operations import Operation
from tests.lives.records import DAY, START
from tests.lives.world import HERE, World

from seamline.lake.maintain.upkeep import maintain_tables
from seamline.lake.publish.flipping import flip_view
from seamline.lake.publish.generation_history import release_interval, roll_back_interval
from seamline.lake.publish.planning import job_of, plan_run
from seamline.lake.publish.publishing import publish_run
from seamline.model.errors import BadRange, Conflict, NotFound, PublishRefused
from seamline.model.protocol.seam import Side
from seamline.model.time.intervals import Interval
from seamline.plan.publish.publication import Decision
from seamline.quality.certify import certify_run
from seamline.spark.build.build import build_intervals
from seamline.spark.build.reprocessing import reprocess_epochs

BATCH_POINTS = ("states", "generation", "built", "certified")
PUBLISH_POINTS = ("published", "served")


@dataclass(frozen=True)
class Build(Operation):
    """A run builds what is dirty, or a day, and certifies it; it may die on the way."""

    weight: ClassVar[int] = 3
    day: int
    point: str

    @classmethod
    def draw(cls, chance: Random) -> Build:
        point = chance.choice([*BATCH_POINTS, "", "", "", ""])
        return cls(chance.choice([-1, -1, 0, 1, 2]), point)

    def run(self, world: World) -> None:
        if not world.log:
            return
        world.made += 1
        name = f"run-{world.made}"
        asked = None if self.day < 0 else day_of(self.day)
        with world.process():
            world.fates.strike(self.point)
            build_run(world, name, asked)


def day_of(day: int) -> Interval:
    """Name a day."""
    return Interval(START + day * DAY, START + (day + 1) * DAY)


def build_run(world: World, name: str, asked: Interval | None) -> None:
    """Plan, build and certify a run."""
    reprocess_epochs(HERE, world.pipeline, world.layout, until=world.newest)
    plan = plan_run(world.pipeline, world.layout, asked=asked, dirty=asked is None, run=name)
    if not plan.builds:
        return
    world.jobs[name] = job_of(world.pipeline, plan, run=name)
    built(world, name)


def built(world: World, name: str) -> None:
    """Build and certify what was planned for a run."""
    build_intervals(HERE, world.pipeline, world.layout, world.jobs[name])
    certify_run(world.pipeline, world.layout, name)
    if name not in world.runs:
        world.runs.append(name)


@dataclass(frozen=True)
class Publish(Operation):
    """A run that was built is published, the newest or an older one; it may die on the way."""

    weight: ClassVar[int] = 3
    which: int
    point: str

    @classmethod
    def draw(cls, chance: Random) -> Publish:
        return cls(chance.choice([0, 0, 0, 1, 2]), chance.choice([*PUBLISH_POINTS, "", "", ""]))

    def run(self, world: World) -> None:
        if not world.runs:
            return
        name = world.runs[-1 - self.which % len(world.runs)]
        with world.process(), suppress(PublishRefused, Conflict):
            world.fates.strike(self.point)
            publish_run(world.pipeline, world.layout, name)
            world.runs.remove(name)


@dataclass(frozen=True)
class Clear(Operation):
    """Somebody clears a run from one of its tasks on, be it published or not, and lets it go on as far as another.

    What is not planned again is built as it was planned then.
    """

    which: int
    first: int
    last: int
    point: str

    @classmethod
    def draw(cls, chance: Random) -> Clear:
        first = chance.randrange(4)
        point = chance.choice([*BATCH_POINTS, *PUBLISH_POINTS, "", "", ""])
        return cls(chance.randrange(3), first, chance.randint(first, 3), point)

    def run(self, world: World) -> None:
        if not world.jobs:
            return
        name = list(world.jobs)[-1 - self.which % len(world.jobs)]
        tasks: list[Callable[[], object]] = [
            lambda: build_run(world, name, None),
            lambda: built(world, name),
            lambda: certify_run(world.pipeline, world.layout, name),
            lambda: publish_run(world.pipeline, world.layout, name),
        ]
        with world.process(), suppress(PublishRefused, Conflict, NotFound):
            world.fates.strike(self.point)
            for task in tasks[self.first : self.last + 1]:
                task()


@dataclass(frozen=True)
class BatchDiesAtCommit(Operation):
    """A whole run that dies before or after one of its commits."""

    weight: ClassVar[int] = 2
    at: int
    mishap: Mishap

    @classmethod
    def draw(cls, chance: Random) -> BatchDiesAtCommit:
        return cls(chance.randrange(8), chance.choice([*Mishap][:4]))

    def run(self, world: World) -> None:
        if not world.log:
            return
        world.made += 1
        name = f"run-{world.made}"
        with world.process(), suppress(PublishRefused, Conflict, OSError):
            world.fates.ask(self.mishap, self.at)
            build_run(world, name, None)
            if name in world.runs:
                publish_run(world.pipeline, world.layout, name)


@dataclass(frozen=True)
class Rollback(Operation):
    """A person rolls an interval back to the generation before, or gives it free again."""

    day: int
    release: bool

    @classmethod
    def draw(cls, chance: Random) -> Rollback:
        return cls(chance.randrange(3), chance.random() < 0.3)

    def run(self, world: World) -> None:
        if not world.log:
            return
        view = world.pipeline.views[0].name
        with suppress(PublishRefused, BadRange, NotFound):
            if self.release:
                release_interval(world.pipeline, world.layout, view, day_of(self.day), actor="x", reason="y")
            else:
                decision = Decision("x", "y", rollback=True, despite=True)
                roll_back_interval(world.pipeline, world.layout, view, day_of(self.day), decision=decision)
                world.seen.clear()


@dataclass(frozen=True)
class Flip(Operation):
    """The definition's own versions are served."""

    def run(self, world: World) -> None:
        if not world.log:
            return
        for view in world.pipeline.views:
            with suppress(PublishRefused):
                flip_view(world.pipeline, world.layout, view.name)


@dataclass(frozen=True)
class Upkeep(Operation):
    """Upkeep runs; it may die before or after one of its commits."""

    weight: ClassVar[int] = 2
    at: int
    mishap: Mishap

    @classmethod
    def draw(cls, chance: Random) -> Upkeep:
        return cls(
            chance.choice([-1, -1, 0, 1, 2, 3, 5]), chance.choice([Mishap.DIES_BEFORE, Mishap.DIES_AFTER])
        )

    def run(self, world: World) -> None:
        with world.process():
            if self.at >= 0:
                world.fates.ask(self.mishap, self.at)
            maintain_tables(world.pipeline, world.layout)


@dataclass(frozen=True)
class Look(Operation):
    """Somebody looks at one side alone, and at master and quarantine as another engine does."""

    harmless: ClassVar[bool] = True
    side: Side

    @classmethod
    def draw(cls, chance: Random) -> Look:
        return cls(chance.choice([Side.BATCH, Side.SPEED]))

    def run(self, world: World) -> None:
        check(world, self.side)
        check_log(world)
