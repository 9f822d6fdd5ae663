"""What other people's engines do to our tables, by deltalake."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import deltalake
from deltalake import DeltaTable
from tests.lives.operations import Operation
from tests.lives.world import World

from seamline.lake.storage.delta_table import Table
from seamline.lake.tables.control_table import ControlTable, Desired
from seamline.model.protocol.savepoint import Savepoint

NAMES = {
    "audits": "actor",
    "builds": "run",
    "certificates": "run",
    "claims": "run",
    "comparisons": "view",
    "control": "state",
    "generations": "generation",
    "ledger": "epoch",
    "manifest": "view",
    "master": "_epoch",
    "quarantine": "_epoch",
    "rows": "_epoch",
    "serving": "epoch",
    "slices": "from_epoch",
    "verdicts": "epoch",
}
"""A column by which each table may be ordered; ``rows`` and ``verdicts`` are of records judged again."""
STREAM = ("ledger", "master", "quarantine")
"""Those of which docs/operating.md says that the stream starts anew after ADD COLUMN; it does the others no harm."""


def compact(table: DeltaTable, _: str) -> None:
    """OPTIMIZE."""
    table.optimize.compact()


def ordered(table: DeltaTable, name: str) -> None:
    """OPTIMIZE ... ZORDER BY."""
    table.optimize.z_order([name])


def vacuum(table: DeltaTable, _: str) -> None:
    """VACUUM of what is older than the table keeps."""
    table.vacuum(dry_run=False)


def checkpoint(table: DeltaTable, _: str) -> None:
    """Write a checkpoint."""
    table.create_checkpoint()


def cleaned(table: DeltaTable, _: str) -> None:
    """Let go of old commits."""
    table.create_checkpoint()
    table.cleanup_metadata()


def widened(table: DeltaTable, _: str) -> None:
    """ADD COLUMN."""
    name = f"theirs{len(table.schema().fields)}"
    table.alter.add_columns([deltalake.Field(name, deltalake.schema.PrimitiveType("string"))])


DEEDS: Mapping[str, Callable[[DeltaTable, str], None]] = {
    "compact": compact,
    "z-order": ordered,
    "vacuum": vacuum,
    "checkpoint": checkpoint,
    "clean-up": cleaned,
    "add column": widened,
}
DRAWN = (4, 2, 1, 1, 1, 2)
"""How often each is drawn."""
MILD = ("vacuum", "checkpoint", "clean-up")
"""What changes no file and no row."""


@dataclass(frozen=True)
class Foreign(Operation):
    """Somebody looks after one of our tables in his own way; after that of decisions when there is one.

    ``number`` is of what a person decides before, where nobody has decided anything yet.
    """

    weight = 4
    table: str
    deed: str
    number: int

    @classmethod
    def draw(cls, chance: Random) -> Foreign:
        [deed] = chance.choices([*DEEDS], DRAWN)
        table = chance.choice([*NAMES, "slices", "slices", "slices", "control", "control"])
        return cls(table, deed, chance.randrange(10**6))

    @property
    def switch(self) -> str:  # type: ignore[override]
        """Say what must be on."""
        return "" if self.deed in MILD else f"foreign {self.deed} of {self.table}"

    def run(self, world: World) -> None:
        if self.table == "control" and not (world.wanted or world.named):
            Decide(self.number).run(world)
        for root in places(world, self.table):
            if Table.exists(root):
                DEEDS[self.deed](DeltaTable(str(root)), NAMES[self.table])
                world.widened |= self.deed == "add column" and self.table in STREAM


def places(world: World, table: str) -> list[Path]:
    """Find a table, or one of each view."""
    views = world.pipeline.views
    match table:
        case "slices":
            return [world.layout.slices(view) for view in views]
        case "generations":
            return [world.layout.generations(view) for view in views]
        case "serving":
            return [world.layout.serving(view) for view in views]
        case "rows" | "verdicts":
            return sorted(world.layout.table("records").glob(f"*/{table}"))
    return [world.layout.table(table)]


@dataclass(frozen=True)
class Decide(Operation):
    """A person says what the stream should be doing, or names a position; nothing of it is ever forgotten."""

    number: int

    @classmethod
    def draw(cls, chance: Random) -> Decide:
        return cls(chance.randrange(10**6))

    def run(self, world: World) -> None:
        control, now = ControlTable.ensure(world.layout), datetime.now(UTC)
        name = f"person {self.number}"
        if self.number % 2 or any(each.name == name for each in world.named):
            control.want(Desired.RUNNING, actor=name, reason="so", now=now)
            world.wanted = name
        else:
            control.save(Savepoint(name, world.newest, {}, {}, "", name, "so", now))
            world.named.append(control.read().savepoints[-1])
