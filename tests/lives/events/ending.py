"""How every life ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tests.lives.checks import check, check_built, check_log
from tests.lives.events.batching import Build, Publish, Upkeep
from tests.lives.events.faults import Mishap
from tests.lives.events.losing import fill, passed_over
from tests.lives.events.past import Recall
from tests.lives.events.sending import close
from tests.lives.events.streaming import Epoch, Idle, Serve
from tests.lives.flagged import held_back
from tests.lives.operations import Operation
from tests.lives.oracle import Wrong
from tests.lives.world import HERE, World

from seamline.model.protocol.seam import Side
from seamline.spark.build.reprocessing import reprocess_epochs


@dataclass(frozen=True)
class End(Operation):
    """All goes well to the end: everything is read, built and published, and every number is final."""

    weight: ClassVar[int] = 0
    seed: int = 1

    def run(self, world: World) -> None:
        world.start()
        if world.shape.joined:
            # Joined rows are of rows of any epoch: their views wait until all are validated by the rules of now.
            reprocess_epochs(HERE, world.pipeline, world.layout, until=world.newest)
        close(world, self.seed, 4)
        Epoch(10**6).run(world)
        Idle(10**6).run(world)
        fill(world, 10**6)
        # A run reads up to an edge, and what was filled may have come after the last one.
        Idle(10**6).run(world)
        catch_up(world)
        if world.running().writer.awaiting:
            # Joined views go on where what was restated is built.
            Build(-1, "").run(world)
            Publish(0, "").run(world)
            catch_up(world)
        if left := passed_over(world):
            raise Wrong(f"not read: {left[:5]}")
        writer = world.running().writer
        # What copies keep from being certified is not restated either.
        if writer.behind.keys() - (writer.awaiting if held_back(world) else set()):
            raise AssertionError(f"views stay behind: {writer.errors}")
        for lane, sent in world.topic.lanes.items():
            assert world.ends[lane] == len(sent), f"{lane} was read to {world.ends[lane]} of {len(sent)}"
        check(world)
        Serve().run(world)
        Build(-1, "").run(world)
        Publish(0, "").run(world)
        check_built(world)
        Upkeep(-1, Mishap.DIES_AFTER).run(world)
        Serve().run(world)
        for side in Side:
            check(world, side)
        check_log(world)
        Recall().run(world)


def catch_up(world: World) -> None:
    """Let views that are behind go on as far as they can: a step ends where rows were restated."""
    before: dict[str, int] = {}
    while before != (before := world.running().writer.behind):
        Idle(10**6).run(world)
