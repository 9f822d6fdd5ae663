"""Backups: some of the tables come back from one; a start is right or refused, and then a person lets the master be."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import ClassVar

from tests.lives.checks import accepted, check
from tests.lives.events.batching import Build, Clear, Publish, Upkeep, day_of
from tests.lives.events.faults import Mishap
from tests.lives.events.losing import FAR, passed_over
from tests.lives.events.sending import Send
from tests.lives.events.streaming import Epoch, Serve, fed
from tests.lives.operations import Operation
from tests.lives.oracle import NONE, Held, Wrong
from tests.lives.world import Backup, World

from seamline.lake.maintain.repair import find_contradictions
from seamline.lake.publish.publishing import publish_run
from seamline.lake.storage.delta_table import Table
from seamline.lake.tables.control_table import ControlTable
from seamline.lake.tables.reprocessed import Reprocessed
from seamline.model.errors import OffsetGap, OutOfStep, SeamlineError
from seamline.model.protocol.holes import AcceptedGap, Gap
from seamline.plan.maintain.repair_steps import Acceptance
from seamline.supervisor.operations import request_hole_fills
from seamline.supervisor.repairing import repair_pipeline

PLACES: Mapping[str, str] = {
    **{
        name: name
        for name in (
            "audits", "builds", "certificates", "claims", "comparisons", "control", "ledger", "manifest", "master",
            "quarantine",
        )
    },
    "generations": "views/*/*/generations",
    "rows": "records/*/rows",
    "serving": "views/*/serving",
    "slices": "views/*/*/slices",
    "verdicts": "records/*/verdicts",
}  # fmt: skip
"""Where each table is, below a pipeline's folder."""
LACKS = "its table lacks rows"
"""What is said of generations: the stream does not need them, and whoever reads them is refused."""
UNKNOWN = "epochs name"
"""What is said of decisions that the control table has lost, and that slices are made with: it has to come back."""
WITH_THE_STREAM = ("master", "quarantine", "ledger", "slices", "manifest", "control")
MEANWHILE: tuple[Operation | None, ...] = (
    None,
    None,
    Build(-1, ""),
    Publish(0, ""),
    Upkeep(-1, Mishap.DIES_AFTER),
)


@dataclass(frozen=True)
class BackUp(Operation):
    """Somebody copies all tables."""

    switch: ClassVar[str] = "backups"
    harmless: ClassVar[bool] = True

    def run(self, world: World) -> None:
        tables = pipeline_of(world)
        if tables.exists():
            folder = world.folder / "backup"
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(tables, folder)
            world.backup = Backup(
                folder, world.newest, world.wanted, tuple(world.named), tuple(world.restated)
            )


@dataclass(frozen=True)
class BringBack(Operation):
    """Every process ends, and some of the tables, or all of them, come back from the backup.

    It is made where there is none, and an epoch is held where none was since: else nothing is of before. Somebody
    ``looks`` before the start, or does something ``meanwhile``: right, or refused. Where a start is refused a person
    lets the master stand for what there is; that may die ``at`` one of its commits, and is done again.
    """

    switch: ClassVar[str] = "backups"
    weight: ClassVar[int] = 2
    tables: tuple[str, ...]
    boots: bool
    looks: bool
    meanwhile: int
    at: int
    mishap: Mishap
    sent: Send

    @classmethod
    def draw(cls, chance: Random) -> BringBack:
        some = chance.choice([[*PLACES], WITH_THE_STREAM, WITH_THE_STREAM])
        share = chance.choice([0.0, 0.3, 0.6, 1.0])
        first = chance.choice(["master", chance.choice(some)])
        tables = {first, *(name for name in some if chance.random() < share)}
        return cls(
            tuple(sorted(tables)),
            chance.random() < 0.3,
            chance.random() < 0.6,
            chance.randrange(len(MEANWHILE)),
            chance.choice([-1, -1, *range(10)]),
            chance.choice([Mishap.DIES_BEFORE, Mishap.DIES_AFTER]),
            Send.draw(chance),
        )

    def run(self, world: World) -> None:
        if backup := self.back_up(world):
            world.power_off()
            former, decided = world.held, (world.wanted, [*world.named], [*world.restated])
            aside = world.folder / "control aside"
            shutil.copytree(pipeline_of(world) / "control", aside)
            self.bring_back(world, backup)
            if any(UNKNOWN in why for why in contradicted(world)):
                require_refusal(world)
                put_control_back(world, aside)
                world.wanted, world.named, world.restated = decided
            shutil.rmtree(aside)
            self.go_on(world, backup, former)

    def back_up(self, world: World) -> Backup | None:
        """Return the backup, older than an epoch; None before there are tables."""
        if world.backup is None:
            BackUp().run(world)
        if world.backup is not None and world.backup.newest == world.newest:
            fed(world, self.sent)
            Epoch(3).run(world)
        return world.backup

    def go_on(self, world: World, backup: Backup, former: Sequence[Held]) -> None:
        """Look, do something, start, let a person accept what is refused, and be right."""
        if self.looks:
            with suppress(SeamlineError):
                look(world, former)
        if step := MEANWHILE[self.meanwhile]:
            with suppress(SeamlineError):
                step.run(world)
        world.seen.clear()
        told, refused = contradicted(world), refusal(world)
        if refused and not told:
            raise Wrong(f"`seamline repair` knows of nothing, and a start was refused: {refused.message}")
        left = [] if refused else contradicted(world)
        if odd := [why for why in left if LACKS not in why]:
            raise Wrong(f"a start has gone on over {odd}")
        if refused or left:
            world.gone()
            self.accept(world, backup)
            if refused := refusal(world):
                raise Wrong(f"a person has let the master stand, and a start was refused: {refused.message}")
        check(world)
        if world.running().writer.behind:
            Serve(catches_up=True).run(world)
        publish_what_was_built(world)
        if passed_over(world):
            request_hole_fills(world.pipeline, world.layout, None, "a person", "so")

    def bring_back(self, world: World, backup: Backup) -> None:
        """Copy the folders, and forget what only they have told."""
        tables = pipeline_of(world)
        if {*self.tables} == PLACES.keys():
            shutil.rmtree(tables)
            shutil.copytree(backup.folder, tables)
        for root in roots(backup.folder, self.tables):
            target = tables / root.relative_to(backup.folder)
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(root, target)
            commits = world.fates.disk.commits
            commits[:] = [each for each in commits if each.exists() and target not in each.parents]
        world.moves += self.boots
        world.forget()
        if "control" in self.tables:
            world.wanted, world.named, world.restated = backup.wanted, [*backup.named], [*backup.restated]
        if "manifest" in self.tables:
            world.statements = []
        if "master" in self.tables:
            world.look_anew()
        held = {each.epoch for each in world.held}
        world.let_go = {place: only for place, only in world.let_go.items() if place[0] in held}

    def accept(self, world: World, backup: Backup) -> None:
        """Let the master stand for what there is."""
        yes = Acceptance("a person", "it is gone")
        for at in (self.at, -1):
            with world.process(), world.watched():
                if at >= 0:
                    world.fates.ask(self.mishap, at)
                repair_pipeline(world.pipeline, world.layout, yes)
                break
        world.forget()
        if told := contradicted(world, tokens=True):
            raise Wrong(f"a person has let the master stand, and still {told}")
        world.token = max(world.token, ControlTable.ensure(world.layout).given)
        if "quarantine" in self.tables:
            let_go(world, above=backup.newest)
        check(world)


