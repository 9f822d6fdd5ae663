"""Lives from seeds: drawn, lived, and shrunk to what a failure needs."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.lives.checks import check
from tests.lives.copies import deduplicating
from tests.lives.definitions import Shape, shaped, spread
from tests.lives.derived.dated import dating
from tests.lives.derived.joined import joining, parting
from tests.lives.events import (
    batching,
    cuts,
    foreign,
    losing,
    meddling,
    past,
    restating,
    restoring,
    sending,
    streaming,
)
from tests.lives.events.ending import End
from tests.lives.here import building_in_parts
from tests.lives.operations import Operation
from tests.lives.rates import rating
from tests.lives.switches import ON
from tests.lives.world import World

KINDS: tuple[type[Operation], ...] = (
    sending.Send, sending.SendAgain, sending.Close,
    streaming.Epoch, streaming.Idle, streaming.Kill, streaming.KillAtCommit, streaming.NoAnswer, streaming.OwnMeets,
    streaming.Race, streaming.FailedStart, streaming.Stop, streaming.TakeOver, streaming.Wake, streaming.Redefine,
    streaming.Widen, streaming.Rules, past.Note, past.Recall, losing.Lose, losing.PassOver, losing.Fill,
    streaming.Serve, batching.Build, batching.Publish, batching.Clear, batching.BatchDiesAtCommit, batching.Rollback,
    batching.Flip, batching.Upkeep, batching.Look, cuts.PowerCut, foreign.Foreign, foreign.Decide, meddling.Meddle,
    restoring.BackUp, restoring.BringBack,
)  # fmt: skip
THEMES: tuple[tuple[type[Operation], ...], ...] = (
    (
        streaming.Kill, streaming.KillAtCommit, streaming.NoAnswer, streaming.OwnMeets, streaming.Race,
        streaming.FailedStart, streaming.TakeOver, streaming.Wake,
    ),
    (restoring.BackUp, restoring.BringBack, cuts.PowerCut),
    (
        batching.Build, batching.Publish, batching.Clear, batching.BatchDiesAtCommit, batching.Rollback,
        batching.Flip, batching.Upkeep,
    ),
    (foreign.Foreign, foreign.Decide, meddling.Meddle),
    (streaming.Redefine, streaming.Widen, streaming.Rules, losing.Lose, losing.PassOver, losing.Fill),
)  # fmt: skip
"""What goes wrong where two rare things meet shows in a life that is full of their kind; seeds take turns in them."""
LEAN = 0.25
"""The share of a life's operations that is drawn from its theme; the rest is drawn from all."""
LENGTH = 40
Step = tuple[int, Operation]


@dataclass(frozen=True)
class Life:
    """A definition and what happens, by number; those that are switched off are left out."""

    seed: int
    shape: Shape
    steps: tuple[tuple[int, Operation], ...]
    on: frozenset[str] = frozenset()

    def only(self, kept: Collection[int]) -> Life:
        """Keep some of what happens."""
        return Life(self.seed, self.shape, tuple(step for step in self.steps if step[0] in kept), self.on)


@dataclass(frozen=True)
class Failure:
    """How a life went wrong: at which step, and what was said."""

    step: Operation
    error: BaseException

    def __str__(self) -> str:
        said = str(self.error).splitlines() or [""]
        return f"{self.step}: {type(self.error).__name__}: {said[0]}"


@dataclass
class Tally:
    """How many lives were lived, how many operations, and how many different ones."""

    lives: int = 0
    operations: int = 0
    distinct: set[str] = field(default_factory=set)
    kinds: set[str] = field(default_factory=set)
    began: float = field(default_factory=time.monotonic)

    def add(self, life: Life) -> None:
        """Count a life."""
        self.lives += 1
        self.operations += len(life.steps)
        self.distinct |= {repr(step) for _, step in life.steps}
        self.kinds |= {type(step).__name__ for _, step in life.steps}

    def __str__(self) -> str:
        seconds = time.monotonic() - self.began
        return (
            f"{self.lives} lives, {self.operations} operations, {len(self.distinct)} of them distinct, "
            f"of {len(self.kinds)} kinds, in {seconds:.1f} s"
        )


def revision() -> str:
    """Name the revision of the code that is lived with."""
    asked = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(
        asked, capture_output=True, text=True, check=False, cwd=Path(__file__).parent
    ).stdout.strip()


CHANGES: Mapping[str, Callable[[Shape, int], Shape]] = {
    "joins": joining,
    "copies": deduplicating,
    "topics": spread,
    "sources": parting,
    "rates": rating,
    "versions": dating,
}
"""What makes other definitions of those that were drawn first, in this order, by switch."""


