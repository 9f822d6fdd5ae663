"""The search: every state that the processes can reach, and the shortest way to one that must not be."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from tests.protocol.model import builds, reading, upkeep, writers
from tests.protocol.model.rules import Bounds, Rules
from tests.protocol.model.state import NOW, VIEWS, Book, Slices, State, Violation, Writer, possible

from seamline.model.errors import SeamlineError
from seamline.model.protocol.manifest import Manifest
from seamline.model.protocol.seam import NOTHING
from seamline.plan.publish.publication import plan_births

S = TypeVar("S", bound=Hashable)


@dataclass(frozen=True)
class Found:
    """What a search found: how many states and steps, what was done, and the steps to a violation, if any."""

    states: int
    steps: int
    done: frozenset[str]
    violation: str = ""
    trace: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.violation:
            return f"{self.states} states, {self.steps} steps"
        return "\n".join([*self.trace, f"-> {self.violation}", f"({self.states} states)"])


def explore(
    start: S,
    moves: Callable[[S], Iterator[tuple[str, S]]],
    check: Callable[[S], object],
    *,
    limit: int = 5_000_000,
) -> Found:
    """Visit every reachable state, nearest first, up to the first violation; a bound that is too wide raises.

    ``moves`` gives a label and a state for each step, and may refuse one with Violation, as ``check`` does a state.
    """
    parents: dict[S, tuple[S, str] | None] = {start: None}
    queue = deque([start])
    done: set[str] = set()
    steps = 0
    while queue:
        state = queue.popleft()
        try:
            for label, after in moves(state):
                steps += 1
                done.add(label)
                if after not in parents:
                    parents[after] = (state, label)
                    try:
                        check(after)
                    except Violation:
                        state = after
                        raise
                    queue.append(after)
                    if len(parents) > limit:
                        raise MemoryError(f"more than {limit} states")
        except (Violation, SeamlineError) as problem:
            return Found(len(parents), steps, frozenset(done), str(problem), trace_to(parents, state))
    return Found(len(parents), steps, frozenset(done))


def trace_to(parents: dict[S, tuple[S, str] | None], state: S) -> tuple[str, ...]:
    """List the steps to a state."""
    labels: list[str] = []
    while (came := parents[state]) is not None:
        state, label = came
        labels.append(label)
    return tuple(reversed(labels))


def initial(bounds: Bounds) -> State:
    """Return the state before the first start: the first version of the view is born, and served."""
    book = Book.of(()).plus(plan_births(Manifest(), {VIEWS[0]: ""}, held=NOTHING, now=NOW))
    return State(book, (Slices(),) * bounds.views, (Writer(),) * bounds.writers)


def search(rules: Rules, bounds: Bounds, *, limit: int = 5_000_000) -> Found:
    """Search the protocol under some rules within some bounds."""
    return explore(
        initial(bounds),
        lambda s: protocol_moves(s, rules, bounds),
        lambda s: judge(s, rules, bounds),
        limit=limit,
    )


def canonical(state: State) -> State:
    """Put drivers in the order of their tokens, for their places mean nothing; forget commits that cannot land."""
    state = possible(state)
    ordered = tuple(sorted(state.writers, key=lambda each: each.token))
    return state if ordered == state.writers else state._replace(writers=ordered)


def protocol_moves(state: State, rules: Rules, bounds: Bounds) -> Iterator[tuple[str, State]]:
    """Return what any process may do next, and hold every step against what was claimed before."""
    before = reading.claims_of(state, rules, bounds)
    for process in (writers.moves, upkeep.moves, builds.moves, reading.moves):
        for label, reached in process(state, rules, bounds):
            after = canonical(reached)
            try:
                claims = reading.claims_of(after, rules, bounds)
            except Violation as problem:
                raise Violation(f"{label}: {problem}") from problem
            fell = any(new < old for new, old in zip(claims, before, strict=True))
            if fell and not label.startswith("rollback"):
                raise Violation(f"{label}: answers correct to {before} become {claims}")
            yield label, after


def judge(state: State, rules: Rules, bounds: Bounds) -> None:
    """Check what must hold in every state."""
    reading.sound(state.master.epochs, state.quarantine, bounds)
    reading.kept(state.book, state.master.epochs)
