"""Compare what is answered, and what tables hold that other engines read, with the plain count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from tests.lives.definitions import meets
from tests.lives.flagged import check_flags, counted, held_back, require_without_copies
from tests.lives.oracle import ALL, Claim, Held, Rows, Wrong, answered, named, require_same, same, wanted
from tests.lives.rates import LOOKUP, Rated
from tests.lives.topic import NAMES
from tests.lives.world import World

from seamline.lake.read.merged_read import read_merged_answer
from seamline.lake.storage.delta_table import Table
from seamline.lake.tables.control_table import ControlTable
from seamline.lake.tables.decided import list_restatements
from seamline.lake.tables.manifest_table import ManifestTable
from seamline.lake.tables.reprocessed import Reprocessed
from seamline.lake.tables.view_versions import add_live_versions
from seamline.model.compile.compiled_pipeline import CompiledView
from seamline.model.definition.windows import Global, Tumbling
from seamline.model.protocol.manifest import Manifest, fold_statements
from seamline.model.protocol.read_request import ReadRequest
from seamline.model.protocol.seam import Side


def check(world: World, side: Side = Side.MERGED) -> None:
    """Ask every version of every view, and compare: numbers, claims, and that neither goes back."""
    world.look()
    require_decisions(world)
    if not world.log:
        return
    manifest = decided(world)
    for view in add_live_versions(world.pipeline, world.layout).views:
        if view.id not in manifest.births or view.id in world.stood:
            continue
        found = read_merged_answer(
            world.pipeline, view, world.layout, ReadRequest(side=side, version=view.fingerprint)
        )
        if found.epoch != world.newest:
            raise Wrong(f"{view.id} answers at epoch {found.epoch}, the master was given {world.newest}")
        claims = claimed(world, view, manifest, found.until)
        for id, told in found.intervals.items():
            mine = claims.get(id)
            if side is Side.MERGED and mine and told.complete_to != max(mine.cut, mine.until):
                raise Wrong(f"{view.id} {id} claims {told.complete_to}, it is {mine}")
        if side is Side.MERGED:
            never_back(world, view, claims)
        rows = answered(view, found.table)
        require_without_copies(world, view, manifest)
        right = wanted(
            world.con, world.shape, view, counted(world), claims, side, rated(world, view, manifest)
        )
        if settled(world, view, manifest):
            require_same(f"{view.id}, {side}, until {found.until}", rows, right)


def require_decisions(world: World) -> None:
    """Raise Wrong where the control table has forgotten what people said."""
    if world.wanted or world.named:
        found = ControlTable.ensure(world.layout).read()
        if world.wanted and found.actor != world.wanted:
            raise Wrong(f"control has forgotten {world.wanted}, it says {found.desired} by {found.actor!r}")
        if list(found.savepoints) != world.named:
            raise Wrong(f"control has {len(found.savepoints)} savepoints of {len(world.named)}")
    if world.shape.by and (found := list_restatements(world.layout)) != tuple(world.restated):
        raise Wrong(f"control has {len(found)} restatements of {len(world.restated)}")


def rated(world: World, view: CompiledView, manifest: Manifest) -> Rated | None:
    """Say by which versions rows found rates, and by which decisions they find others now."""
    if not world.shape.by:
        return None
    verdicts = Reprocessed(world.pipeline, world.layout).verdicts()

    def read(number: int) -> tuple[str, int]:
        epoch = world.stated[number]
        if epoch.record_version == world.pipeline.record_version:
            return epoch.lookups[LOOKUP], 0
        verdict = verdicts.get(number)
        return (verdict.lookups[LOOKUP], verdict.restated) if verdict else ("", 0)

    built = {id: each.restated for (of, id), each in manifest.published.items() if of == view.id}
    return Rated(world.tables, read, world.restated, world.named_by, built)


def decided(world: World) -> Manifest:
    """Read the manifest, which forgets nothing that it ever said."""
    table = world.manifest or ManifestTable.ensure(world.layout)
    if table is world.manifest and table.table.version == table.table.refresh().version:
        return world.state
    world.manifest = table
    said = sorted(table.statements(), key=lambda each: (each.seq, each.view, each.interval, each.act))
    if any(each not in said for each in world.statements):
        raise Wrong(f"the manifest has forgotten some of its {len(world.statements)} statements")
    world.statements = said
    world.state = fold_statements(said, table.table.version)
    return world.state


def claimed(world: World, view: CompiledView, manifest: Manifest, until: int) -> dict[str, Claim]:
    """Say for each interval that has records how far a view counts; what is not built to its floor is left out."""
    found = {}
    for id in {each.interval for each in world.held}:
        if not manifest.is_building(view.id, id):
            current = manifest.published.get((view.id, id))
            floor = manifest.floor(view.id, id)
            found[id] = Claim(current.epoch if current else floor, until, floor)
    return found


def never_back(world: World, view: CompiledView, claims: Mapping[str, Claim]) -> None:
    """Raise Wrong where an interval counts less far than it did."""
    for id, claim in claims.items():
        far, place = max(claim.cut, claim.until), f"{view.id} {id}"
        if far < world.seen.get(place, -1):
            raise Wrong(f"{place} counts to {far}, and counted to {world.seen[place]}")
        world.seen[place] = far


def settled(world: World, view: CompiledView, manifest: Manifest) -> bool:
    """Return whether every interval on which a view depends is answered: windows that touch another are left out.

    A day of which the rules have no row any more may have had some, and waits for a build all the same.
    """
    days = {each.interval for each in world.held}
    return not unbuilt(world, view, manifest) and not any(manifest.is_building(view.id, id) for id in days)


def unbuilt(world: World, view: CompiledView, manifest: Manifest) -> list[str]:
    """List the days with rows that are not built to their floor, and those beside them that windows touch."""
    window = view.window
    within = isinstance(window, Global) or (isinstance(window, Tumbling) and not window.offset)
    rows = [(each.day, each.record.row) for each in world.held]
    with_rows = {day for day, row in rows if row is not None and world.shape.takes(row)}
    days = {max(day + more, 0) for day in with_rows for more in ((0,) if within else (-1, 0, 1))}
    return [named(day) for day in sorted(days) if manifest.is_building(view.id, named(day))]


def check_built(world: World) -> None:
    """Raise Wrong where a run that went well has left something to be built that nobody holds back.

    The open day on which every life ends is no exception: no version was born after its first rows, so none waits.
    """
    manifest = decided(world)
    for view in world.pipeline.views:
        left = [id for id in unbuilt(world, view, manifest) if id not in held_back(world)]
        if left and not manifest.held:
            raise Wrong(f"{view.id} is not built in {left}")


def check_serving(world: World) -> None:
    """Compare the serving tables with the plain count, as they are after the stream has refreshed them.

    ChangedByOthers for one that somebody has changed: nothing makes it anew before something was committed.
    """
    manifest = decided(world)
    for view in world.pipeline.views:
        if manifest.serving.get(view.name) != view.id or not Table.exists(world.layout.serving(view)):
            continue
        Table.open(world.layout.serving(view))
        found = read_merged_answer(world.pipeline, view, world.layout, ReadRequest(version=view.fingerprint))
        claims = claimed(world, view, manifest, found.until)
        if settled(world, view, manifest):
            right = wanted(
                world.con, world.shape, view, counted(world), claims, rated=rated(world, view, manifest)
            )
            table = DeltaTable(str(world.layout.serving(view)))
            rows = answered(view, table.to_pyarrow_table())
            require_same(f"serving table of {view.id} at {found.epoch}", rows, right)
            pruned(view, table, right, decimals="exact statistics" in world.on)


def pruned(view: CompiledView, table: DeltaTable, right: Rows, *, decimals: bool) -> None:
    """Ask for rows by the value of a key and of a measure: what statistics leave out, no engine finds."""
    dataset = table.to_pyarrow_dataset()
    names = [key.name for key in view.keys]
    for name in [*names, *(each.name for each in view.measures if plain(each.result, decimals))]:
        values = [key[names.index(name)] if name in names else row[name] for key, row in right.items()]
        for value in {each for each in values if each is not None}:
            found = dataset.to_table(
                columns=[name], filter=pc.field(name) == pa.scalar(value, dataset.schema.field(name).type)
            )
            if found.num_rows != (count := sum(same(each, value) for each in values)):
                raise Wrong(f"{view.id} has {found.num_rows} rows where {name} = {value!r}, right is {count}")


def plain(type: str, decimals: bool) -> bool:
    """Return whether a value of a type can be asked for."""
    return type in ("INT", "BIGINT", "STRING", "DATE") or (decimals and type.startswith("DECIMAL"))


def check_log(world: World) -> None:
    """Compare master and quarantine with what was sent: each record once, in the right one, as it was meant."""
    held = {(NAMES[each.lane.topic_id], each.lane.partition, each.offset): each for each in world.held}
    numbers = set(world.epochs)
    for name, good in (("master", True), ("quarantine", False)):
        if not Table.exists(world.layout.table(name)):
            continue
        rows = DeltaTable(str(world.layout.table(name))).to_pyarrow_table().to_pylist()
        rows = [row for row in rows if row["_epoch"] in numbers]
        found = Counter((row["_topic"], row["_partition"], row["_offset"]) for row in rows)
        right = Counter(
            place for place, each in held.items() if accepted(world, each) is good and each.only == ALL
        )
        if found != right:
            raise Wrong(
                f"{name}: lacks {sorted(right - found)[:5]}, has {sorted(found - right)[:5]} too much"
            )
        if good:
            check_flags(world, rows)
        for row in rows if good else ():
            as_meant(held[row["_topic"], row["_partition"], row["_offset"]], row)


def accepted(world: World, each: Held) -> bool:
    """Return whether a record was to be accepted, by the rule that its epoch went by."""
    row = each.record.row
    return row is not None and meets(world.of[each.epoch], row[world.shape.id])


def as_meant(each: Held, row: Mapping[str, Any]) -> None:
    """Raise Wrong where a row is not what its record means."""
    assert each.record.row is not None
    for name, value in each.record.row.items():
        if not same(row[name], value) and row[name] is not value:
            raise Wrong(f"{each.lane}/{each.offset}: {name} is {row[name]!r}, sent was {value!r}")