def drawn(seed: int, on: Collection[str], *, length: int = LENGTH) -> Life:
    """Draw a life; what a switch leaves out leaves the rest as it is."""
    shape = shaped(Random(f"{seed}"), on=on)
    for switch, change in CHANGES.items():
        if switch in on:
            shape = change(shape, seed)
    theme = THEMES[seed % len(THEMES)]
    steps: list[Step] = []
    for at in range(length):
        chance = Random(f"{seed}/{at}")
        kinds = theme if chance.random() < LEAN else KINDS
        [kind] = chance.choices(kinds, [each.weight for each in kinds])
        step = kind.draw(chance)
        if not step.switch or step.switch in on:
            steps.append((at, step))
    if shape.by:
        steps = with_restatements(steps, seed, length)
    if shape.within:
        steps = with_copies(steps, seed, length)
    return Life(seed, shape, tuple(steps), frozenset(on))


def with_restatements(steps: Sequence[Step], seed: int, length: int) -> list[Step]:
    """Let the table of a look-up be corrected now and then; the other steps keep their numbers."""
    chance = Random(f"{seed}/restated")
    found = [*steps]
    for number in range(chance.randint(2, 6)):
        [kind] = chance.choices(restating.KINDS, [each.weight for each in restating.KINDS])
        found.insert(chance.randint(0, len(found)), (length + number, kind.draw(chance)))
    return found


def with_copies(steps: Sequence[Step], seed: int, length: int) -> list[Step]:
    """Let copies of records come now and then; the other steps keep their numbers."""
    chance = Random(f"{seed}/copied")
    found = [*steps]
    for number in range(chance.randint(4, 9)):
        step = sending.SendCopies.draw(chance)
        found.insert(chance.randint(0, len(found)), (2 * length + number, step))
    return found


def lived(life: Life) -> Failure | None:
    """Live a life; give how it went wrong, if it did."""
    step: Operation = End()
    # Of four lives two build in the way of small builds, one in that of large ones, one in that of many duplicates.
    kind = Random(f"{life.seed}/way").randrange(4)
    way = building_in_parts(whole=kind == 0) if kind < 2 else nullcontext()
    with World(life.shape, life.on) as world, way:
        try:
            for _, step in life.steps:
                step.run(world)
                if not step.harmless:
                    check(world)
            step = End()
            step.run(world)
        except Exception as error:  # noqa: BLE001 - whatever it is, it was not to be
            return Failure(step, error)
    return None


def shrunk(life: Life, failure: Failure, *, until: float) -> tuple[Life, Failure]:
    """Leave out what a failure does not need: by halves, by quarters, and so on, as long as time is left."""
    size = max(len(life.steps) // 2, 1)
    while size:
        for part in list(parts(life.steps, size)):
            if time.monotonic() > until:
                return life, failure
            fewer = life.only({at for at, _ in life.steps} - {at for at, _ in part})
            if len(fewer.steps) < len(life.steps) and (found := lived(fewer)) and alike(found, failure):
                life, failure = fewer, found
        size //= 2
    return life, failure


def parts(steps: Sequence[tuple[int, Operation]], size: int) -> Iterator[Sequence[tuple[int, Operation]]]:
    """Cut steps into runs, the last first: what comes after a failure's cause is of no use to it."""
    for start in reversed(range(0, len(steps), size)):
        yield steps[start : start + size]


def alike(one: Failure, other: Failure) -> bool:
    """Return whether two lives went wrong in the same way, by and large."""
    return type(one.error) is type(other.error)


def told(life: Life, failure: Failure) -> str:
    """Say how a life went wrong, and how to live it again."""
    switches = "".join(f" --on '{each}'" for each in sorted(life.on - ON))
    switches += "".join(f" --off '{each}'" for each in sorted(ON - life.on))
    kept = ",".join(str(at) for at, _ in life.steps)
    definition = life.shape.pipeline.definition
    lines = [
        f"seed {life.seed}: {failure}",
        f"  schema {definition.sources[0].schema}; id {life.shape.unique}, known for {life.shape.within}",
        f"  lanes {life.shape.lanes} of {life.shape.topics} topics",
        *(f"  {each}" for each in definition.derive),
        *(
            f"  view {each.name} by {list(each.keys)} {each.window}: {dict(each.measures)}"
            for each in definition.views
        ),
        *(f"  {at:>3} {step}" for at, step in life.steps),
        f"again: python -m tests.lives --seed {life.seed} --keep '{kept}'{switches}",
    ]
    return "\n".join(lines)
