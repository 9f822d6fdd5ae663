"""A rule is fixed, and versions are born beside records that it refused: a small model over the shipped decisions.

Records of two days are read, each accepted by the rule of before or not; the fixed rule takes all. Versions are born
with it and get slices from then on; epochs of before are judged again one by one, and days are built from all that was
judged. At any time the newest epoch may be lost, as by a power cut, and its records are read again. Searched
exhaustively: a day that the new version answers has every record that was read of it, and no version waits for
records that are gone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.protocol.model.search import Found, explore
from tests.protocol.model.state import NOW, Violation
from tests.protocol.shipped import PIPELINE, Stream

from seamline import Rule, Tumbling, View, count
from seamline.lake.read.answer_cache import REMEMBERED
from seamline.lake.read.merged_read import read_merged_answer
from seamline.lake.tables.manifest_table import ManifestTable
from seamline.lake.tables.reprocessed import Reprocessed, raise_floors
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.manifest import Act, Manifest, Statement, fold_statements
from seamline.model.protocol.seam import NOTHING, Status
from seamline.model.time.intervals import Grid
from seamline.plan.batch.reprocessing_plan import (
    Verdict,
    apply_verdicts,
    complete_births,
    last_filled_interval,
    list_open_births,
    list_outdated_epochs,
    plan_raised_floors,
)
from seamline.plan.publish.publication import plan_births

START = datetime(2024, 1, 1, tzinfo=UTC)
GRID = Grid(timedelta(days=1), START)
DAYS = tuple(GRID.of(START + timedelta(days=day)).id for day in range(2))
RECORDS = ((0, True), (1, False), (0, False), (1, True))
"""The day of each record, and whether the rule of before accepts it."""
WRONG, RIGHT = "wrong", "right"
VIEW = "v/new"
MOST = 4
"""Epochs."""
LINE = 10
"""How far numbers go on where epochs were lost: none is used twice."""
MOST_LOST = 1
"""Losses."""


class World(NamedTuple):
    """What is committed, and what was decided of it."""

    version: str = WRONG
    epochs: tuple[tuple[int, str, tuple[int, ...]], ...] = ()
    """Their numbers, the versions that read them, and the records of each."""
    judged: tuple[int, ...] = ()
    """Epochs that were validated again."""
    stated: tuple[Statement, ...] = ()
    lost: int = 0
    """How often an epoch was lost."""

    @property
    def next(self) -> int:
        """Return the number of the next epoch."""
        return max([self.lost * LINE, *(number + 1 for number, _, _ in self.epochs)])

    @property
    def newest(self) -> int:
        """Return E, -1 for none."""
        return self.epochs[-1][0] if self.epochs else NOTHING


@dataclass(frozen=True)
class Rules:
    """What is held to."""

    waits: bool = True
    """A birth knows that records wait to be validated again."""
    whole: bool = True
    """It is stated again when none does."""
    looks: bool = True
    """That is looked at where nothing was validated again, too."""


def manifest_of(world: World) -> Manifest:
    """Add up what was stated."""
    return fold_statements(world.stated, len(world.stated))


def say(world: World, statements: list[Statement]) -> World:
    """Commit statements."""
    seq = len(world.stated)
    return world._replace(stated=(*world.stated, *(replace(each, seq=seq) for each in statements)))


@cache
def epoch(number: int, version: str, records: tuple[int, ...]) -> Epoch:
    """Return an epoch's row."""
    taken = [RECORDS[at][0] for at in records if RECORDS[at][1] or version == RIGHT]
    accepted = {DAYS[day]: taken.count(day) for day in set(taken)}
    refused = {"rule": len(records) - len(taken)} if len(taken) < len(records) else {}
    return Epoch(number, 1, NOW, version, accepted=accepted, refused=refused)


def log_of(world: World) -> list[Epoch]:
    """Return the ledger."""
    return [epoch(*each) for each in world.epochs]


