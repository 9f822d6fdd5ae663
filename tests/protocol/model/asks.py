"""A model of rows that another system is asked about: a driver, its askers, and the topic of what came of it.

A row is asked about once the master holds its epoch. What came of it is a record of a topic that the same epochs read;
an asker writes it in a transaction of a fixed id, which fences off whoever had opened one before. An attempt at an
epoch may die, an asker at any point. The master may lose its newest epochs, as by a power cut, and goes on in another
line; Kafka may lose records that nobody has read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tests.protocol.model.search import Found, explore
from tests.protocol.model.state import Violation

ANSWER, ERROR, LOST = "answer", "error", "lost"
"""What a record says; a lost one is a hole in the lane."""
AHEAD, KNOWN, OPEN, DONE = "ahead", "known", "open", "done"
"""What a row is to an asker that has nothing about it in its hand: it has seen no epoch of it, and no record or one
(KNOWN); it is to ask; there is nothing to do, and it has forgotten it."""
RUNS, SENT, LANDED = 97, 98, 99
"""Where an asker is after the steps of its start: it has sent a commit, or that has landed and it has not heard yet."""
LINE = 10
"""How far numbers go on in a new line."""

Moves = Iterator[tuple[str, "State"]]


@dataclass(frozen=True)
class Rules:
    """What the processes keep to; each default is the rule.

    Of a start: ``order`` is that of its steps; ``settles``: a fence waits for the older commit that is on its way;
    ``from_e``: the tail begins where the master had read to at E, not where the stream is by then; ``held_only``: rows
    of attempts are not asked about; ``remembers``: what the start knows counts for rows that come later, too;
    ``from_born``: without a position none is passed over; ``mends``: nor by one that is older than a hole.
    Of going on: ``one_line``: an asker ends where the master has another line than it began with; ``one_lane``: and
    where the topic has a hole that it did not know of; ``ends``: and where it does not know what became of its commit.
    Of the position: ``recorded``: it passes rows whose records are committed, not those that were asked about;
    ``gapless``: and none before that are open; ``new_numbers``: a number means one epoch for ever (18).
    Of a decision: ``sees_tail``: a row is asked about again by all its records, not by those that the master holds;
    ``dated``: for an error that was there when it was decided; ``whole``: also where the position has passed.
    Of slices: ``both_ways``: a row has an answer that was read before it, or with it.
    """

    order: tuple[str, ...] = ("fence", "master", "tail")
    settles: bool = True
    from_e: bool = True
    held_only: bool = True
    remembers: bool = True
    from_born: bool = True
    mends: bool = True
    one_line: bool = True
    one_lane: bool = True
    ends: bool = True
    recorded: bool = True
    gapless: bool = True
    new_numbers: bool = True
    sees_tail: bool = True
    dated: bool = True
    whole: bool = True
    both_ways: bool = True


@dataclass(frozen=True)
class Bounds:
    """How far a search goes: what there is, and how often what may befall. Askers and attempts die at any time."""

    rows: int = 2
    takes: int = 2
    """The most records of a lane that an epoch reads."""
    askers: int = 2
    """The most that run at once."""
    errors: bool = True
    stepwise: bool = False
    """Whether an attempt is seen before the master holds its epoch."""
    decisions: int = 0
    losses: int = 0
    """How often the master loses epochs."""
    holes: int = 0
    """How often Kafka loses what the stream has not read of the answers."""


class Epoch(NamedTuple):
    """Where an epoch ends in both lanes, and how often its slices have each row with an answer."""

    number: int
    rows: int
    answers: int
    pairs: tuple[int, ...]


class Record(NamedTuple):
    """What came of a row."""

    row: int
    outcome: str


class Asker(NamedTuple):
    """What an asker knows: ``at`` counts the steps of its start, and is then RUNS, SENT or LANDED.

    ``owns``: nobody has fenced it off. ``seen``: the last epoch that it has looked at, of its ``line``. Until it runs
    it keeps how far the master had ``read`` the answers, and which of them, ``since`` to ``told``, it has read itself.
    ``rows``: what each is to it, an ANSWER or an ERROR in its hand among that.
    """

    at: int = 0
    owns: bool = False
    seen: int = 0
    line: int = 0
    holes: int = 0
    decided: int = 0
    read: int = 0
    since: int = 0
    told: int = 0
    rows: tuple[str, ...] = ()

    @property
    def hand(self) -> tuple[Record, ...]:
        """What it has to write."""
        return tuple(Record(row, each) for row, each in enumerate(self.rows) if each in (ANSWER, ERROR))

    def fenced(self) -> Asker:
        """Return one that is fenced off: what it still asks is lost."""
        if self.at != RUNS:
            return self._replace(owns=False)
        rows = tuple(OPEN if each in (ANSWER, ERROR) else each for each in self.rows)
        return self._replace(owns=False, rows=rows)

    def now(self, row: int, what: str) -> Asker:
        """Let a row be something else to it."""
        return self._replace(rows=(*self.rows[:row], what, *self.rows[row + 1 :]))


class State(NamedTuple):
    """The master, an attempt at its next epoch, the topic of the answers, a commit on its way there, and the askers."""

    log: tuple[Epoch, ...] = ()
    tried: Epoch | None = None
    ever: int = 0
    """How many rows an epoch has ever held."""
    line: int = 0
    topic: tuple[Record, ...] = ()
    flight: tuple[Record, ...] = ()
    holes: int = 0
    decided: int = 0
    """Where the topic ended when it was decided to ask again about rows with errors."""
    decisions: int = 0
    position: tuple[int, int] = (0, 0)
    """The position's file: the holes that were known, and an epoch; 0 is born."""
    askers: tuple[Asker, ...] = ()

    @property
    def end(self) -> Epoch:
        """The last epoch; an empty one before the first."""
        return self.log[-1] if self.log else Epoch(0, 0, 0, ())

    def put(self, old: Asker, *new: Asker) -> State:
        """Replace an asker, or take it away; their places mean nothing."""
        others = list(self.askers)
        others.remove(old)
        return self._replace(askers=tuple(sorted([*others, *new])))