def put_control_back(world: World, aside: Path) -> None:
    """Bring the control table back to what it was, alone."""
    shutil.rmtree(pipeline_of(world) / "control")
    shutil.copytree(aside, pipeline_of(world) / "control")
    world.forget()


def require_refusal(world: World) -> None:
    """Raise Wrong where a start or a person's repair goes on without decisions that rows are made with."""
    refused = refusal(world)
    world.gone()
    with world.process(), suppress(OutOfStep):
        repair_pipeline(world.pipeline, world.layout, Acceptance("a person", "it is gone"))
        refused = None
    if refused is None:
        raise Wrong("a start or a repair has gone on without restatements that epochs name")


def look(world: World, former: Sequence[Held]) -> None:
    """Ask before anybody has started: a generation may have seen more than the master has by now, and answers."""
    held = world.held
    try:
        world.held = [*held, *(each for each in former if each.epoch > world.newest)]
        check(world)
    finally:
        world.held = held


def pipeline_of(world: World) -> Path:
    """Return the folder of all tables."""
    return world.layout.warehouse / world.layout.pipeline


def roots(folder: Path, names: tuple[str, ...]) -> Iterator[Path]:
    """Find tables of some names below a folder."""
    return (root for name in names for root in sorted(folder.glob(PLACES[name])) if Table.exists(root))


def contradicted(world: World, *, tokens: bool = False) -> list[str]:
    """Return what `seamline repair` says; of tokens only if asked for: drivers of a life have theirs from no table."""
    told = find_contradictions(world.layout, [view.id for view in world.pipeline.views])
    return [why for why in told if tokens or not why.startswith("control ")]


def refusal(world: World) -> OutOfStep | None:
    """Start, a person letting go what Kafka has lost since; give why the tables do not let it, if they do not."""
    let_kafka(world, unread=True)
    try:
        try:
            world.start()
        except OffsetGap:
            let_kafka(world)
            world.start()
    except OutOfStep as refused:
        return refused
    return None


def let_kafka(world: World, *, unread: bool = False) -> None:
    """Accept what Kafka has lost of lanes that were read before; or of those of which nothing was."""
    now = datetime.now(UTC)
    gaps = [
        Gap(lane, world.ends[lane], first)
        for lane, first in world.topic.first.items()
        if first > world.ends[lane] and unread is not bool(world.ends[lane])
    ]
    if gaps:
        decisions = [AcceptedGap(gap, "a person", "so", now, day_of(FAR)) for gap in gaps]
        ControlTable.ensure(world.layout).accept(decisions)


def let_go(world: World, *, above: int) -> None:
    """Note which refused records are gone with the quarantine; what had been judged again is still there so."""
    judged = Reprocessed(world.pipeline, world.layout).verdicts()
    for each in world.held:
        place = (each.epoch, each.lane, each.offset)
        if each.epoch > above and place not in world.let_go and not accepted(world, each):
            world.let_go[place] = world.shape.divisor if each.epoch in judged else NONE
    world.look_anew()


def publish_what_was_built(world: World) -> None:
    """Try to publish every run of before, and to go on with one: right, or refused."""
    for run in world.runs:
        with suppress(SeamlineError):
            publish_run(world.pipeline, world.layout, run)
        check(world)
    with suppress(SeamlineError):
        Clear(0, 1, 3, "").run(world)
    world.runs.clear()
    world.jobs.clear()
