"""Power cuts: what of the newest commits and files a disk keeps, where nobody had them synced."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from random import Random
from typing import ClassVar

from tests.lives.checks import check
from tests.lives.events.faults import Disk
from tests.lives.events.sending import Send
from tests.lives.events.streaming import Epoch, Serve, fed
from tests.lives.operations import Operation
from tests.lives.world import World

from seamline.lake.storage import log_store
from seamline.model.errors import ProtocolError


class Left(StrEnum):
    """What is left of a file."""

    NOTHING = "nothing"
    EMPTY = "empty"
    CUT = "cut at a line"
    ZEROS = "zeros"
    WHOLE = "whole"


@dataclass(frozen=True)
class PowerCut(Operation):
    """Every process is gone, just after an epoch, and with them what was written last; a plain start makes up for it.

    ``evenly``: all tables lose what was committed since one instant; else each loses a part of that. Somebody
    ``looks`` before the start: what is answered is right, or refused.
    """

    switch: ClassVar[str] = "power cuts"
    weight: ClassVar[int] = 2
    seed: int
    back: int
    evenly: bool
    log: Left
    data: Left
    looks: bool
    sent: Send

    @classmethod
    def draw(cls, chance: Random) -> PowerCut:
        log = chance.choice([Left.NOTHING, Left.EMPTY, Left.EMPTY, Left.CUT, Left.ZEROS])
        data = chance.choice([Left.NOTHING, Left.EMPTY, Left.WHOLE])
        back, evenly = chance.choice([2, 4, 8, 12, 30]), chance.random() < 0.3
        looks, sent = chance.random() < 0.6, Send.draw(chance)
        return cls(chance.randrange(10**6), back, evenly, log, data, looks, sent)

    def run(self, world: World) -> None:
        if not world.layout.warehouse.exists():
            return
        fed(world, self.sent)
        Epoch(3).run(world)
        world.power_off()
        newest = world.fates.disk.commits[-self.back :]
        for entry in lost(world.fates.disk, newest, Random(self.seed), evenly=self.evenly):
            for file in files_of(entry):
                leave(file, self.data)
            leave(entry, self.log)
            world.fates.disk.commits.remove(entry)
        world.moved()
        if self.looks:
            with suppress(ProtocolError):
                check(world)
            # A start may find that more is lost.
            world.seen.clear()
        if world.start().writer.behind:
            Serve(catches_up=True).run(world)


def lost(disk: Disk, newest: Sequence[Path], chance: Random, *, evenly: bool) -> list[Path]:
    """Choose the entries that are lost, of each table the newest ones; what was synced stays."""
    found = []
    for table in sorted({entry.parent for entry in newest}):
        mine = [entry for entry in newest if entry.parent == table]
        count = len(mine) if evenly else chance.choice([0, chance.randint(0, len(mine))])
        for entry in reversed(mine[len(mine) - count :]):
            if disk.keeps(entry):
                break
            found.append(entry)
    return found


def files_of(entry: Path) -> Iterable[Path]:
    """List the data files that a commit adds."""
    try:
        commit = log_store.read_commit(entry.parent.parent, int(entry.stem))
    except ProtocolError:
        return []
    return [entry.parent.parent / str(add["path"]) for add in (commit.adds if commit else ())]


def leave(file: Path, left: Left) -> None:
    """Leave so much of a file, under another number of it, as a disk would after a repair."""
    if not file.exists() or left is Left.WHOLE:
        return
    content = file.read_bytes()
    file.unlink()
    match left:
        case Left.EMPTY:
            file.write_bytes(b"")
        case Left.CUT:
            lines = content.splitlines(keepends=True)
            file.write_bytes(b"".join(lines[: len(lines) // 2]))
        case Left.ZEROS:
            file.write_bytes(bytes(len(content)))