def moves(state: State, bounds: Bounds, rules: Rules) -> Moves:
    """Yield what may happen next; Violation where nothing does by itself and something is left to do."""
    steps = list(goes_on(state, bounds, rules))
    if not steps:
        require_finished(state, bounds)
    yield from steps
    yield from mishaps(state, bounds, rules)


def goes_on(state: State, bounds: Bounds, rules: Rules) -> Moves:
    """Yield what happens by itself, which has an end whatever is taken first."""
    if state.tried:
        yield "the epoch is held", hold(state, state.tried)
    else:
        yield from attempts(state, bounds, rules)
    if not state.askers:
        yield "an asker starts", state._replace(askers=(Asker(),))
    for asker in state.askers:
        if asker.at < len(rules.order):
            yield from begins(state, asker, bounds, rules)
        elif asker.at == RUNS:
            yield from follows(state, asker, rules)
            yield from asks(state, asker, bounds, rules)
        else:
            yield from hears(state, asker)


def attempts(state: State, bounds: Bounds, rules: Rules) -> Moves:
    """Yield attempts at the next epoch: of rows, records of answers, or both."""
    last = state.end
    number = len(state.log) + 1 + (LINE * state.line if rules.new_numbers else 0)
    for rows in range(last.rows, min(last.rows + bounds.takes, bounds.rows) + 1):
        for answers in range(last.answers, min(last.answers + bounds.takes, len(state.topic)) + 1):
            if (rows, answers) != (last.rows, last.answers):
                pairs = pair(state.topic[:answers], last, rows, bounds, rules)
                tried = Epoch(number, rows, answers, pairs)
                name = f"rows to {rows} and answers to {answers} are read"
                yield name, state._replace(tried=tried) if bounds.stepwise else hold(state, tried)


def pair(
    records: tuple[Record, ...], last: Epoch, rows: int, bounds: Bounds, rules: Rules
) -> tuple[int, ...]:
    """Count what an epoch adds to slices: new rows with all records, and old rows with new ones."""
    found = [0] * bounds.rows
    for at, record in enumerate(records):
        new = rules.both_ways and last.rows <= record.row < rows
        old = record.row < last.rows and at >= last.answers
        found[record.row] += record.outcome == ANSWER and (new or old)
    return tuple(found)


