"""What is published: which fingerprint of a view, which generation of each interval, and its floors."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from seamline.model.protocol.seam import NOTHING, Status
from seamline.model.time.intervals import Interval


class Act(StrEnum):
    """What one manifest row states."""

    BIRTH = "birth"
    FLIP = "flip"
    PUBLISH = "publish"
    FLOOR = "floor"
    RETIRE = "retire"
    RELEASE = "release"
    FORGET = "forget"
    WITHDRAW = "withdraw"


class How(StrEnum):
    """How a generation came to be served.

    CERTIFIED: its certificate is green. PROVISIONAL: all of it but the watermark is, and the definition asks for
    that. DESPITE: a person published it whatever its certificate says. ROLLBACK: a person chose it in the place of
    another; its interval is held until that is released or a run that was asked for it publishes another.
    """

    CERTIFIED = "certified"
    PROVISIONAL = "provisional"
    DESPITE = "despite"
    ROLLBACK = "rollback"


@dataclass(frozen=True)
class Statement:
    """One row of the manifest; rows of one commit share ``seq`` and commute."""

    act: Act
    """What it states."""
    view: str
    """The view version, ``name/fingerprint``."""
    epoch: int = NOTHING
    """A birth, a cut or a floor."""
    interval: str = ""
    """The interval's id; of a birth the last one that had rows by then, empty while that is not known."""
    generation: str = ""
    """The generation's id, empty where it is about none."""
    rows: int = 0
    """Rows of the generation."""
    certified: bool = False
    """Whether its certificate is green."""
    definition: str = ""
    """The pipeline's definition as JSON, of a birth."""
    run: str = ""
    """The id of the run that built it."""
    reason: str = ""
    """Why: a person's words, else the build's reason."""
    at: datetime | None = None
    """When, UTC."""
    seq: int = NOTHING
    """The version of the manifest that wrote it."""
    restated: int = 0
    """How many restatements the build of the generation knew."""
    actor: str = ""
    """Who published it, where a person did."""
    how: How = How.CERTIFIED
    """By which right it was published."""

    @property
    def note(self) -> str:
        """Say how a generation came to be served, where not by its certificate alone."""
        who = f" by {self.actor}: {self.reason}" if self.actor else ""
        match self.how:
            case How.PROVISIONAL:
                return "published before it closed"
            case How.DESPITE:
                return f"published despite its certificate{who}"
            case How.ROLLBACK:
                return f"rolled back{'' if self.certified else ', despite its certificate'}{who}"
        return ""


@dataclass(frozen=True)
class Generation:
    """One batch computation of one view's interval: immutable, correct to its cut."""

    id: str
    """Unique for each attempt."""
    view: str
    """The view version, ``name/fingerprint``."""
    interval: Interval
    """The interval."""
    cut: int
    """The last epoch that it has seen."""
    rows: int
    """Rows that its table contains, by which a reader sees that all are there."""
    run: str = ""
    """The id of the run that built it."""
    reason: str = ""
    """Why it was built."""
    restated: int = 0
    """How many restatements its build knew."""


@dataclass(frozen=True)
class Manifest:
    """The state that all statements up to ``version`` add up to. A view is ``name/fingerprint``, an interval its id."""

    version: int = NOTHING
    """The newest version of the table that is in it."""
    births: Mapping[str, int] = field(default_factory=dict)
    """The first epoch of each view version."""
    filled: Mapping[str, str] = field(default_factory=dict)
    """The last interval that had rows when a view version was born, where that is known."""
    definitions: Mapping[str, str] = field(default_factory=dict)
    """The definition, as JSON, of each view version's pipeline."""
    serving: Mapping[str, str] = field(default_factory=dict)
    """The version that serves, by the view's name."""
    published: Mapping[tuple[str, str], Statement] = field(default_factory=dict)
    """The statement that published what is served, by (view, interval)."""
    history: Mapping[tuple[str, str], tuple[Statement, ...]] = field(default_factory=dict)
    """All publications, oldest first, by (view, interval)."""
    floors: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """The epoch up to which slices may be gone, by (view, interval)."""
    retired: frozenset[str] = frozenset()
    """Versions that run no more; a new birth takes one back."""
    held: Mapping[tuple[str, str], Statement] = field(default_factory=dict)
    """Rollbacks that stand, by (view, interval): only a run planned afterwards, and asked for it, may
    publish there."""
    forgotten: frozenset[tuple[str, str, str]] = frozenset()
    """Generations (view, interval, id) that are deleted, or will be."""
    withdrawn: Mapping[tuple[str, str], Statement] = field(default_factory=dict)
    """Intervals whose generation is served no more, without another in its place."""

    @property
    def live(self) -> tuple[str, ...]:
        """The versions that were born and are not retired, in the order of their births."""
        return tuple(view for view in self.births if view not in self.retired)

    def floor(self, view: str, interval: str) -> int:
        """Return the epoch up to which slices of the interval may be gone.

        An interval that had no rows yet when the version was born has lost none.
        """
        birth = self.births.get(view, NOTHING + 1) - 1
        if view in self.filled and interval > self.filled[view]:
            birth = NOTHING
        return max(birth, self.floors.get((view, interval), NOTHING))

    def cut(self, view: str, interval: str) -> int:
        """Return the cut of the published generation; without one the floor."""
        generation = self.published.get((view, interval))
        return generation.epoch if generation else self.floor(view, interval)

    def standing(self, statement: Statement | None, *, news: bool) -> Status:
        """Return what an answer from a publication is worth; ``news``: rows, or decisions, that it does not know."""
        if statement is None:
            return Status.OPEN
        if statement.how is How.PROVISIONAL:
            return Status.PROVISIONAL
        if not statement.certified:
            return Status.UNCERTIFIED
        if self.held.get((statement.view, statement.interval)) == statement:
            return Status.HELD
        return Status.DIRTY if news else Status.CERTIFIED

    def find_published(self, view: str, interval: str) -> Statement | None:
        """Find what is published of a view's interval."""
        return self.published.get((view, interval))

    def hold(self, views: Collection[str], interval: str) -> Statement | None:
        """Return a rollback of the interval of any of the views that stands."""
        return next((self.held[view, interval] for view in views if (view, interval) in self.held), None)

    def is_building(self, view: str, interval: str) -> bool:
        """Return whether the interval cannot be answered yet: its floor is up and no cut reaches it."""
        published, floor = self.published.get((view, interval)), self.floor(view, interval)
        return (published.epoch if published else NOTHING) < floor


