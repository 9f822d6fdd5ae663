"""The state of the model: what the tables hold, and where each process is.

Everything is a tuple, so that a state can be kept in a set. Rows are offsets of one lane. The manifest is the shipped
one, folded from the shipped statements.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import ClassVar, NamedTuple

from seamline.model.protocol.manifest import Manifest, Statement, fold_statements
from seamline.model.protocol.seam import NOTHING
from seamline.model.time.intervals import Interval

NOW = datetime(2024, 2, 1, tzinfo=UTC)
DAYS = tuple(Interval(NOW + timedelta(days=day), NOW + timedelta(days=day + 1)) for day in range(3))
VIEWS = ("v/0", "v/1")
MASTER, QUARANTINE, LEDGER, SLICES = "master", "quarantine", "ledger", ("slices/0", "slices/1")


class Violation(Exception):
    """The protocol allows what it must not."""


class Book:
    """A manifest table: statements in the order of their commits. Equal ones are one object."""

    __slots__ = ("manifest", "statements")
    made: ClassVar[dict[tuple[Statement, ...], Book]] = {}

    def __init__(self, statements: tuple[Statement, ...]) -> None:
        self.statements = statements
        self.manifest: Manifest = fold_statements(statements, len(statements) - 1)

    @classmethod
    def of(cls, statements: tuple[Statement, ...]) -> Book:
        """Return the one book of these statements."""
        if statements not in cls.made:
            cls.made[statements] = cls(statements)
        return cls.made[statements]

    def plus(self, statements: Iterable[Statement]) -> Book:
        """Commit statements, all with one number."""
        seq = self.statements[-1].seq + 1 if self.statements else 0
        return Book.of((*self.statements, *(replace(each, seq=seq) for each in statements)))

    def __repr__(self) -> str:
        return "; ".join(
            f"{each.act} {each.view} {each.interval[:10]} {each.generation} {each.epoch}"
            for each in self.statements
        )


class Piece(NamedTuple):
    """Slices of the epochs ``first..last``."""

    first: int
    last: int
    rows: tuple[int, ...]


class Slices(NamedTuple):
    """A slices table: its newest epoch, the end of its newest block of a catch-up, the commits of upkeep."""

    pieces: tuple[Piece, ...] = ()
    token: int = 0
    number: int = NOTHING
    block: int = NOTHING
    upkept: int = 0


class Held(NamedTuple):
    """An epoch of the master: the range ``[start, end)``, W of each view, the version of the look-up."""

    number: int
    start: int
    end: int
    edge: bool
    frontiers: tuple[int, ...]
    lookup: int = 0


class Master(NamedTuple):
    """The master table; ``fences`` are the starts since its newest epoch, where a rule makes them matter."""

    epochs: tuple[Held, ...] = ()
    token: int = 0
    fences: int = 0

    @property
    def number(self) -> int:
        """E."""
        return self.epochs[-1].number if self.epochs else NOTHING

    @property
    def end(self) -> int:
        """The end offset."""
        return self.epochs[-1].end if self.epochs else 0

    def frontier(self, view: int) -> int:
        """W of a view, as the master has it."""
        return self.epochs[-1].frontiers[view] if self.epochs else NOTHING


class Quarantine(NamedTuple):
    """The quarantine: epoch and offsets of each file."""

    files: tuple[tuple[int, tuple[int, ...]], ...] = ()
    token: int = 0
    number: int = NOTHING


class Ledger(NamedTuple):
    """The ledger: the epochs it has rows of."""

    numbers: tuple[int, ...] = ()
    token: int = 0

    @property
    def number(self) -> int:
        """The newest epoch it has."""
        return self.numbers[-1] if self.numbers else NOTHING


class Generation(NamedTuple):
    """A generation's rows in its table."""

    id: str
    view: int
    day: int
    cut: int
    rows: tuple[int, ...]


class Plan(NamedTuple):
    """An attempt at an epoch: the commits still to do, and the views whose slices are there."""

    number: int
    start: int
    end: int
    edge: bool
    todo: tuple[str, ...]
    fine: tuple[int, ...]
    lookup: int = 0
    last: bool = False