def hold(state: State, epoch: Epoch) -> State:
    """Let the master hold an epoch."""
    return state._replace(log=(*state.log, epoch), tried=None, ever=max(state.ever, epoch.rows))


def visible(state: State, rules: Rules) -> tuple[Epoch, ...]:
    """Return the epochs that an asker takes for held."""
    return (*state.log, state.tried) if state.tried and not rules.held_only else state.log


def begins(state: State, asker: Asker, bounds: Bounds, rules: Rules) -> Moves:
    """Yield the next step of a start."""
    step, here = rules.order[asker.at], asker._replace(at=asker.at + 1)
    if step == "fence":
        yield from fences(state, asker, here, rules)
    elif step == "master":
        yield "an asker reads the master", ready(state, asker, looks(state, here, bounds, rules), rules)
    else:
        pinned = rules.from_e and "master" in rules.order[: asker.at]
        here = here._replace(since=asker.read if pinned else state.end.answers, told=len(state.topic))
        yield "an asker reads the tail", ready(state, asker, here, rules)


def fences(state: State, asker: Asker, here: Asker, rules: Rules) -> Moves:
    """Yield what a fence makes of others, and of a commit on its way: it has landed, or never will."""
    here = here._replace(owns=True)
    others = state.put(asker)
    fenced = [each.fenced() for each in others.askers]
    if not state.flight or not rules.settles:
        yield "an asker fences", ready(others._replace(askers=(*fenced, asker)), asker, here, rules)
        return
    heard = [each._replace(at=LANDED) if each.at == SENT else each for each in fenced]
    after = landed(others._replace(askers=(*heard, asker)))
    yield "an asker fences, and a commit has landed", ready(after, asker, here, rules)
    left = [each for each in fenced if each.at != SENT]
    after = others._replace(askers=(*left, asker), flight=())
    yield "an asker fences, and a commit has not landed", ready(after, asker, here, rules)


def looks(state: State, here: Asker, bounds: Bounds, rules: Rules) -> Asker:
    """Return an asker that has read its position, and the master at E."""
    log = visible(state, rules)
    holes, position = state.position
    if rules.mends and holes != state.holes:
        position = 0
    if not rules.from_born and not position:
        position = state.end.number
    last = log[-1] if log else state.end
    passed = max((each.rows for each in log if each.number <= position), default=0)
    rows = (DONE,) * passed + (OPEN,) * (last.rows - passed) + (AHEAD,) * (bounds.rows - last.rows)
    return here._replace(
        seen=last.number,
        line=state.line,
        holes=state.holes,
        decided=state.decided,
        read=state.end.answers,
        rows=rows,
    )


def ready(state: State, asker: Asker, here: Asker, rules: Rules) -> State:
    """Put an asker where a step has led it; after the last one it knows what to do."""
    if here.at == len(rules.order):
        here = judged(state.topic, here, rules)._replace(at=RUNS)
    return state.put(asker, here)


def judged(topic: tuple[Record, ...], asker: Asker, rules: Rules) -> Asker:
    """Return an asker that has compared rows with the records that it has read, and keeps nothing of these."""
    known: list[list[int]] = [[] for _ in asker.rows]
    held: list[list[int]] = [[] for _ in asker.rows]
    for at, record in enumerate(topic):
        if record.outcome != LOST and (at < asker.read or asker.since <= at < asker.told):
            known[record.row].append(at)
            if at < asker.read:
                held[record.row].append(at)
    rows = tuple(
        judge(
            what,
            stands(topic, held[row] if held[row] and not rules.sees_tail else known[row], asker, rules),
            rules,
        )
        for row, what in enumerate(asker.rows)
    )
    return asker._replace(read=0, since=0, told=0, rows=rows)


def stands(topic: tuple[Record, ...], offsets: list[int], asker: Asker, rules: Rules) -> bool | None:
    """Return whether a row with these records is not asked about again; None if there are none."""
    if not offsets:
        return None
    answered = any(topic[at].outcome == ANSWER for at in offsets)
    return answered or not asker.decided or (rules.dated and offsets[-1] >= asker.decided)