def verdicts(world: World) -> dict[int, Verdict]:
    """Return what the fixed rule says of epochs of before."""
    rows = {each[0]: epoch(each[0], RIGHT, each[2]) for each in world.epochs if each[0] in world.judged}
    return {number: Verdict(number, "a", row.accepted, row.refused) for number, row in rows.items()}


def list_waiting(world: World) -> list[int]:
    """List the epochs that wait to be validated again."""
    return [each.number for each in list_outdated_epochs(log_of(world), RIGHT, world.judged)]


def list_told(world: World, rules: Rules) -> list[Statement]:
    """List what a job of validating again would state."""
    manifest, log = manifest_of(world), log_of(world)
    if not world.judged and not (rules.looks and list_open_births(manifest, [VIEW])):
        return []
    judged = list(apply_verdicts(log, RIGHT, verdicts(world)))
    told = complete_births(manifest, [VIEW], judged if rules.whole else trusted(judged), RIGHT, GRID, now=NOW)
    return [*told, *plan_raised_floors(manifest, [VIEW], verdicts(world), GRID, now=NOW)]


def moves(world: World, rules: Rules) -> Iterator[tuple[str, World]]:
    """Read, lose, mend the rule, judge again, state what is known by then, and build."""
    read, manifest, log = sum(len(each[2]) for each in world.epochs), manifest_of(world), log_of(world)
    if len(world.epochs) < MOST:
        for end in range(read + 1, min(read + 2, len(RECORDS)) + 1):
            made = (world.next, world.version, tuple(range(read, end)))
            yield f"read to {end}", world._replace(epochs=(*world.epochs, made))
    # A cut that was published is synced, and so is what it was built of.
    if world.epochs and world.lost < MOST_LOST and not has_published(world, world.newest):
        left = tuple(each for each in world.judged if each != world.newest)
        yield "lose", world._replace(epochs=world.epochs[:-1], judged=left, lost=world.lost + 1)
    if world.version == WRONG:
        held = world.newest
        known = last_filled_interval(log if rules.waits else trusted(log), RIGHT, GRID, below=held + 1)
        first = plan_births(manifest, {VIEW: ""}, held=held, now=NOW, filled=known)
        yield "fix", say(world._replace(version=RIGHT), first)
        return
    waiting = list_waiting(world)
    for number in waiting:
        yield f"judge {number} again", world._replace(judged=tuple(sorted((*world.judged, number))))
    if told := list_told(world, rules):
        yield "state what is known", say(world, told)
    for day in DAYS if not waiting else ():
        if manifest.floor(VIEW, day) <= world.newest and manifest.cut(VIEW, day) < world.newest:
            built = Statement(Act.PUBLISH, VIEW, world.newest, day, certified=True, at=NOW)
            yield f"build {day[:10]}", say(world, [built])


def has_published(world: World, number: int) -> bool:
    """Return whether a day was built up to an epoch."""
    return any(each.act is Act.PUBLISH and each.epoch >= number for each in world.stated)


def trusted(log: list[Epoch]) -> list[Epoch]:
    """Take what others have judged for judged."""
    return [replace(each, record_version=RIGHT) for each in log]


def check(world: World, rules: Rules) -> None:
    """Hold each day that is answered against the records that were read of it; no birth is open for ever."""
    manifest = manifest_of(world)
    if VIEW not in manifest.births:
        return
    birth = manifest.births[VIEW]
    if list_open_births(manifest, [VIEW]) and not list_waiting(world) and not list_told(world, rules):
        raise Violation("no later day is answered: the birth waits for records that are gone")
    for day, id in enumerate(DAYS):
        if manifest.is_building(VIEW, id):
            continue
        cut, missing = manifest.cut(VIEW, id), []
        for number, _, records in world.epochs:
            there = number <= cut or number >= birth
            missing += [at for at in records if RECORDS[at][0] == day and not there]
        if missing:
            raise Violation(f"{id[:10]} is answered without {missing}")


def search(rules: Rules) -> Found:
    """Visit all that can happen."""
    return explore(World(), lambda world: moves(world, rules), lambda world: check(world, rules))


