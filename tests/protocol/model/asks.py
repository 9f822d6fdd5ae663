"""A model of rows that another system is asked about: a driver, its askers, and the topic of what came of each row.

A row is asked about once the master holds its epoch. What came of it is a record of a topic that the same epochs read;
an asker writes it in a transaction of a fixed id, which fences off whoever has opened one before. An attempt at an
epoch may die, and an asker at any point. The master may lose its newest epochs, as by a power cut, and Kafka records
that nobody has read; or people let the stream pass over rows or answers that it has not read, which an amending epoch
reads later: another driver goes on, in another line.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tests.protocol.model.search import Found, explore
from tests.protocol.model.state import Violation

ANSWER, ERROR, LOST = "answer", "error", "lost"
"""What a record says; a lost one is a hole in the lane."""
AHEAD, KNOWN, OPEN, DONE, WRITTEN = "ahead", "known", "open", "done", "written"
"""What a row is to an asker that has nothing of it in its hand: it has taken up no epoch of it, and knows of no record
or of one (KNOWN); it is to ask; there is nothing to do, and it has forgotten it; or it has written it while a decision
waits."""
HAND = (ANSWER, ERROR)
RUNS, SENT, LANDED = 97, 98, 99
"""Where an asker is after its start: a commit of it is on its way, or has landed and it has not heard of that yet."""
IDLE, CARRIES = -1, -2
"""Of a decision: none is carried out, or its rows are asked about; else it waits until that offset has been read."""
LINE = 10
"""How far numbers go on in a new line."""

Moves = Iterator[tuple[str, "State"]]


@dataclass(frozen=True)
class Rules:
    """What the processes keep to; each default is the rule.

    Of a start: ``order`` is that of its steps; ``settles``: a fence waits for the older commit that is on its way;
    ``from_e``: the tail begins where the master had read to at E, not where the stream is by then; ``to_end``: it is
    read to its end; ``remembers``: a record that was in the tail counts for rows that come later, too; ``looks_back``:
    and so does one that the master had read before the row; ``amended``: also for rows that were passed over;
    ``held_only``: rows of attempts are not asked about; ``from_born``: where the position is lost, none is passed over.
    Of going on: ``own_driver``: an asker takes up epochs of its own driver alone; ``ends``: it ends where it does not
    know what became of its commit.
    Of the position: ``recorded``: it passes rows whose records are committed, not those that were asked about;
    ``gapless``: and none before that are open; ``new_numbers``: a number means one epoch for ever (18).
    Of a decision: ``waits``: the stream has read first what was written before; ``notes``: rows that are written
    meanwhile are left out; ``taken_up``: all rows that the master holds have been taken up first; ``carried_out``: it
    is done when its rows have records; ``mends``: a hole in the lane of answers goes with one.
    Of what was passed over: ``fills``: it is read after all; ``awaits``: a decision waits for that; ``counts``: a start
    takes it for written.
    Of slices: ``both_ways``: a row has an answer that was read before it, or with it.
    Of a certificate: ``recorded_all``: each row of it has a record that was read.
    """

    order: tuple[str, ...] = ("fence", "master", "tail")
    settles: bool = True
    from_e: bool = True
    to_end: bool = True
    remembers: bool = True
    looks_back: bool = True
    amended: bool = True
    held_only: bool = True
    from_born: bool = True
    own_driver: bool = True
    ends: bool = True
    recorded: bool = True
    gapless: bool = True
    new_numbers: bool = True
    waits: bool = True
    notes: bool = True
    taken_up: bool = True
    carried_out: bool = True
    mends: bool = True
    fills: bool = True
    awaits: bool = True
    counts: bool = True
    both_ways: bool = True
    recorded_all: bool = True


@dataclass(frozen=True)
class Bounds:
    """How far a search goes: what there is, and how often what may befall. Askers and attempts die at any time."""

    rows: int = 2
    askers: int = 2
    """The most that live at once."""
    errors: int = 0
    """The most records of errors."""
    decisions: int = 0
    only_errors: bool = True
    """Whether decisions are about rows with errors alone, or about all without an answer, as one about a hole is."""
    losses: int = 0
    """How often the master loses epochs."""
    holes: int = 0
    """How often Kafka loses what the stream has not read of the answers."""
    skips: int = 0
    """How often the stream passes over that."""
    gaps: int = 0
    """How often it passes over rows."""
    stepwise: bool = False
    """Whether an attempt is seen before the master holds its epoch."""


class Epoch(NamedTuple):
    """Where an epoch ends in both lanes, and how often its slices have each row with an answer.

    Up to there answers are ``passed`` over, and rows ``absent``.
    """

    number: int = 0
    rows: int = 0
    answers: int = 0
    pairs: tuple[int, ...] = ()
    passed: tuple[int, ...] = ()
    absent: tuple[int, ...] = ()

    def holds(self, row: int) -> bool:
        """Return whether the master holds a row up to here."""
        return row < self.rows and row not in self.absent


class Record(NamedTuple):
    """What came of a row."""

    row: int
    outcome: str


class Position(NamedTuple):
    """The epoch up to which all rows have records, 0 for born and -1 for lost; and how many decisions are done."""

    epoch: int = 0
    decided: int = 0


class Asker(NamedTuple):
    """What an asker knows: ``at`` counts the steps of its start, and is then RUNS, SENT or LANDED.

    ``owns``: nobody has fenced it off. ``line`` is its driver's, ``taken`` the last epoch that it has taken up.
    ``until`` says how far it is with a decision. While it starts it keeps how far the master had ``read`` the answers,
    which of them were ``passed`` over, and which it has read itself, ``since`` to ``told``. ``rows``: what each is to
    it.
    """

    at: int = 0
    owns: bool = False
    line: int = 0
    taken: int = 0
    decided: int = 0
    until: int = IDLE
    read: int = 0
    passed: tuple[int, ...] = ()
    since: int = 0
    told: int = 0
    rows: tuple[str, ...] = ()

    def each(self, change: dict[str, str], rows: Container[int]) -> Asker:
        """Let rows that are something to it be something else."""
        found = (change.get(what, what) if row in rows else what for row, what in enumerate(self.rows))
        return self._replace(rows=tuple(found))

    def all(self, change: dict[str, str]) -> Asker:
        """Let whatever is something to it be something else."""
        return self.each(change, range(len(self.rows)))


class State(NamedTuple):
    """The master, an attempt at its next epoch, the topic of the answers, a commit on its way there, and the askers."""

    log: tuple[Epoch, ...] = ()
    tried: Epoch | None = None
    ever: int = 0
    """How many rows an epoch has ever held."""
    topic: tuple[Record, ...] = ()
    flight: tuple[Record, ...] = ()
    line: int = 0
    losses: int = 0
    holes: int = 0
    skips: int = 0
    gaps: int = 0
    decisions: int = 0
    due: tuple[int, ...] = ()
    """Rows that are to get another record, as was decided."""
    certified: int = 0
    """How many rows, the first of them, are in a certificate."""
    position: Position = Position()
    askers: tuple[Asker, ...] = ()

    @property
    def end(self) -> Epoch:
        """The last epoch; an empty one before the first."""
        return self.log[-1] if self.log else Epoch()

    @property
    def passed(self) -> tuple[int, ...]:
        """The offsets of answers that were passed over, and not read since."""
        return self.end.passed

    def put(self, old: Asker, *new: Asker) -> State:
        """Replace an asker, or take it away; their places mean nothing."""
        others = list(self.askers)
        others.remove(old)
        return self._replace(askers=tuple(sorted([*others, *new])))

    def outcomes(self, row: int) -> set[str]:
        """Return what records of a row say; nothing of those that are lost."""
        return {each.outcome for each in self.topic if each.row == row} - {LOST}

    def shown(self, row: int) -> set[str]:
        """Return what those records of a row say that the master has read."""
        return {
            each.outcome
            for at, each in enumerate(self.topic[: self.end.answers])
            if each.row == row and at not in self.passed
        } - {LOST}


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
    answered = all(map(state.shown, range(state.end.rows))) or not rules.recorded_all
    if state.certified < state.end.rows and answered and not state.end.absent:
        yield "the rows are certified", state._replace(certified=state.end.rows)
    if not state.askers:
        yield "an asker starts", state._replace(askers=(Asker(line=state.line),))
    if state.flight and not any(each.at == SENT for each in state.askers):
        yield "a commit lands late", landed(state)
    if not state.tried:
        yield from fills(state, rules)
    for asker in state.askers:
        if asker.line != state.line:
            yield "an asker ends, as its driver has gone", state.put(asker)
        if asker.at < len(rules.order):
            yield from begins(state, asker, bounds, rules)
        elif asker.at == RUNS:
            yield from takes_up(state, asker, rules)
            yield from carries_out(state, asker, bounds, rules)
            yield from asks(state, asker, bounds, rules)
        else:
            yield from hears(state, asker, rules)


def fills(state: State, rules: Rules) -> Moves:
    """Yield that an amending epoch reads what was passed over."""
    if state.passed and rules.fills:
        yield "what was passed over is read", amend(state, rules)
    if state.end.absent:
        yield "rows that were passed over are read", amend_rows(state, rules)


def attempts(state: State, bounds: Bounds, rules: Rules) -> Moves:
    """Yield attempts at the next epoch: of rows, records of answers, or both."""
    last, number = state.end, next_number(state, rules)
    for rows in range(last.rows, bounds.rows + 1):
        for answers in range(last.answers, len(state.topic) + 1):
            if (rows, answers) != (last.rows, last.answers):
                pairs = pair(state, answers, rows, bounds, rules)
                tried = Epoch(number, rows, answers, pairs, last.passed, last.absent)
                name = f"rows to {rows} and answers to {answers} are read"
                yield name, state._replace(tried=tried) if bounds.stepwise else hold(state, tried)


def next_number(state: State, rules: Rules) -> int:
    """Return the number of the next epoch."""
    return len(state.log) + 1 + (LINE * state.line if rules.new_numbers else 0)


def amend(state: State, rules: Rules) -> State:
    """Read what was passed over: old rows with these records."""
    last, pairs = state.end, [0] * len(state.end.pairs)
    for at in state.passed:
        row, outcome = state.topic[at]
        pairs[row] += outcome == ANSWER and last.holds(row)
    number = next_number(state, rules)
    return hold(state, Epoch(number, last.rows, last.answers, tuple(pairs), absent=last.absent))


def amend_rows(state: State, rules: Rules) -> State:
    """Read rows that were passed over, with the answers that were read before."""
    last, pairs = state.end, [0] * len(state.end.pairs)
    for at, (row, outcome) in enumerate(state.topic[: last.answers]):
        pairs[row] += outcome == ANSWER and row in last.absent and at not in last.passed
    return hold(state, Epoch(next_number(state, rules), last.rows, last.answers, tuple(pairs), last.passed))


def pair(state: State, answers: int, rows: int, bounds: Bounds, rules: Rules) -> tuple[int, ...]:
    """Count what an epoch adds to slices: new rows with all records, and old rows with new ones."""
    found, last = [0] * bounds.rows, state.end
    for at, record in enumerate(state.topic[:answers]):
        if at in state.passed:
            continue
        new = rules.both_ways and last.rows <= record.row < rows
        old = last.holds(record.row) and at >= last.answers
        found[record.row] += record.outcome == ANSWER and (new or old)
    return tuple(found)


def hold(state: State, epoch: Epoch) -> State:
    """Let the master hold an epoch; Violation for an answer of a row that is certified, unless it was decided."""
    if any(epoch.pairs[: state.certified]) and not state.decisions:
        raise Violation(f"{state.certified} rows are certified, and {epoch} has an answer of one of them")
    return state._replace(log=(*state.log, epoch), tried=None, ever=max(state.ever, epoch.rows))


def visible(state: State, asker: Asker, rules: Rules) -> tuple[Epoch, ...]:
    """Return the epochs of which an asker has been told, or that it takes for held."""
    log = (*state.log, state.tried) if state.tried and not rules.held_only else state.log
    if asker.line == state.line or not rules.own_driver:
        return log
    return tuple(each for each in log if each.number < LINE * (asker.line + 1))


def arrivals(log: tuple[Epoch, ...], rows: int) -> list[int | None]:
    """Return the number of the epoch by which the master holds each row, None for those that it does not hold."""
    return [next((each.number for each in log if each.holds(row)), None) for row in range(rows)]


def begins(state: State, asker: Asker, bounds: Bounds, rules: Rules) -> Moves:
    """Yield the next step of a start."""
    step, here = rules.order[asker.at], asker._replace(at=asker.at + 1)
    if step == "fence":
        yield from fences(state, asker, here, rules)
    elif step == "master":
        yield "an asker reads the master", ready(state, asker, looks(state, here, bounds, rules), rules)
    else:
        pinned = rules.from_e and "master" in rules.order[: asker.at]
        since = asker.read if pinned else state.end.answers
        for told in [len(state.topic)] if rules.to_end else range(since, len(state.topic) + 1):
            read = here._replace(since=since, told=told)
            yield "an asker reads the tail", ready(state, asker, read, rules)


def fences(state: State, asker: Asker, here: Asker, rules: Rules) -> Moves:
    """Yield what a fence makes of others, and of a commit on its way: it has landed, or never will."""
    here, others = here._replace(owns=True), state.put(asker)
    fenced = [each._replace(owns=False) for each in others.askers]
    # What these still ask is lost, so that it does not matter what came of it.
    fenced = [each.all(dict.fromkeys(HAND, OPEN)) if each.at == RUNS else each for each in fenced]
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
    log, position = visible(state, here, rules), state.position
    if position.epoch < 0 and not rules.from_born:
        position = Position(state.end.number, state.decisions)
    last, came = log[-1] if log else Epoch(), arrivals(log, bounds.rows)
    rows = tuple(AHEAD if at is None else DONE if at <= position.epoch else OPEN for at in came)
    known = here._replace(read=state.end.answers, passed=state.passed)
    return known._replace(taken=last.number, decided=position.decided, rows=rows)


def ready(state: State, asker: Asker, here: Asker, rules: Rules) -> State:
    """Put an asker where a step has led it; after the last one it compares rows with records, and forgets these."""
    if here.at == len(rules.order):
        read = {
            at: each.row
            for at, each in enumerate(state.topic)
            if each.outcome != LOST and at not in here.passed
        }
        tail = {row for at, row in read.items() if here.since <= at < here.told}
        held = {row for at, row in read.items() if at < here.read}
        tail |= {state.topic[at].row for at in here.passed} if rules.counts else set()
        before = (tail if rules.remembers else set()) | (held if rules.looks_back else set())
        before -= set() if rules.amended else {*state.end.absent}
        here = here._replace(at=RUNS, read=0, passed=(), since=0, told=0)
        here = here.each({OPEN: DONE}, tail | held).each({AHEAD: KNOWN}, before)
    return state.put(asker, here)


def takes_up(state: State, asker: Asker, rules: Rules) -> Moves:
    """Yield that an asker takes up the rows of newer epochs; it knows nothing of rows that it is done with."""
    log = visible(state, asker, rules)
    if log and log[-1].number > asker.taken:
        came = arrivals(log, len(asker.rows))
        new = [row for row, at in enumerate(came) if at is not None and at > asker.taken]
        change = {AHEAD: OPEN, DONE: OPEN, KNOWN: DONE}
        taken = asker._replace(taken=log[-1].number).each(change, new)
        yield "an asker takes up rows", state.put(asker, taken)


def carries_out(state: State, asker: Asker, bounds: Bounds, rules: Rules) -> Moves:
    """Yield what an asker does about a decision to ask again."""
    if asker.until == IDLE and asker.decided < state.decisions:
        until = len(state.topic) if rules.waits else 0
        yield "an asker hears of a decision", state.put(asker, asker._replace(until=until))
    elif asker.until == CARRIES and not {OPEN, *HAND} & {*asker.rows}:
        done = asker._replace(until=IDLE, decided=asker.decided + rules.carried_out)
        yield "a decision is done", state.put(asker, done)
    elif state.passed and rules.awaits:
        return
    elif 0 <= asker.until <= state.end.answers and (asker.taken == state.end.number or not rules.taken_up):
        again = asker._replace(until=CARRIES, decided=asker.decided + (not rules.carried_out))
        said = {row: state.shown(row) for row in range(state.end.rows) if state.end.holds(row)}
        rows = {row for row, each in said.items() if ANSWER not in each and (each or not bounds.only_errors)}
        again = again.each(dict.fromkeys((AHEAD, KNOWN, DONE), OPEN), rows).all({WRITTEN: DONE})
        yield "an asker carries out a decision", state.put(asker, again)


def asks(state: State, asker: Asker, bounds: Bounds, rules: Rules) -> Moves:
    """Yield the calls of an asker, its commits and its positions."""
    position = Position(
        max(state.position.epoch, passed(state, asker, rules)), max(state.position.decided, asker.decided)
    )
    if position != state.position:
        yield "the position is moved", state._replace(position=position)
    if not asker.owns and "fence" in rules.order:
        if {OPEN, *HAND} & {*asker.rows}:
            yield "an asker commits, is fenced off, and ends", state.put(asker)
        return
    said = [*state.topic, *state.flight, *(record for each in state.askers for record in hand(each))]
    for row, what in enumerate(asker.rows):
        if what == OPEN:
            yield f"{row} is answered", state.put(asker, asker.each({OPEN: ANSWER}, {row}))
            if sum(each.outcome == ERROR for each in said) < bounds.errors:
                yield f"{row} ends in an error", state.put(asker, asker.each({OPEN: ERROR}, {row}))
    if hand(asker) and not state.flight:
        yield "an asker commits", state.put(asker, asker._replace(at=SENT))._replace(flight=hand(asker))


def hand(asker: Asker) -> tuple[Record, ...]:
    """Return what an asker has to write."""
    return tuple(Record(row, what) for row, what in enumerate(asker.rows) if what in HAND)


def passed(state: State, asker: Asker, rules: Rules) -> int:
    """Return the epoch up to which an asker has nothing to do."""
    waiting = {OPEN, *HAND} if rules.recorded else {OPEN}
    position, came = 0, arrivals(state.log, len(asker.rows))
    for epoch in state.log:
        if epoch.number > asker.taken:
            break
        own = {what for what, at in zip(asker.rows, came, strict=True) if at == epoch.number}
        if not waiting & own:
            position = epoch.number
        elif rules.gapless:
            break
    return position


def hears(state: State, asker: Asker, rules: Rules) -> Moves:
    """Yield what becomes of a commit, and of who has sent it."""
    if asker.at == SENT:
        yield "a commit lands", landed(state.put(asker, asker._replace(at=LANDED)))
    else:
        what = WRITTEN if asker.until >= 0 and rules.notes else DONE
        heard = asker._replace(at=RUNS).all(dict.fromkeys(HAND, what))
        yield "an asker hears that it has landed", state.put(asker, heard)


def landed(state: State) -> State:
    """Let a commit land; Violation for a row that was never held, or was not to be asked about again."""
    for row, _ in state.flight:
        before = state.outcomes(row)
        if row >= state.ever:
            raise Violation(f"{row} is asked about, and no epoch has held it")
        if ANSWER in before:
            raise Violation(f"{row} has an answer, and gets another record")
        if before and not state.decisions:
            raise Violation(f"{row} has a record, and gets another one without a decision")
    due = tuple(row for row in state.due if row not in {each.row for each in state.flight})
    return state._replace(topic=(*state.topic, *state.flight), flight=(), due=due)


def mishaps(state: State, bounds: Bounds, rules: Rules) -> Moves:
    """Yield what may befall, or is decided."""
    if state.tried:
        yield "the attempt dies", state._replace(tried=None)
    if 0 < len(state.askers) < bounds.askers:
        first = state.askers[0]
        yield "another asker starts", state.put(first, first, Asker(line=state.line))
    for asker in state.askers:
        yield "an asker dies", state.put(asker)
        if asker.at in (SENT, LANDED):
            after = () if rules.ends else (asker._replace(at=RUNS),)
            yield "a reply is lost", state.put(asker, *after)
        if asker.at == SENT:
            yield "a commit is refused", state.put(asker, asker._replace(at=RUNS))._replace(flight=())
    if state.flight and not any(each.at == SENT for each in state.askers):
        yield "a commit comes to nothing", state._replace(flight=())
    for number in (-1, *(each.number for each in state.log)):
        if number < state.position.epoch:
            yield (
                "the position is an older one",
                state._replace(position=state.position._replace(epoch=number)),
            )
    if state.position.decided:
        yield "the position is an older one", state._replace(position=state.position._replace(decided=0))
    yield from losses(state, bounds, rules)


def losses(state: State, bounds: Bounds, rules: Rules) -> Moves:
    """Yield what the master or the topic loses, and a decision to ask again."""
    if state.losses < bounds.losses:
        for kept in range(len(state.log)):
            cut = state._replace(log=state.log[:kept], tried=None, losses=state.losses + 1, certified=0)
            due = tuple(row for row in state.due if row < cut.end.rows)
            yield f"the master is cut to {kept} epochs", cut._replace(line=state.line + 1, due=due)
    unread = state.topic[state.end.answers :]
    if state.holes < bounds.holes and any(each.outcome != LOST for each in unread):
        topic = (*state.topic[: state.end.answers], *(each._replace(outcome=LOST) for each in unread))
        hole = state._replace(topic=topic, tried=None, line=state.line + 1, holes=state.holes + 1)
        yield "unread answers are lost", decide(hole, bounds) if rules.mends else hole
    if state.skips < bounds.skips and unread and not state.passed:
        passed = state._replace(tried=None, line=state.line + 1, skips=state.skips + 1)
        over = tuple(range(state.end.answers, len(state.topic)))
        none = (0,) * bounds.rows
        ends = state.end.rows, len(state.topic)
        hole = Epoch(next_number(passed, rules), *ends, none, over, state.end.absent)
        yield "unread answers are passed over", hold(passed, hole)
    if state.gaps < bounds.gaps and state.end.rows < bounds.rows and not state.end.absent:
        passed = state._replace(tried=None, line=state.line + 1, gaps=state.gaps + 1)
        absent = tuple(range(state.end.rows, bounds.rows))
        none = (0,) * bounds.rows
        hole = Epoch(next_number(passed, rules), bounds.rows, state.end.answers, none, state.passed, absent)
        yield "unread rows are passed over", hold(passed, hole)
    if state.decisions < bounds.decisions and decide(state, bounds).due:
        yield "it is decided to ask again", decide(state, bounds)


def decide(state: State, bounds: Bounds) -> State:
    """Decide to ask again about what the master shows to have no answer."""
    shown = {row: state.shown(row) for row in range(state.end.rows) if state.end.holds(row)}
    due = {row for row, said in shown.items() if said or not bounds.only_errors}
    due -= {row for row, outcome in state.topic if outcome == ANSWER}
    return state._replace(decisions=state.decisions + 1, due=tuple(sorted({*state.due, *due})))


def check(state: State, bounds: Bounds) -> None:
    """Hold slices against what a build makes of the master, and the position against the topic; Violation."""
    last, built = state.end, [0] * bounds.rows
    for at, (row, outcome) in enumerate(state.topic[: last.answers]):
        built[row] += outcome == ANSWER and last.holds(row) and at not in state.passed
    added = [sum(each.pairs[row] for each in state.log) for row in range(bounds.rows)]
    if added != built or max(built) > 1:
        raise Violation(f"slices have {added}, a build has {built}")
    told = {each.row for each in state.topic}
    for epoch in state.log:
        if any(pairs and not epoch.holds(row) for row, pairs in enumerate(epoch.pairs)):
            raise Violation(f"a row is paired before its epoch: {epoch}")
    for row, at in enumerate(arrivals(state.log, bounds.rows)):
        if at is not None and at <= state.position.epoch and row not in told:
            raise Violation(f"the position {state.position.epoch} has passed {row}, which has no record")


def require_finished(state: State, bounds: Bounds) -> None:
    """Require that each row has a record, and another where that is due, and that all were read; Violation."""
    end = state.end
    here = end.rows, end.answers, state.flight, end.passed, end.absent
    if here != (bounds.rows, len(state.topic), (), (), ()):
        raise Violation("all stands still, and the stream has not read all")
    for row in range(bounds.rows):
        if row in state.due or not state.outcomes(row):
            raise Violation(f"all stands still, and {row} has not got its record")


def search(rules: Rules, bounds: Bounds, *, limit: int = 200_000) -> Found:
    """Visit all that can happen."""
    return explore(
        State(), lambda state: moves(state, bounds, rules), lambda state: check(state, bounds), limit=limit
    )
