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
    """One manifest row. ``view`` is ``name/fingerprint``; ``epoch`` is a birth, a cut or a floor.

    The ``interval`` of a birth is the last one that had rows by then; one that did not know it, for records waited to
    be judged again, is stated again once it does. ``definition`` is that of its pipeline.
    ``seq`` is the manifest version that wrote it; rows of one commit share it and commute. ``restated`` is how
    many restatements the build of a generation knew. Of a publication by a person ``actor`` and ``reason`` are
    that person's, else the reason is the build's.
    """

    act: Act
    view: str
    epoch: int = NOTHING
    interval: str = ""
    generation: str = ""
    rows: int = 0
    certified: bool = False
    definition: str = ""
    run: str = ""
    reason: str = ""
    at: datetime | None = None
    seq: int = NOTHING
    restated: int = 0
    actor: str = ""
    how: How = How.CERTIFIED

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
    """One batch computation of one view's interval: immutable, correct to its cut.

    ``rows`` are the rows its table holds, by which a reader sees that it is all there; ``restated`` is how many
    restatements its build knew.
    """

    id: str
    view: str
    interval: Interval
    cut: int
    rows: int
    run: str = ""
    reason: str = ""
    restated: int = 0


@dataclass(frozen=True)
class Manifest:
    """The state that all statements up to ``version`` add up to.

    ``filled`` gives the last interval that had rows when a view version was born, where that is known.
    ``retired`` are the versions that run no more; a new birth takes one back. ``held`` are the rollbacks that
    stand: only a run that was planned after one, and asked for its interval, may publish there.
    ``forgotten`` are generations (view, interval, id) that are deleted, or will be. ``withdrawn`` are the intervals
    whose generation is served no more, without another in its place.
    """

    version: int = NOTHING
    births: Mapping[str, int] = field(default_factory=dict)
    filled: Mapping[str, str] = field(default_factory=dict)
    definitions: Mapping[str, str] = field(default_factory=dict)
    serving: Mapping[str, str] = field(default_factory=dict)
    published: Mapping[tuple[str, str], Statement] = field(default_factory=dict)
    history: Mapping[tuple[str, str], tuple[Statement, ...]] = field(default_factory=dict)
    floors: Mapping[tuple[str, str], int] = field(default_factory=dict)
    retired: frozenset[str] = frozenset()
    held: Mapping[tuple[str, str], Statement] = field(default_factory=dict)
    forgotten: frozenset[tuple[str, str, str]] = frozenset()
    withdrawn: Mapping[tuple[str, str], Statement] = field(default_factory=dict)

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

    def hold(self, views: Collection[str], interval: str) -> Statement | None:
        """Return a rollback of the interval of any of the views that stands."""
        return next((self.held[view, interval] for view in views if (view, interval) in self.held), None)

    def is_building(self, view: str, interval: str) -> bool:
        """Return whether the interval cannot be answered yet: its floor is up and no cut reaches it."""
        return self.cut(view, interval) < self.floor(view, interval) or (
            (view, interval) not in self.published and self.floor(view, interval) > NOTHING
        )


@dataclass
class Answering:
    """Which generation answers for each place, while statements are added up; the fields are those of ``Manifest``."""

    published: dict[tuple[str, str], Statement] = field(default_factory=dict)
    history: dict[tuple[str, str], tuple[Statement, ...]] = field(default_factory=dict)
    held: dict[tuple[str, str], Statement] = field(default_factory=dict)
    withdrawn: dict[tuple[str, str], Statement] = field(default_factory=dict)

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
