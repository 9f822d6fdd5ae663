"""Which records are copies of earlier ones: the stream's flags, what a build counts, and who may be certified."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

import pyarrow.compute as pc
from deltalake import DeltaTable
from tests.lives.oracle import Held, Wrong, is_accepted, named
from tests.lives.records import DAY, START
from tests.lives.topic import NAMES
from tests.lives.world import World

from seamline.model.compile.compiled_pipeline import CompiledView
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.manifest import Manifest
from seamline.model.time.zone_clock import MICROSECOND

Place = tuple[Any, ...]
"""Epoch, lane and offset."""


def place_of(each: Held) -> Place:
    """Return where a record is."""
    return (each.epoch, each.lane, each.offset)


def in_order(world: World) -> list[Held]:
    """List the records that the rules of now accept, in the order in which they were read."""
    return sorted(
        (each for each in world.held if is_accepted(world.shape, each)),
        key=lambda each: (each.epoch, each.lane.partition, each.offset, NAMES[each.lane.topic_id]),
    )


def id_of(world: World, each: Held) -> Place:
    """Return the interval, the source and the event id of a record."""
    assert each.record.row is not None
    return (each.interval, world.shape.source_of(each.lane), each.record.row[world.shape.id])


def counted(world: World) -> list[Held]:
    """List the records that are not flagged as copies."""
    repeated = flagged(world)
    return [each for each in world.held if place_of(each) not in repeated]


def flagged(world: World) -> set[Place]:
    """Work out which records the stream has flagged as copies, or a judging again.

    A stream knows the ids of the rows that it has accepted itself, from ``within`` behind the watermark on. Whether it
    knows one that was judged again meanwhile depends on when it was started: the master says.
    """
    found: set[Place] = set()
    if world.shape.within is None:
        return found
    seen: dict[Place, list[tuple[datetime, bool]]] = {}
    for each in in_order(world):
        epoch, known = world.stated[each.epoch], seen.setdefault(id_of(world, each), [])
        own = epoch.record_version == world.pipeline.record_version
        if is_flagged(world, each, epoch, known) if own else known:
            found.add(place_of(each))
        else:
            known.append((each.record.at, own))
    return found


def is_flagged(world: World, each: Held, epoch: Epoch, known: Iterable[tuple[datetime, bool]]) -> bool:
    """Return whether the stream has flagged a record; what was worked out once stays, whatever is lost since."""
    place = (epoch.committed_at, *place_of(each))
    if place not in world.flagged:
        horizon = horizon_of(world, epoch)
        near = [own for at, own in known if horizon is None or at >= horizon]
        world.flagged[place] = any(near) or (bool(near) and is_said(world, each))
    return world.flagged[place]


def horizon_of(world: World, epoch: Epoch) -> datetime | None:
    """Return from when on an epoch's stream knew ids: by the watermark that an earlier epoch states; None for ever."""
    assert world.shape.within is not None
    before = [world.stated[number] for number in world.epochs if number < epoch.number]
    marks = [each.watermark for each in before if each.clock == epoch.clock and each.watermark]
    return marks[-1] - world.shape.within if marks else None


def is_said(world: World, each: Held) -> bool:
    """Return whether the master has flagged a record."""
    table = DeltaTable(str(world.layout.table("master"))).to_pyarrow_dataset()
    here = (pc.field("_epoch") == each.epoch) & (pc.field("_offset") == each.offset)
    here &= (pc.field("_topic_id") == each.lane.topic_id) & (pc.field("_partition") == each.lane.partition)
    return table.to_table(columns=["_duplicate"], filter=here)["_duplicate"].to_pylist() == [True]


def check_flags(world: World, rows: Iterable[Mapping[str, Any]]) -> None:
    """Raise Wrong where rows of the master, of the record version at hand, are not flagged as they should be."""
    if world.shape.within is None:
        return
    right = {(number, lane.topic_id, lane.partition, at) for number, lane, at in flagged(world)}
    for row in rows:
        place = (row["_epoch"], row["_topic_id"], row["_partition"], row["_offset"])
        if row["_record_version"] == world.pipeline.record_version and row["_duplicate"] is not (
            place in right
        ):
            raise Wrong(f"{place} is flagged {row['_duplicate']}, right is {place in right}")


def copies(world: World, until: int) -> Iterator[Held]:
    """Yield the records up to an epoch that repeat an id and were not flagged."""
    seen: set[Place] = set()
    repeated = flagged(world)
    for each in in_order(world):
        if each.epoch <= until and place_of(each) not in repeated:
            if (id := id_of(world, each)) in seen:
                yield each
            seen.add(id)


def reached(view: CompiledView, each: Held) -> set[str]:
    """Name the days of which a copy is in reach."""
    assert view.join
    spread = [
        each.record.at,
        *(each.record.at - far * MICROSECOND for far in (view.join.lower, view.join.upper)),
    ]
    first, last = ((at - START) // DAY for at in (min(spread), max(spread)))
    return {named(day) for day in range(first, last + 1)}


def held_back(world: World) -> set[str]:
    """Name the days that copies keep from being certified."""
    if world.shape.within is None or any(each.copies for each in world.pipeline.definition.derive):
        return set()
    joined = [view for view in world.pipeline.views if view.join]
    return {id for each in copies(world, world.newest) for view in joined for id in reached(view, each)}


def require_without_copies(world: World, view: CompiledView, manifest: Manifest) -> None:
    """Raise Wrong where a day was certified in which copies of rows are joined, and nobody has allowed it."""
    if (
        not view.join
        or world.shape.within is None
        or any(each.copies for each in world.pipeline.definition.derive)
    ):
        return
    cuts = {id: each.epoch for (of, id), each in manifest.published.items() if of == view.id}
    if not cuts:
        return
    for each in copies(world, max(cuts.values())):
        for id in reached(view, each) & cuts.keys():
            if each.epoch <= cuts[id]:
                raise Wrong(f"{view.id} is certified of {id} at {cuts[id]}, with a copy at {place_of(each)}")