@dataclass
class Answering:
    """Which generation answers for each place, while statements are added up."""

    published: dict[tuple[str, str], Statement] = field(default_factory=dict)
    """As in ``Manifest``."""
    history: dict[tuple[str, str], tuple[Statement, ...]] = field(default_factory=dict)
    """As in ``Manifest``."""
    held: dict[tuple[str, str], Statement] = field(default_factory=dict)
    """As in ``Manifest``."""
    withdrawn: dict[tuple[str, str], Statement] = field(default_factory=dict)
    """As in ``Manifest``."""

    def publish(self, place: tuple[str, str], statement: Statement) -> None:
        """Let a generation answer; a rollback holds its interval."""
        self.published[place] = statement
        self.history[place] = (*self.history.get(place, ()), statement)
        self.withdrawn.pop(place, None)
        self.held.pop(place, None)
        if statement.how is How.ROLLBACK:
            self.held[place] = statement

    def withdraw(self, place: tuple[str, str], statement: Statement) -> None:
        """Let a generation answer no more, if it does; a rollback to it holds its interval still."""
        if place in self.published and self.published[place].generation == statement.generation:
            self.published.pop(place)
            self.withdrawn[place] = statement


def as_of(statements: Iterable[Statement], instant: datetime) -> list[Statement]:
    """Keep what was committed by an instant: all up to the first that says it was later."""
    ordered = sorted(statements, key=lambda each: each.seq)
    later = min((each.seq for each in ordered if each.at and each.at > instant), default=None)
    return ordered if later is None else [each for each in ordered if each.seq < later]


def fold_statements(statements: Iterable[Statement], version: int) -> Manifest:
    """Add up statements in the order of their commits."""
    births: dict[str, int] = {}
    filled: dict[str, str] = {}
    definitions: dict[str, str] = {}
    serving: dict[str, str] = {}
    floors: dict[tuple[str, str], int] = {}
    retired: set[str] = set()
    answering = Answering()
    ordered = sorted(statements, key=lambda each: each.seq)
    forgotten = frozenset(
        (each.view, each.interval, each.generation)
        for each in ordered
        if each.act in (Act.FORGET, Act.WITHDRAW)
    )
    for statement in ordered:
        place = (statement.view, statement.interval)
        match statement.act:
            case Act.RETIRE:
                retired.add(statement.view)
            case Act.BIRTH:
                retired.discard(statement.view)
                births[statement.view] = statement.epoch
                definitions[statement.view] = statement.definition
                filled.pop(statement.view, None)
                if statement.interval:
                    filled[statement.view] = statement.interval
            case Act.FLIP:
                serving[statement.view.partition("/")[0]] = statement.view
            case Act.PUBLISH:
                answering.publish(place, statement)
            case Act.WITHDRAW:
                answering.withdraw(place, statement)
            case Act.RELEASE:
                answering.held.pop(place, None)
            case Act.FLOOR:
                floors[place] = max(statement.epoch, floors.get(place, NOTHING))
    return Manifest(
        version,
        births,
        filled,
        definitions,
        serving,
        answering.published,
        answering.history,
        floors,
        frozenset(retired),
        answering.held,
        forgotten,
        answering.withdrawn,
    )
