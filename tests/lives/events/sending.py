"""What people send."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import ClassVar

from tests.lives.operations import Operation
from tests.lives.records import DAY, START, drawn
from tests.lives.world import World


@dataclass(frozen=True)
class Send(Operation):
    """Somebody sends records of about a day."""

    harmless: ClassVar[bool] = True
    weight: ClassVar[int] = 6
    seed: int
    count: int
    day: int

    @classmethod
    def draw(cls, chance: Random) -> Send:
        return cls(chance.randrange(10**6), chance.randint(1, 12), chance.choice([0, 0, 1, 1, 2]))

    def run(self, world: World) -> None:
        shape, chance = world.shape, Random(self.seed)
        world.topic.send(
            drawn(
                shape.columns,
                shape.time,
                shape.id,
                day=self.day,
                count=self.count,
                first=self.seed * 100,
                chance=chance,
            )
        )


@dataclass(frozen=True)
class SendAgain(Operation):
    """Somebody sends some of the newest records again."""

    harmless: ClassVar[bool] = True
    count: int

    @classmethod
    def draw(cls, chance: Random) -> SendAgain:
        return cls(chance.randint(1, 4))

    def run(self, world: World) -> None:
        sent = [record for records in world.topic.lanes.values() for record in records[-self.count :]]
        world.topic.send(sent[-self.count :])


@dataclass(frozen=True)
class SendCopies(Operation):
    """Somebody sends records of any age again, to any lane; some say something else under the id of before."""

    harmless: ClassVar[bool] = True
    seed: int
    count: int

    @classmethod
    def draw(cls, chance: Random) -> SendCopies:
        return cls(chance.randrange(10**6), chance.randint(1, 5))

    def run(self, world: World) -> None:
        shape, chance = world.shape, Random(self.seed)
        sent = [each for records in world.topic.lanes.values() for each in records if each.row is not None]
        for record in chance.sample(sent, min(self.count, len(sent))):
            again = replace(record, lane=chance.randrange(4))
            if chance.random() < 0.5:
                assert record.row is not None
                day, first = (record.at - START) // DAY, record.row[shape.id]
                [again] = drawn(
                    shape.columns, shape.time, shape.id, day=day, count=1, first=first, chance=chance
                )
            world.topic.send([again])


@dataclass(frozen=True)
class Close(Operation):
    """Time goes on in every lane, so that days close."""

    harmless: ClassVar[bool] = True
    weight: ClassVar[int] = 2
    seed: int
    day: int

    @classmethod
    def draw(cls, chance: Random) -> Close:
        return cls(chance.randrange(10**6), chance.randint(1, 3))

    def run(self, world: World) -> None:
        close(world, self.seed, self.day)


def close(world: World, seed: int, day: int) -> None:
    """Send a good record of a day's second half to each lane."""
    shape, chance = world.shape, Random(seed)
    for number in range(shape.lanes):
        found = None
        while (
            found is None
            or found.row is None
            or not shape.takes(found.row)
            or found.at < START + day * DAY + DAY / 2
        ):
            [found] = drawn(
                shape.columns,
                shape.time,
                shape.id,
                day=day,
                count=1,
                first=chance.randrange(10**9, 10**12),
                chance=chance,
            )
        world.topic.send([replace(found, lane=number)])
