"""What Kafka loses before it was read, what people pass over, and what is read of it after all."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from typing import ClassVar

from tests.lives.events.batching import day_of
from tests.lives.events.streaming import EPOCH_POINTS
from tests.lives.operations import Operation
from tests.lives.world import HERE, World

from seamline.lake.tables.control_table import ControlTable
from seamline.model.errors import OffsetGap
from seamline.model.protocol.holes import AcceptedGap, Gap
from seamline.model.protocol.offsets import Lane

FAR = 9
"""A day of which no record is."""


@dataclass(frozen=True)
class Lose(Operation):
    """Kafka deletes records of a lane before they were read, and a person lets the stream go on without them."""

    lane: int
    count: int

    @classmethod
    def draw(cls, chance: Random) -> Lose:
        return cls(chance.randrange(3), chance.randint(1, 6))

    def run(self, world: World) -> None:
        if not (gap := ahead(world, self.lane, self.count)):
            return
        world.gone()
        world.topic.first[gap.lane] = gap.range.end
        if world.ends[gap.lane]:
            # Of a lane of which nothing was read nobody knows where it began.
            try:
                world.start()
            except OffsetGap:
                world.gone()
            else:
                raise AssertionError(f"a start has gone on over {gap}")
        now = datetime.now(UTC)
        decision = AcceptedGap(gap, "a person", "so", now, day_of(FAR))
        ControlTable.ensure(world.layout).accept([decision])
        world.start()


@dataclass(frozen=True)
class PassOver(Operation):
    """A person lets the stream begin further on, and has it read what was passed over after all."""

    weight: ClassVar[int] = 2
    lane: int
    count: int

    @classmethod
    def draw(cls, chance: Random) -> PassOver:
        return cls(chance.randrange(3), chance.randint(1, 6))

    def run(self, world: World) -> None:
        if not (gap := ahead(world, self.lane, self.count)):
            return
        world.gone()
        now = datetime.now(UTC)
        decision = AcceptedGap(gap, "a person", "so", now, day_of(FAR))
        control = ControlTable.ensure(world.layout)
        control.pass_over([decision], void=(), fill=True, actor="a person", reason="so", now=now)
        world.start()


def ahead(world: World, lane: int, count: int) -> Gap | None:
    """Return the next offsets of a lane, as far as there are any."""
    place = list(world.topic.lanes)[lane % len(world.topic.lanes)]
    start = max(world.ends[place], world.topic.first.get(place, 0))
    end = min(start + count, len(world.topic.lanes[place]))
    return Gap(place, start, end) if end > start and world.log else None


@dataclass(frozen=True)
class Fill(Operation):
    """The stream reads what was passed over, a few records at a time; it may die on the way."""

    weight: ClassVar[int] = 3
    steps: int
    size: int
    point: str

    @classmethod
    def draw(cls, chance: Random) -> Fill:
        point = chance.choice([*EPOCH_POINTS, "", "", "", ""])
        return cls(chance.randint(1, 3), chance.choice([1, 2, 100]), point)

    def run(self, world: World) -> None:
        with world.driving(), world.watched():
            filler = world.running().side.filler
            filler.size = self.size
            world.fates.strike(self.point)
            fill(world, self.steps)


def fill(world: World, steps: int) -> None:
    """Read so many pieces of what was passed over."""
    filler = world.running().side.filler
    filler.request(ControlTable.ensure(world.layout).read().fills)
    for _ in range(steps):
        if not filler.pending:
            break
        filler.fill_step(HERE)


def passed_over(world: World) -> list[tuple[Lane, int]]:
    """List the places of which nothing is held, and that Kafka still has, below the ends."""
    held = {(each.lane, each.offset) for each in world.held}
    return [
        (lane, offset)
        for lane, end in world.ends.items()
        for offset in range(world.topic.first.get(lane, 0), end)
        if (lane, offset) not in held
    ]
