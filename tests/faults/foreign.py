"""What other people's engines do to our tables, by deltalake, and how a pipeline fares after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import deltalake
from deltalake import DeltaTable
from tests.unit.shop import Sale, Shop

from seamline.lake import decisions, pins
from seamline.lake.claims import Claims
from seamline.lake.control import ControlTable, Desired
from seamline.lake.reads import answer
from seamline.lake.upkeep import maintain
from seamline.model.errors import Conflict

HARMLESS, ANEW, WRONG = "harmless", "the stream starts anew", "wrong"


def widened(table: DeltaTable, _: str) -> None:
    """ADD COLUMN."""
    table.alter.add_columns([deltalake.Field("theirs", deltalake.schema.PrimitiveType("string"))])


def cleaned(table: DeltaTable, _: str) -> None:
    """Let go of old commits after a checkpoint."""
    table.create_checkpoint()
    table.cleanup_metadata()


DEEDS: Mapping[str, Callable[[DeltaTable, str], object]] = {
    "OPTIMIZE": lambda table, _: table.optimize.compact(),
    "ZORDER": lambda table, name: table.optimize.z_order([name]),
    "VACUUM": lambda table, _: table.vacuum(dry_run=False),
    "checkpoint": lambda table, _: table.create_checkpoint(),
    "log clean-up": cleaned,
    "ADD COLUMN": widened,
}
TABLES = {
    "master": "_epoch",
    "ledger": "epoch",
    "slices": "from_epoch",
    "generations": "generation",
    "manifest": "view",
    "control": "state",
    "claims": "run",
}
"""Each with a column by which it may be ordered."""


def lived(folder: Path) -> Shop:
    """Make a pipeline with epochs, dead ones among them, a published day, and decisions."""
    shop = Shop(folder)
    control, claims = ControlTable.ensure(shop.layout), Claims.ensure(shop.layout)
    for number in range(3):
        shop.epoch([Sale(number)])
        dead = next(shop.numbers)
        shop.slices.append(shop.partials([Sale(1)]), from_epoch=dead, to_epoch=dead)
        control.want(Desired.RUNNING, actor="ada", reason=str(number), now=Sale(number).at)
        claims.release("none")
    shop.build(0, shop.epoch([Sale(9)]), "g1")
    shop.build(1, shop.epoch([Sale(1500)]), "g2")
    shop.epoch([Sale(11)])
    return shop


def place(shop: Shop, table: str) -> Path:
    """Find a table."""
    match table:
        case "slices":
            return shop.slices.table.root
        case "generations":
            return shop.generations.root
    return shop.layout.table(table)


def seen(shop: Shop) -> tuple[int, str, int]:
    """Read as a new process does: orders, the wish and its reason, and what is claimed."""
    pins._held.clear()
    decisions._newest.clear()
    found = answer(shop.compiled, shop.view, shop.layout)
    state = ControlTable.ensure(shop.layout).read()
    orders = sum(row["orders"] for row in found.table.to_pylist())
    return orders, f"{state.desired} {state.reason}", len(Claims.ensure(shop.layout).read())


def fares(shop: Shop, table: str, deed: str) -> str:
    """Do it, and tell how the pipeline fares: at once, with the next epoch, and after upkeep."""
    before, found = seen(shop), HARMLESS
    DEEDS[deed](DeltaTable(str(place(shop, table))), TABLES[table])
    if seen(shop) != before:
        return WRONG
    try:
        shop.epoch([Sale(12)])
    except Conflict:
        # The writer ends; the next one opens the tables as they are, and the attempt's number is dead.
        for each in (shop.master.table, shop.slices.table, shop.ledger.table):
            each.refresh()
        found = ANEW
        missing = shop.master.missing(max(each.number for each in shop.ledger.epochs()))
        if missing:
            shop.ledger.append(missing)
        else:
            shop.epoch([Sale(12)])
    if seen(shop) != (before[0] + 1, *before[1:]):
        return WRONG
    maintain(shop.compiled, shop.layout)
    return found if seen(shop) == (before[0] + 1, *before[1:]) else WRONG