class Writer(NamedTuple):
    """A driver; ``number``, ``epoch``, ``end`` and ``frontiers`` are what its handles have seen.

    ``stale`` are the tables in which a commit of its own landed without its knowing: its next there meets it.
    """

    at: str = "off"
    token: int = 0
    step: int = 0
    number: int = NOTHING
    epoch: int = NOTHING
    end: int = 0
    position: int = 0
    frontiers: tuple[int, ...] = ()
    plan: Plan | None = None
    stale: tuple[str, ...] = ()
    edited: bool = False


class Late(NamedTuple):
    """A commit that its driver was told has failed: it lands if nobody commits to the table before, or never."""

    name: str
    token: int
    before: object
    after: object


class Upkeep(NamedTuple):
    """An upkeep: what it has seen of the log, and what it is about to put in the place of what.

    ``told`` are epochs of the ledger that the master does not hold; there should be none.
    """

    at: str = "off"
    epochs: tuple[Held, ...] = ()
    told: tuple[int, ...] = ()
    target: str = ""
    gone: tuple[Piece, ...] = ()
    new: tuple[Piece, ...] = ()
    base: int = 0


class Build(NamedTuple):
    """A build whose generation is committed, and what it saw published before."""

    generation: Generation
    expected: str


class Reader(NamedTuple):
    """A reader between its pins; ``claims`` is what the last answer said it is correct to.

    ``known`` are the epochs that it takes for held.
    """

    step: int = 0
    view: int = 0
    epochs: tuple[Held, ...] = ()
    known: tuple[int, ...] = ()
    pieces: tuple[Piece, ...] = ()
    book: Book | None = None
    generations: tuple[Generation, ...] = ()
    claims: tuple[int, ...] = ()


class Spent(NamedTuple):
    """How often what is bounded has happened."""

    tokens: int = 0
    mishaps: int = 0
    upkeeps: int = 0
    builds: int = 0
    rollbacks: int = 0
    floors: int = 0
    forgets: int = 0
    flips: int = 0
    lookups: int = 0
    reads: int = 0


class State(NamedTuple):
    """All tables and processes."""

    book: Book
    slices: tuple[Slices, ...]
    writers: tuple[Writer, ...]
    master: Master = Master()
    quarantine: Quarantine = Quarantine()
    ledger: Ledger = Ledger()
    generations: tuple[Generation, ...] = ()
    upkeeps: tuple[Upkeep, ...] = ()
    builds: tuple[Build, ...] = ()
    reader: Reader = Reader()
    late: tuple[Late, ...] = ()
    spent: Spent = Spent()


def table(state: State, name: str) -> Master | Quarantine | Ledger | Slices:
    """Return a table by its name."""
    match name:
        case "master":
            return state.master
        case "quarantine":
            return state.quarantine
        case "ledger":
            return state.ledger
    return state.slices[SLICES.index(name)]


def put(state: State, name: str, new: object) -> State:
    """Replace a table."""
    if name in ("master", "quarantine", "ledger"):
        return state._replace(**{name: new})
    at = SLICES.index(name)
    return state._replace(slices=(*state.slices[:at], new, *state.slices[at + 1 :]))  # type: ignore[arg-type]


def possible(state: State) -> State:
    """Leave out the late commits whose version somebody has taken."""
    left = tuple(each for each in state.late if table(state, each.name) == each.before)
    return state if left == state.late else state._replace(late=left)


def told(state: State) -> tuple[int, ...]:
    """List the epochs that only the ledger knows of."""
    held = {each.number for each in state.master.epochs}
    return tuple(number for number in state.ledger.numbers if number not in held)


def looked_back(state: State, looks_back: int | None) -> tuple[int, ...]:
    """List the epochs that a look back over the master's commits finds: all, or of so many commits more than lack."""
    numbers = tuple(each.number for each in state.master.epochs)
    if looks_back is None:
        return numbers
    commits = state.master.number - state.ledger.number + looks_back
    return numbers[len(numbers) - min(max(commits - state.master.fences, 0), len(numbers)) :]


def known(state: State, looks_back: int | None) -> tuple[int, ...]:
    """List the epochs that a reader takes for held."""
    return tuple(sorted({*state.ledger.numbers, *looked_back(state, looks_back)}))


def spend(state: State, what: str) -> State:
    """Count something that is bounded."""
    return state._replace(spent=state.spent._replace(**{what: getattr(state.spent, what) + 1}))
