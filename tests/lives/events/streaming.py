"""What the stream does, and what befalls it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import ClassVar
from unittest.mock import patch

from tests.lives.checks import check_serving
from tests.lives.definitions import changed, ruled, widened
from tests.lives.events.faults import Died, Mishap
from tests.lives.events.sending import Send
from tests.lives.operations import Operation
from tests.lives.world import HERE, World, abandon

from seamline.lake.tables.view_versions import add_live_versions
from seamline.model.errors import Conflict, FenceLost
from seamline.spark.stream.catch_up import catch_up
from seamline.spark.stream.epoch_writer import Writer

EPOCH_POINTS = ("planned", "half", "files", "slices", "quarantine", "master", "ledger")
TABLES = ("master", "quarantine", "ledger", "slices")


def fed(world: World, sent: Send) -> None:
    """See to it that there is something to read: what befalls an epoch befalls none that reads nothing."""
    if world.topic.read_to(world.ends):
        sent.run(world)


@dataclass(frozen=True)
class Epoch(Operation):
    """The stream reads, and holds an epoch."""

    weight: ClassVar[int] = 8
    more: int

    @classmethod
    def draw(cls, chance: Random) -> Epoch:
        return cls(chance.choice([1, 3, 10, 40]))

    def run(self, world: World) -> None:
        with world.driving():
            world.epoch(self.more)


@dataclass(frozen=True)
class Idle(Operation):
    """The stream has nothing to read, and declares an edge; views that are behind catch up."""

    weight: ClassVar[int] = 3
    most: int

    @classmethod
    def draw(cls, chance: Random) -> Idle:
        return cls(chance.choice([1, 3, 1000]))

    def run(self, world: World) -> None:
        with world.driving(), world.watched():
            driver = world.running()
            before = driver.writer.behind
            catch_up(HERE, driver.writer, most=self.most)
            driver.epochs.unstated |= before.keys() - driver.writer.behind.keys()
            driver.epochs.state_news(len(world.restated))
            driver.epochs.close("paused")


@dataclass(frozen=True)
class Kill(Operation):
    """The driver dies at a point of an epoch; the next operation that needs one starts another."""

    weight: ClassVar[int] = 3
    point: str
    more: int
    sent: Send

    @classmethod
    def draw(cls, chance: Random) -> Kill:
        return cls(chance.choice(EPOCH_POINTS), chance.choice([1, 3, 10]), Send.draw(chance))

    def run(self, world: World) -> None:
        fed(world, self.sent)
        with world.driving():
            world.running()
            world.fates.strike(self.point)
            world.epoch(self.more)


@dataclass(frozen=True)
class KillAtCommit(Operation):
    """The driver dies before or after one of its next commits, be it of a start, an epoch or a refresh."""

    weight: ClassVar[int] = 3
    at: int
    mishap: Mishap
    more: int
    sent: Send

    @classmethod
    def draw(cls, chance: Random) -> KillAtCommit:
        mishap = chance.choice([Mishap.DIES_BEFORE, Mishap.DIES_AFTER])
        return cls(chance.randrange(8), mishap, chance.choice([1, 3, 10]), Send.draw(chance))

    def run(self, world: World) -> None:
        fed(world, self.sent)
        with world.driving():
            world.fates.ask(self.mishap, self.at)
            world.epoch(self.more)
            world.running().refresher.refresh()


@dataclass(frozen=True)
class NoAnswer(Operation):
    """A commit of an epoch fails, or lands without its writer's knowing.

    Where it was one of slices their view is behind: its serving table is refreshed before, then, and when it has caught
    up (``serves``).
    """

    weight: ClassVar[int] = 3
    table: str
    mishap: Mishap
    more: int
    sent: Send
    serves: bool

    @classmethod
    def draw(cls, chance: Random) -> NoAnswer:
        return cls(
            chance.choice([*TABLES, "slices"]),
            chance.choice([Mishap.FAILS, Mishap.LANDS]),
            chance.choice([1, 3, 10]),
            Send.draw(chance),
            chance.random() < 0.8,
        )

    def run(self, world: World) -> None:
        fed(world, self.sent)
        serves = self.serves and self.table == "slices"
        if serves:
            Serve().run(world)
        with world.driving():
            world.running()
            world.fates.ask(self.mishap, 0, self.table)
            world.epoch(self.more)
        if serves and world.running().writer.behind:
            Serve(catches_up=True).run(world)


@dataclass(frozen=True)
class OwnMeets(Operation):
    """A commit lands, and its writer is told that its version was taken: by itself, as it turns out.

    ``table`` names one of an epoch's commits; else it is any, a start's too.
    """

    weight: ClassVar[int] = 2
    table: str
    at: int
    more: int
    sent: Send

    @classmethod
    def draw(cls, chance: Random) -> OwnMeets:
        table = chance.choice([*TABLES, "", ""])
        return cls(table, 0 if table else chance.randrange(8), chance.choice([1, 3, 10]), Send.draw(chance))

    def run(self, world: World) -> None:
        fed(world, self.sent)
        with world.driving():
            if self.table:
                world.running()
            world.fates.ask(Mishap.TAKEN, self.at, self.table)
            world.epoch(self.more)


@dataclass(frozen=True)
class Race(Operation):
    """Between the look and the commit of a new driver's fence the old driver, which still lives, commits."""

    table: str

    @classmethod
    def draw(cls, chance: Random) -> Race:
        return cls(chance.choice(TABLES))

    def run(self, world: World) -> None:
        old = world.running()

        def commits(root: Path) -> None:
            if root.name == self.table:
                world.fates.before = None
                next(table for table in old.writer.tables if table.root == root).append([])

        world.stalled.append(old)
        world.driver = None
        with world.process():
            world.fates.before = commits
            world.start()


