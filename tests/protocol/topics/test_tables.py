"""A Delta table as a source: a small model of its writers, its cleaning and a driver, over the shipped decisions.

Writers append, rewrite and compact; files are vacuumed and entries of the log cleaned up; a driver reads row by row,
dies, and stops where a version cannot be read, until a person accepts that. Searched exhaustively: each row is read
once, or is in a hole that somebody has accepted, and nobody has to accept a hole in which nothing was lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import NamedTuple

import pytest
from tests.protocol.model.search import Found, explore
from tests.protocol.model.state import NOW, Violation

from seamline.model.protocol.condensed import condense_epochs
from seamline.model.protocol.epoch import Epoch, EpochKind
from seamline.model.protocol.holes import find_gaps, is_ledger_contiguous, list_end_offsets, list_open_holes
from seamline.model.protocol.imported.table_rows import TableRow, find_row
from seamline.model.protocol.offsets import Lane, OffsetRange
from seamline.plan.stream.table_plan import Brought, NextRows, begin_at, find_last_end, find_next_rows

LANE = Lane("table:one", 0)
APPENDS, REWRITES, COMPACTS = "appends", "rewrites", "compacts"
VERSIONS = 4
Row = tuple[int, int]
"""The version that has appended a row, and its number there."""


class World(NamedTuple):
    """What each version did and how many rows it has appended; up to which version files are vacuumed and entries of
    the log are cleaned up; the log; what the driver remembers to have passed, None while none runs."""

    did: tuple[tuple[str, int], ...] = ((APPENDS, 2),)
    vacuumed: int = -1
    cleaned: int = -1
    log: tuple[tuple[EpochKind, OffsetRange], ...] = ()
    passed: tuple[int, int] | None = None

    @property
    def newest(self) -> int:
        """Return the newest version."""
        return len(self.did) - 1

    @property
    def position(self) -> int | None:
        """Return where the lane ends; None where nothing was read."""
        return list_end_offsets(ledger(self.log)).get(LANE)


@dataclass(frozen=True)
class Rules:
    """``marks`` the end of a version that is read; ``stops`` where one cannot be read; ``remembers`` what is passed."""

    marks: bool = True
    stops: bool = True
    remembers: bool = True


@cache
def ledger(log: tuple[tuple[EpochKind, OffsetRange], ...]) -> list[Epoch]:
    """Return the log as the ledger tells it."""
    return [Epoch(at, 1, NOW, "v", kind=kind, ranges=(part,)) for at, (kind, part) in enumerate(log)]


def list_whole_rows(world: World, version: int) -> list[Row]:
    """List the rows that the table has in a version: rewriting takes the first away."""
    rows: list[Row] = []
    for at, (kind, count) in enumerate(world.did[: version + 1]):
        rows = rows[1:] if kind == REWRITES else [*rows, *((at, row) for row in range(count))]
    return rows


def look_at(world: World, version: int, whole: bool) -> Brought:
    """Look at what a version brings, as its entry and its files are now."""
    if whole:
        # A later checkpoint has taken the place of the entries, and compaction that of the files.
        if version <= max(world.cleaned, world.vacuumed) and version < world.newest:
            return Brought(lost="gone")
        return Brought(len(list_whole_rows(world, version)))
    kind, rows = world.did[version]
    if version <= world.cleaned or kind == REWRITES:
        return Brought(lost="gone")
    return Brought(lost="gone") if rows and version <= world.vacuumed else Brought(rows)


def list_read_rows(world: World, part: OffsetRange) -> list[Row]:
    """List the rows that a range of an epoch stands for."""
    first, last = part.rows
    at = find_row(first)
    numbers = range(at.row, at.row + last - first)
    if at.whole:
        rows = list_whole_rows(world, at.version)
        return [rows[number] for number in numbers]
    return [(at.version, number) for number in numbers]


def moves(world: World, rules: Rules) -> Iterator[tuple[str, World]]:
    """Return what may happen next."""
    if len(world.did) < VERSIONS:
        for kind, rows in ((APPENDS, 2), (REWRITES, 0), (COMPACTS, 0)):
            yield f"a version {kind}", world._replace(did=(*world.did, (kind, rows)))
    newest_compaction = max((at for at, (kind, _) in enumerate(world.did) if kind == COMPACTS), default=-1)
    if world.vacuumed < newest_compaction - 1:
        yield "files are vacuumed", world._replace(vacuumed=newest_compaction - 1)
    if world.cleaned < world.newest - 1:
        yield "the log is cleaned up", world._replace(cleaned=world.newest - 1)
    if world.passed is None:
        yield "a driver starts", world._replace(passed=(-1, -1))
    else:
        yield "the driver dies", world._replace(passed=None)
        yield from reads(world, world.passed, rules)


def find_next(world: World, position: int, passed: tuple[int, int], rules: Rules) -> NextRows:
    """Decide as the driver does, with what it remembers."""
    known = passed[1] if rules.remembers and passed[0] == position else -1
    found = find_next_rows(position, world.newest, partial(look_at, world), passed=known)
    if found.version >= 0 and not rules.marks:
        end = find_row(found.end)
        found = replace(found, end=replace(end, done=False).offset)
    if found.lost and not rules.stops:
        found = find_next_rows(found.beginning, world.newest, partial(look_at, world))
        found = replace(found, beginning=position) if found.version >= 0 else found
    return found


def reads(world: World, passed: tuple[int, int], rules: Rules) -> Iterator[tuple[str, World]]:
    """Read a row or all that is next, or stop until a person accepts what is lost."""
    begun = world.position
    position = begin_at(world.newest) if begun is None else begun
    found = find_next(world, position, passed, rules)
    alive = world._replace(passed=(position, found.passed))
    if found.lost:
        if begun is None:
            return
        [gap] = find_gaps(ledger(world.log), {LANE: found.beginning})
        require_loss(world, found, position)
        yield "a hole is accepted", alive._replace(log=(*world.log, (EpochKind.HOLE, gap.range)))
    elif found.version >= 0:
        first = max(position, TableRow(found.version, 0, found.whole).offset)
        last = find_row(found.end)
        whole = TableRow(last.version, last.row, last.whole).offset
        if first + 1 < whole:
            part = OffsetRange(LANE, position, first + 1)
            yield "a row is read", alive._replace(log=(*world.log, (EpochKind.READ, part)))
        part = OffsetRange(LANE, position, found.end)
        yield "a version is read", alive._replace(log=(*world.log, (EpochKind.READ, part)))
    elif alive != world:
        yield "nothing is new", alive


def require_loss(world: World, found: NextRows, position: int) -> None:
    """Refuse to ask a person about versions of which all rows are read, and none was taken away.

    Entries that were cleaned up while nobody looked do not say that they brought nothing.
    """
    lost = range(found.passed + 1, find_row(found.beginning).version)
    read = {row for kind, part in world.log if kind is EpochKind.READ for row in list_read_rows(world, part)}
    at = find_row(position)
    first = list_whole_rows(world, at.version) if at.whole and at.begun else []
    lacking = {*first, *((at, row) for at in lost for row in range(world.did[at][1]))} - read
    rewritten = any(world.did[at][0] == REWRITES for at in lost)
    seen = world.passed and world.passed[0] == position and lost[0] <= world.passed[1]
    unknown = all(at <= world.cleaned and not world.did[at][1] for at in lost) and not seen
    if not (lacking or rewritten or unknown):
        raise Violation(f"a hole without a loss: {lost}")


def check(world: World) -> None:
    """Hold the log against the table."""
    log = ledger(world.log)
    for told in (log, condense_epochs(log)):
        if not is_ledger_contiguous(told):
            raise Violation("the ranges do not join")
    rows = [row for kind, part in world.log if kind is EpochKind.READ for row in list_read_rows(world, part)]
    if len(rows) != len(set(rows)):
        raise Violation(f"read twice: {rows}")
    if sum(len(part) for kind, part in world.log if kind is EpochKind.READ) != len(rows):
        raise Violation("the length of an epoch's range is not the number of its rows")
    if (position := world.position) is None:
        return
    at, begun = find_row(position), find_row(world.log[0][1].start)
    last = at.version - (not at.done or at.whole)
    wanted = {row for row in every_row(world) if begun.version < row[0] <= last}
    if at.done or not at.whole:
        wanted |= {*list_whole_rows(world, begun.version)}
    holes = [hole.ranges[0] for hole in list_open_holes(log)]
    accepted = {
        row
        for part in holes
        for row in wanted
        if find_row(part.start).version <= row[0] < find_row(part.end).version
        or (find_row(part.start).whole and row[0] <= begun.version)
    }
    if lacking := wanted - {*rows} - accepted:
        raise Violation(f"never read: {lacking}")
    end = find_last_end(position, world.newest, partial(look_at, world))
    if end < position:
        raise Violation("all is read before the end")


def every_row(world: World) -> list[Row]:
    """List the rows that were ever appended."""
    return [(at, row) for at, (_, count) in enumerate(world.did) for row in range(count)]


def search(rules: Rules) -> Found:
    """Visit all that can happen to a table of four versions."""
    return explore(World(), lambda world: moves(world, rules), check, limit=2_000_000)


def test_each_row_of_a_table_is_read_once_or_accepted_as_lost() -> None:
    """If this fails, a table that is compacted, vacuumed or rewritten has rows doubled, or lacks some."""
    found = search(Rules())
    assert not found.violation, str(found)
    assert found.states > 1_000, str(found)
    for what in (
        "rewrites",
        "vacuumed",
        "cleaned",
        "a row is read",
        "a version is read",
        "accepted",
        "nothing is new",
    ):
        assert any(what in label for label in found.done), what


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        (Rules(marks=False), "without a loss"),
        (Rules(stops=False), "never read"),
        (Rules(remembers=False), "without a loss"),
    ],
    ids=["marks", "stops", "remembers"],
)
def test_a_rule_of_tables_that_is_turned_off_is_missed(rules: Rules, words: str) -> None:
    """The first draft, whose positions did not say whether a version was done; and one that went on over losses."""
    found = search(rules)
    assert found.violation and words in found.violation, str(found)
