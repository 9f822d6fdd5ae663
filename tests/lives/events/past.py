"""Somebody notes what is answered, and asks later what was answered then."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from typing import ClassVar

from tests.lives.operations import Operation
from tests.lives.oracle import Wrong, answered, require_same
from tests.lives.world import Noted, World

from seamline.lake.read.merged_read import read_merged_answer
from seamline.lake.tables.view_versions import add_live_versions
from seamline.model.errors import BadRange
from seamline.model.protocol.read_request import ReadRequest
from seamline.model.protocol.seam import Side


@dataclass(frozen=True)
class Note(Operation):
    """Somebody notes what is answered now."""

    harmless: ClassVar[bool] = True
    side: Side

    @classmethod
    def draw(cls, chance: Random) -> Note:
        return cls(chance.choice([Side.MERGED, Side.MERGED, Side.BATCH, Side.SPEED]))

    def run(self, world: World) -> None:
        if not world.log:
            return
        for view in add_live_versions(world.pipeline, world.layout).views:
            if view.id not in world.stood and view.id in world.state.births:
                found = read_merged_answer(
                    world.pipeline, view, world.layout, ReadRequest(side=self.side, version=view.fingerprint)
                )
                world.noted.append(Noted(datetime.now(UTC), view, self.side, answered(view, found.table)))


@dataclass(frozen=True)
class Recall(Operation):
    """Somebody asks what was answered at the instants that were noted; what can no longer be told is refused."""

    harmless: ClassVar[bool] = True

    def run(self, world: World) -> None:
        for then in world.noted:
            view = then.view
            if view.id in world.stood:
                continue
            with suppress(BadRange):
                found = read_merged_answer(
                    world.pipeline,
                    view,
                    world.layout,
                    ReadRequest(side=then.side, served_at=then.at, version=view.fingerprint),
                )
                if found.until > world.newest:
                    raise Wrong(f"{view.id} as served at {then.at} counts to {found.until}")
                what = f"{view.id}, {then.side}, as served at {then.at:%H:%M:%S.%f}"
                require_same(what, answered(view, found.table), then.rows)