def judge(what: str, standing: bool | None, rules: Rules) -> str:
    """Return what a row becomes to an asker that has looked for its records."""
    if what in (AHEAD, KNOWN):
        return KNOWN if standing and rules.remembers else AHEAD
    if standing is None or what in (ANSWER, ERROR):
        return what
    return DONE if standing or (what == DONE and not rules.whole) else OPEN


def follows(state: State, asker: Asker, rules: Rules) -> Moves:
    """Yield what an asker sees in the master, after its start."""
    if (rules.one_line and asker.line != state.line) or (rules.one_lane and asker.holes != state.holes):
        yield "an asker sees another log, and ends", state.put(asker)
        return
    log = visible(state, rules)
    if log and log[-1].number > asker.seen:
        first = max((each.rows for each in log if each.number <= asker.seen), default=0)
        rows = tuple(
            {AHEAD: OPEN, DONE: OPEN, KNOWN: DONE}.get(what, what) if first <= row < log[-1].rows else what
            for row, what in enumerate(asker.rows)
        )
        yield "an asker takes up rows", state.put(asker, asker._replace(seen=log[-1].number, rows=rows))
    if asker.decided < state.decided:
        read, to = state.end.answers, len(state.topic)
        told = asker._replace(decided=state.decided, read=read, since=read, told=to)
        yield "an asker takes up a decision", state.put(asker, judged(state.topic, told, rules))


def asks(state: State, asker: Asker, bounds: Bounds, rules: Rules) -> Moves:
    """Yield the calls of an asker, its commits and its positions."""
    position = (asker.holes, passed(state, asker, rules))
    if position > state.position:
        yield "the position is moved", state._replace(position=position)
    if not asker.owns and "fence" in rules.order:
        if OPEN in asker.rows:
            yield "an asker that is fenced off commits, and ends", state.put(asker)
        return
    for row, what in enumerate(asker.rows):
        if what == OPEN:
            yield f"{row} is answered", state.put(asker, asker.now(row, ANSWER))
            if bounds.errors:
                yield f"{row} ends in an error", state.put(asker, asker.now(row, ERROR))
    if asker.hand and not state.flight:
        yield "an asker commits", state.put(asker, asker._replace(at=SENT))._replace(flight=asker.hand)


def passed(state: State, asker: Asker, rules: Rules) -> int:
    """Return the epoch up to which an asker has nothing to do."""
    open_ = (OPEN, ANSWER, ERROR) if rules.recorded else (OPEN,)
    position = first = 0
    for epoch in state.log:
        if epoch.number > asker.seen:
            break
        if not any(what in open_ for what in asker.rows[first : epoch.rows]):
            position = epoch.number
        elif rules.gapless:
            break
        first = epoch.rows
    return position


def hears(state: State, asker: Asker) -> Moves:
    """Yield what becomes of a commit, and of who has sent it."""
    if asker.at == SENT:
        yield "a commit lands", landed(state.put(asker, asker._replace(at=LANDED)))
    else:
        rows = tuple(DONE if each in (ANSWER, ERROR) else each for each in asker.rows)
        yield "an asker hears that it has landed", state.put(asker, asker._replace(at=RUNS, rows=rows))


def landed(state: State) -> State:
    """Let a commit land; Violation for a row that no epoch has held, and for one that was not to be asked about."""
    for row, _ in state.flight:
        before = [at for at, each in enumerate(state.topic) if each.row == row and each.outcome != LOST]
        if row >= state.ever:
            raise Violation(f"{row} is asked about, and no epoch has held it")
        if any(state.topic[at].outcome == ANSWER for at in before):
            raise Violation(f"{row} has an answer, and gets another record")
        if before and before[-1] >= state.decided:
            raise Violation(f"{row} has an error, and gets another record without a decision")
    return state._replace(topic=(*state.topic, *state.flight), flight=())