@dataclass(frozen=True)
class FailedStart(Operation):
    """Starts that die after they have fenced the tables, some of them many in a row."""

    weight: ClassVar[int] = 2

    times: int
    point: str
    sent: Send

    @classmethod
    def draw(cls, chance: Random) -> FailedStart:
        point = chance.choice(["", "master", "master", "master"])
        return cls(chance.choice([1, 2, 22]), point, Send.draw(chance))

    def run(self, world: World) -> None:
        if self.point:
            Kill(self.point, 3, self.sent).run(world)
        world.gone()
        for _ in range(self.times):
            self.start(world)

    def start(self, world: World) -> None:
        """Let a start die when it has committed to every table of the stream."""
        driver = world.begun()
        with world.process():

            def dies(_: Writer) -> None:
                raise Died("the tables are fenced")

            with patch.object(Writer, "repair_ledger", dies):
                driver.start(HERE)
        abandon(driver)


@dataclass(frozen=True)
class Stop(Operation):
    """The stream is stopped, as it should be."""

    def run(self, world: World) -> None:
        if world.driver is not None:
            with world.driving(), world.watched():
                world.driver.finish(None)
            world.gone()


@dataclass(frozen=True)
class TakeOver(Operation):
    """A driver stalls, and another is started; the first may wake later."""

    def run(self, world: World) -> None:
        if world.driver is not None:
            world.stalled.append(world.driver)
            world.driver = None
        world.start()


@dataclass(frozen=True)
class Wake(Operation):
    """A driver that stalled goes on, and commits nothing."""

    which: int
    more: int

    @classmethod
    def draw(cls, chance: Random) -> Wake:
        return cls(chance.randrange(3), chance.choice([0, 3]))

    def run(self, world: World) -> None:
        if not world.stalled:
            return
        driver = world.stalled.pop(self.which % len(world.stalled))
        vector = dict(driver.epochs.progress.vector)
        ends = {
            lane: min(vector.get(lane, 0) + self.more, len(sent)) for lane, sent in world.topic.lanes.items()
        }
        newest = world.newest
        with suppress(FenceLost, Conflict):
            world.read(driver, vector, ends)
        if world.newest != newest:
            raise AssertionError(f"a driver that was fenced off has committed epoch {world.newest}")
        abandon(driver)


@dataclass(frozen=True)
class Redefine(Operation):
    """The definition gets another version of a view, and the stream starts with it."""

    weight: ClassVar[int] = 2

    at: int

    @classmethod
    def draw(cls, chance: Random) -> Redefine:
        return cls(chance.randrange(4))

    def run(self, world: World) -> None:
        Stop().run(world)
        world.shape = changed(world.shape, self.at)
        world.start()


@dataclass(frozen=True)
class Widen(Operation):
    """The topic gets another column, the definition names it, and the stream starts with it."""

    seed: int

    @classmethod
    def draw(cls, chance: Random) -> Widen:
        return cls(chance.randrange(10**6))

    def run(self, world: World) -> None:
        Stop().run(world)
        world.shape = widened(world.shape, self.seed, on=world.on)
        world.divisors[world.pipeline.record_version] = world.shape.divisor
        world.start()


@dataclass(frozen=True)
class Rules(Operation):
    """The definition gets another rule: all records will be judged again, and versions of before stand still."""

    def run(self, world: World) -> None:
        Stop().run(world)
        world.stood |= {view.id for view in add_live_versions(world.pipeline, world.layout).views}
        world.shape = ruled(world.shape)
        world.divisors[world.pipeline.record_version] = world.shape.divisor
        world.start()


@dataclass(frozen=True)
class Serve(Operation):
    """The stream refreshes its serving tables, and they are looked at as another engine does.

    It ``catches_up`` where views are behind, and their tables are refreshed again: they have said less before.
    """

    weight: ClassVar[int] = 3
    catches_up: bool = False

    @classmethod
    def draw(cls, chance: Random) -> Serve:
        return cls(chance.random() < 0.5)

    def run(self, world: World) -> None:
        self.refresh(world)
        if self.catches_up and world.running().writer.behind:
            Idle(1000).run(world)
            self.refresh(world)

    def refresh(self, world: World) -> None:
        """Refresh them once."""
        with world.driving():
            world.running().refresher.refresh()
            check_serving(world)
