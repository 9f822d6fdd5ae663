"""People who change the rows of our tables: whoever looks is told, until it is undone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import ClassVar

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from tests.lives.checks import check
from tests.lives.events.batching import Build, Publish, Upkeep
from tests.lives.events.faults import Mishap
from tests.lives.events.foreign import NAMES, places
from tests.lives.events.streaming import Epoch, Serve
from tests.lives.operations import Operation
from tests.lives.world import World

from seamline.lake.storage.delta_table import Table
from seamline.model.errors import ChangedByOthers

MEANWHILE: tuple[Operation, ...] = (
    Epoch(3),
    Serve(),
    Build(-1, ""),
    Publish(0, ""),
    Upkeep(-1, Mishap.DIES_AFTER),
)


@dataclass(frozen=True)
class Meddle(Operation):
    """Somebody restores a table, or deletes its rows; something goes on meanwhile, and then it is undone."""

    weight: ClassVar[int] = 2
    table: str
    back: int
    meanwhile: int

    @classmethod
    def draw(cls, chance: Random) -> Meddle:
        table = chance.choice([*NAMES, "slices", "master", "ledger", "control"])
        return cls(table, chance.choice([0, 1, 2, 5]), chance.randrange(len(MEANWHILE)))

    def run(self, world: World) -> None:
        for root in places(world, self.table):
            if not Table.exists(root):
                continue
            # Also where no file is changed by it the table is not the one that the driver opened.
            world.widened = True
            if before := self.meddled(root):
                try:
                    check(world)
                    MEANWHILE[self.meanwhile].run(world)
                    check(world)
                except ChangedByOthers:
                    world.gone()
                finally:
                    DeltaTable(str(root)).restore(before)
                    world.widened = True

    def meddled(self, root: Path) -> int:
        """Change rows; give the version before, 0 where there were none to change, or where deltalake refuses."""
        table = DeltaTable(str(root))
        before, files = int(table.version()), table.file_uris()
        try:
            if self.back:
                table.restore(max(before - self.back, 0))
            else:
                table.delete()
        except DeltaError:
            return 0
        return before if DeltaTable(str(root)).file_uris() != files else 0