def mishaps(state: State, bounds: Bounds, rules: Rules) -> Moves:
    """Yield what may befall, or is decided."""
    if state.tried:
        yield "the attempt dies", state._replace(tried=None)
    if 0 < len(state.askers) < bounds.askers:
        yield "another asker starts", state.put(state.askers[0], state.askers[0], Asker())
    for asker in state.askers:
        yield "an asker dies", state.put(asker)
        if asker.at in (SENT, LANDED):
            yield "a reply is lost", unsure(state, asker, rules)
    if state.flight:
        yield from fails(state)
    for number in (0, *(each.number for each in state.log)):
        if number < state.position[1]:
            yield "the position is an older one", state._replace(position=(state.position[0], number))
    yield from losses(state, bounds)


def unsure(state: State, asker: Asker, rules: Rules) -> State:
    """Return what an asker does that does not know what became of its commit."""
    return state.put(asker) if rules.ends else state.put(asker, asker._replace(at=RUNS))


def fails(state: State) -> Moves:
    """Yield that a commit is refused, and who has sent it knows; or that it lands when he is gone."""
    asker = next((each for each in state.askers if each.at == SENT), None)
    if asker is None:
        yield "a commit lands late", landed(state)
        yield "a commit comes to nothing", state._replace(flight=())
    else:
        yield "a commit is refused", state.put(asker, asker._replace(at=RUNS))._replace(flight=())


def losses(state: State, bounds: Bounds) -> Moves:
    """Yield what the master or the topic loses, and a decision to ask again about rows with errors."""
    if state.line < bounds.losses:
        for kept in range(len(state.log)):
            cut = state._replace(log=state.log[:kept], tried=None, line=state.line + 1)
            yield f"the master is cut to {kept} epochs", cut
    unread = state.topic[state.end.answers :]
    if state.holes < bounds.holes and any(each.outcome != LOST for each in unread):
        gone = tuple(each._replace(outcome=LOST) for each in unread)
        topic = (*state.topic[: state.end.answers], *gone)
        yield "unread answers are lost", state._replace(topic=topic, tried=None, holes=state.holes + 1)
    if state.decisions < bounds.decisions and any(
        each.outcome == ERROR for each in state.topic[state.decided :]
    ):
        yield (
            "it is decided to ask again",
            state._replace(decided=len(state.topic), decisions=state.decisions + 1),
        )


def check(state: State, bounds: Bounds) -> None:
    """Hold slices against what a build makes of the master, and the position against the topic."""
    last = state.end
    built = [0] * bounds.rows
    for row, outcome in state.topic[: last.answers]:
        built[row] += outcome == ANSWER and row < last.rows
    added = [sum(each.pairs[row] for each in state.log) for row in range(bounds.rows)]
    if added != built:
        raise Violation(f"slices have {added}, a build has {built}")
    if max(built, default=0) > 1:
        raise Violation(f"a row is paired twice: {built}")
    first = 0
    for epoch in state.log:
        if any(epoch.pairs[row] for row in range(epoch.rows, bounds.rows)):
            raise Violation(f"a row is paired before its epoch: {epoch}")
        if epoch.number <= state.position[1] and state.position[0] == state.holes:
            require_records(state, range(first, epoch.rows))
        first = epoch.rows


def require_records(state: State, rows: range) -> None:
    """Refuse rows that a position has passed without a record; Violation."""
    there = {each.row for each in state.topic if each.outcome != LOST}
    for row in rows:
        if row not in there:
            raise Violation(f"the position {state.position[1]} has passed {row}, which has no record")


def require_finished(state: State, bounds: Bounds) -> None:
    """Require that each row has a record that stands, and that the stream has read them all; Violation."""
    if (state.end.rows, state.end.answers, state.flight) != (bounds.rows, len(state.topic), ()):
        raise Violation("all stands still, and the stream has not read all")
    for row in range(bounds.rows):
        records = [at for at, each in enumerate(state.topic) if each.row == row and each.outcome != LOST]
        if not records:
            raise Violation(f"all stands still, and {row} has no record")
        if state.topic[records[-1]].outcome == ERROR and records[-1] < state.decided:
            raise Violation(f"all stands still, and {row} was not asked about again")


def search(rules: Rules, bounds: Bounds, *, limit: int = 400_000) -> Found:
    """Visit all that can happen."""
    return explore(
        State(),
        lambda state: moves(state, bounds, rules),
        lambda state: check(state, bounds),
        limit=limit,
    )