def test_a_day_that_is_answered_has_every_record_that_was_read() -> None:
    """If this fails, a new version tells less than was read, and nothing says so."""
    found = search(Rules())
    assert not found.violation, str(found)
    assert found.states > 5_000
    assert {"fix", "lose", "state what is known"} <= found.done
    assert any(label.startswith("build") for label in found.done)


@pytest.mark.parametrize("rules", [Rules(waits=False), Rules(whole=False)], ids=["T2-waits", "T2-whole"])
def test_a_rule_that_is_turned_off_is_missed(rules: Rules) -> None:
    """What another version has counted was taken for what there is."""
    found = search(rules)
    assert "is answered without" in found.violation, str(found)


def test_a_birth_that_is_not_looked_at_waits_for_ever() -> None:
    """Where the records that it waits for are lost, nobody validates any again."""
    found = search(Rules(looks=False))
    assert found.violation.endswith("waits for records that are gone"), str(found)


def test_days_without_a_row_of_before_are_answered_once_that_is_known() -> None:
    """They would wait for a build for ever otherwise."""
    world = World(RIGHT, ((0, WRONG, (0,)), (1, RIGHT, (1,))), (0,))
    world = say(world, plan_births(Manifest(), {VIEW: "text"}, held=0, now=NOW))
    manifest = manifest_of(world)
    assert [manifest.is_building(VIEW, day) for day in DAYS] == [True, True]
    log = list(apply_verdicts(log_of(world), RIGHT, verdicts(world)))
    told = complete_births(manifest, [VIEW], log, RIGHT, GRID, now=NOW)
    after = manifest_of(say(world, told))
    assert [after.is_building(VIEW, day) for day in DAYS] == [True, False]
    assert (after.births, after.definitions) == (manifest.births, {VIEW: "text"})
    assert complete_births(after, [VIEW], log, RIGHT, GRID, now=NOW) == []


def test_a_version_that_is_born_again_forgets_what_it_knew() -> None:
    """Its birth is another one, and so are the days with rows of before."""
    birth = Statement(Act.BIRTH, VIEW, 1, DAYS[0], seq=0)
    again = Statement(Act.BIRTH, VIEW, 5, seq=2)
    manifest = fold_statements([birth, Statement(Act.RETIRE, VIEW, seq=1), again], 3)
    assert manifest.is_building(VIEW, DAYS[1])


def test_a_view_that_is_born_beside_a_mended_rule_is_building(tmp_path: Path) -> None:
    """All records were refused by a wrong rule, so that the log had no row below the birth; then it is known."""
    wrong = compile_pipeline(replace(PIPELINE.definition, rules=(Rule("wrong", "id < 0"),)))
    added = View("added", keys=[], window=Tumbling("1 day"), measures={"n": count()})
    fixed = compile_pipeline(replace(PIPELINE.definition, views=(*PIPELINE.definition.views, added)))
    stream = Stream(tmp_path / "home", pipeline=wrong)
    stream.topic = [0, 0, 0]
    stream.epoch(stream.start())
    stream.pipeline = fixed
    writer = stream.start()
    stream.topic += [0, 1]
    stream.epoch(writer)
    [view] = [each for each in fixed.views if each.name == "added"]

    def told() -> list[tuple[Status, list[int]]]:
        REMEMBERED.answers.clear()
        found = read_merged_answer(fixed, view, stream.layout)
        rows = {row["window_start"]: row["n"] for row in found.table.to_pylist()}
        return [
            (each.status, [n for at, n in rows.items() if GRID.of(at).id == id])
            for id, each in sorted(found.intervals.items())
        ]

    assert told() == [(Status.BUILDING, []), (Status.BUILDING, [])]
    first = PIPELINE.grid.of(START).id
    Reprocessed(fixed, stream.layout).commit([], [Verdict(0, "attempt", {first: 3})])
    raise_floors(fixed, stream.layout, list(fixed.views))
    assert told() == [(Status.BUILDING, []), (Status.OPEN, [1])]
    assert ManifestTable.ensure(stream.layout).read().filled[view.id] == first
