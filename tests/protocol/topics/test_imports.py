"""Imports of files beside a stream: a small model of people, plans and drivers, over the shipped decisions.

People plan imports of a file that grows by another one, ask for them, and cancel; a driver registers, reads piece by
piece between live epochs, closes what was cancelled, and dies. Searched exhaustively: no row is read twice, every row
of an import that is not cancelled is read, and no interval is taken for complete while rows of it may still come.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from typing import NamedTuple

import pytest
from tests.protocol.model.search import Found, explore
from tests.protocol.model.state import NOW, Violation

from seamline.model.errors import BadRange
from seamline.model.protocol.condensed import condense_epochs
from seamline.model.protocol.epoch import Epoch, EpochKind
from seamline.model.protocol.holes import (
    count_touching_holes,
    is_ledger_contiguous,
    list_end_offsets,
    list_filling_ranges,
    list_open_holes,
)
from seamline.model.protocol.imported.imports import (
    Import,
    find_taken_places,
    list_importable_ranges,
    list_imports_to_register,
    list_open_imports,
    list_ranges_to_close,
)
from seamline.model.protocol.offsets import Lane, OffsetRange
from seamline.model.time.intervals import Interval
from seamline.plan.stream.import_plan import (
    HistoryFile,
    PlannedFile,
    find_file_rows,
    list_taken_rows,
    plan_files,
)

TOPIC = Lane("topic", 0)
ROWS = {"a": 2, "b": 1}
"""Files, and how many rows each has; the second comes later."""
DAY = Interval(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC))
LIVE, IMPORTS = 1, 2


class Asked(NamedTuple):
    """An import as people asked for it: its plan, and whether it is cancelled."""

    id: str
    plan: tuple[PlannedFile, ...]
    cancelled: bool = False


class World(NamedTuple):
    """Files that are there; imports; a plan that is not asked for yet; the log; whether a driver runs, and its look."""

    files: int = 1
    asked: tuple[Asked, ...] = ()
    drafts: tuple[tuple[int, tuple[PlannedFile, ...]], ...] = ()
    log: tuple[tuple[EpochKind, tuple[OffsetRange, ...]], ...] = ()
    driver: tuple[Asked, ...] | None = None


@dataclass(frozen=True)
class Rules:
    """``registers`` before it reads; ``compares`` what was asked for since the plan was made; ``waits`` with a plan
    until what is cancelled is closed; ``counts`` rows that others have taken."""

    registers: bool = True
    compares: bool = True
    waits: bool = True
    counts: bool = True


def imports(asked: tuple[Asked, ...]) -> list[Import]:
    """Return imports as the control table has them."""
    made = []
    for each in asked:
        one = Import(each.id, "orders", "history", each.plan[-1].end, "ada", "years", NOW, bounds=DAY)
        made.append(replace(one, cancelled="ada: no") if each.cancelled else one)
    return made


@cache
def ledger(log: tuple[tuple[EpochKind, tuple[OffsetRange, ...]], ...]) -> list[Epoch]:
    """Return the log as the ledger tells it."""
    return [
        Epoch(at, 1, NOW, "v", kind=kind, ranges=ranges, bounds=DAY if kind is EpochKind.HOLE else None)
        for at, (kind, ranges) in enumerate(log)
    ]


def list_rows(world: World, part: OffsetRange) -> list[tuple[str, int]]:
    """List the rows of files that a range stands for."""
    [plan] = [each.plan for each in world.asked if f"import:{each.id}" == part.lane.topic_id]
    return [
        (each.file.name, row)
        for each in find_file_rows(plan, part.start, part.end)
        for row in range(each.first, each.last)
    ]


def moves(world: World, rules: Rules) -> Iterator[tuple[str, World]]:
    """Return what may happen next."""
    if world.files < len(ROWS):
        yield "a file comes", world._replace(files=world.files + 1)
    if len(world.drafts) + len(world.asked) < IMPORTS:
        yield from plans(world, rules)
    for at, (known, plan) in enumerate(world.drafts):
        rest = world.drafts[:at] + world.drafts[at + 1 :]
        if known != len(world.asked) and rules.compares:
            yield "a plan is out of date", world._replace(drafts=rest)
        else:
            one = Asked(f"i{len(world.asked)}", plan)
            yield "an import is asked for", world._replace(drafts=rest, asked=(*world.asked, one))
    for at, each in enumerate(world.asked):
        if not each.cancelled:
            asked = (*world.asked[:at], each._replace(cancelled=True), *world.asked[at + 1 :])
            yield "an import is cancelled", world._replace(asked=asked)
    if world.driver is None:
        yield "a driver starts", world._replace(driver=world.asked)
    else:
        yield "the driver dies", world._replace(driver=None)
        if world.driver != world.asked:
            yield "the driver looks", world._replace(driver=world.asked)
        yield from reads(world, world.driver, rules)


def plans(world: World, rules: Rules) -> Iterator[tuple[str, World]]:
    """Plan an import of all files, as the control table and the log are now."""
    log = ledger(world.log)
    asked = imports(world.asked)
    if not rules.waits:
        # As if it were closed where the log stands.
        open_ = [(each.lane, part) for each, part in list_ranges_to_close(log, asked)]
        log = [*log, *(Epoch(99, 1, NOW, "v", kind=EpochKind.AMEND, ranges=(part,)) for _, part in open_)]
    try:
        taken = find_taken_places(log, asked)
    except BadRange:
        return
    known = {each.id: each.plan for each in world.asked}
    rows = list_taken_rows(known, taken) if rules.counts else {}
    found = [HistoryFile(name, "m", name, count, 1) for name, count in [*ROWS.items()][: world.files]]
    plan = tuple(plan_files(found, rows))
    require_all_planned(world, found, plan)
    if plan:
        yield "a plan is made", world._replace(drafts=(*world.drafts, (len(world.asked), plan)))


def require_all_planned(world: World, found: list[HistoryFile], plan: tuple[PlannedFile, ...]) -> None:
    """Refuse a plan that leaves out a row which nobody has read, or is about to."""
    log = ledger(world.log)
    parts = [part for each in log if each.kind is EpochKind.IMPORT for part in list_filling_ranges(each)]
    settled = {row for part in parts for row in list_rows(world, part)}
    taken = [each.plan for each in world.asked if not each.cancelled]
    settled |= {
        (each.file.name, row)
        for one in [*taken, plan]
        for each in one
        for row in range(each.first, each.file.rows)
    }
    if lacking := {(file.name, row) for file in found for row in range(file.rows)} - settled:
        raise Violation(f"never read: {lacking}")


def reads(world: World, seen: tuple[Asked, ...], rules: Rules) -> Iterator[tuple[str, World]]:
    """Register, read a piece, close, or read the topic; by the imports that the driver has seen."""
    log, asked = ledger(world.log), imports(seen)
    if waiting := list_imports_to_register(log, asked):
        entry = (EpochKind.HOLE, (waiting[0].range,))
        yield "an import is registered", world._replace(log=(*world.log, entry))
        if not rules.registers:
            parts = [replace(each.range, end=1) for each in waiting]
            yield "a piece is read", world._replace(log=(*world.log, (EpochKind.IMPORT, (parts[0],))))
    for part in list_importable_ranges(log, asked):
        for end in range(part.start + 1, part.end + 1):
            entry = (EpochKind.IMPORT, (replace(part, end=end),))
            yield "a piece is read", world._replace(log=(*world.log, entry))
    for _, part in list_ranges_to_close(log, asked):
        yield "an import is closed", world._replace(log=(*world.log, (EpochKind.AMEND, (part,))))
    if (at := list_end_offsets(log).get(TOPIC, 0)) < LIVE:
        entry = (EpochKind.READ, (OffsetRange(TOPIC, at, at + 1),))
        yield "the topic is read", world._replace(log=(*world.log, entry))


def check(world: World) -> None:
    """Hold the log against the files."""
    log = ledger(world.log)
    for told in (log, condense_epochs(log)):
        if not is_ledger_contiguous(told):
            raise Violation("the ranges do not join")
        if any(lane.imported for lane in list_end_offsets(told)):
            raise Violation("Kafka is asked for a lane of an import")
    if [each.ranges for each in list_open_holes(log)] != [
        each.ranges for each in list_open_holes(condense_epochs(log))
    ]:
        raise Violation("a condensed log tells of other holes")
    parts = [part for each in log if each.kind is EpochKind.IMPORT for part in list_filling_ranges(each)]
    rows = [row for part in parts for row in list_rows(world, part)]
    if len(rows) != len(set(rows)):
        raise Violation(f"read twice: {rows}")
    begun = [part for part in parts if count_touching_holes(list_open_holes(log), DAY) == 0]
    for part in begun:
        [one] = [each for each in world.asked if f"import:{each.id}" == part.lane.topic_id]
        lacking = {*list_rows(world, OffsetRange(part.lane, 0, one.plan[-1].end))} - {*rows}
        if lacking and not one.cancelled:
            raise Violation(f"an interval is complete without {lacking}")
    over = not list_open_imports(log, imports(world.asked)) and not any(
        each.cancelled for each in world.asked
    )
    wanted = {
        (each.file.name, row) for one in world.asked for each in one.plan for row in range(each.file.rows)
    }
    if over and wanted - {*rows}:
        raise Violation(f"never read: {wanted - {*rows}}")


def search(rules: Rules) -> Found:
    """Visit all that can happen to two imports of two files."""
    return explore(World(), lambda world: moves(world, rules), check, limit=2_000_000)


def test_no_row_of_a_file_is_lost_or_read_twice() -> None:
    """If this fails, an import that is asked for twice, killed or cancelled has rows doubled, or lacks some."""
    found = search(Rules())
    assert not found.violation, str(found)
    assert found.states > 1_000, str(found)
    for what in ("is closed", "a file comes", "out of date", "a piece is read", "the topic is read"):
        assert any(what in label for label in found.done), what


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        (Rules(registers=False), "do not join|is complete without"),
        (Rules(compares=False), "read twice"),
        (Rules(waits=False), "read twice"),
        (Rules(counts=False), "read twice"),
    ],
    ids=["registers", "compares", "waits", "counts"],
)
def test_a_rule_of_imports_that_is_turned_off_is_missed(rules: Rules, words: str) -> None:
    """The drafts that read before they said so, and that planned by what was not settled yet."""
    found = search(rules)
    assert found.violation and any(word in found.violation for word in words.split("|")), str(found)
