"""A model of files that sinks write: numbered manifests that are created or not, writers that sleep, and upkeep.

Each change of the answer has a number, and is in one file. A manifest adds files, and says up to which change they go.
Two writers take over from each other, die, lose replies, sleep while the other goes on, merge files, and delete what
nobody needs. The shipped decisions say which files count, and what nobody needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from tests.protocol.model.search import Found, explore
from tests.protocol.model.state import Violation

from seamline.model.protocol.sinks.file_manifests import (
    DataFile,
    FileManifest,
    list_counting_files,
    list_unneeded_files,
    list_unneeded_manifests,
)
from seamline.model.protocol.sinks.positions import SinkPosition

ANY_CLAIM = 10**9
Manifests = tuple[FileManifest, ...]


@dataclass(frozen=True)
class Rules:
    """What writers of files keep to; each default is the rule.

    ``created``: a manifest is created where there is none. ``claims``: who takes over creates one first, after which
    its files are named. ``settled``: a reply that is lost is settled by what is there. ``looks_behind``: after a
    manifest was created, the one before must be there. ``looks_ahead``: after a writer's first manifest was created,
    there must be no later one. ``in_order``: manifests are deleted in the order of their
    numbers. ``to_the_base``: none is deleted from the last whole one on. ``by_claim``: files are deleted that writers
    with an earlier claim have left, and no others.
    """

    created: bool = True
    claims: bool = True
    settled: bool = True
    looks_behind: bool = True
    looks_ahead: bool = True
    in_order: bool = True
    to_the_base: bool = True
    by_claim: bool = True


@dataclass(frozen=True)
class Bounds:
    """How far a search goes."""

    changes: int = 2
    takeovers: int = 2
    lost: int = 1
    """Replies that are lost."""
    merges: int = 0
    wholes: int = 0
    """Whole manifests beside the first."""
    cleanings: int = 0
    """Times that manifests are deleted."""
    sweeps: int = 0
    """Times that files are deleted."""


class Writer(NamedTuple):
    """A process: what it knows, and what it is about to create or to delete."""

    at: str = "idle"
    claim: int = -1
    known: FileManifest | None = None
    """The newest manifest that it knows."""
    next: FileManifest | None = None
    """The one that it is about to create."""
    files: int = 0
    """How many it has written."""
    old: tuple[int, ...] = ()
    """Manifests that it is about to delete."""
    unneeded: tuple[str, ...] = ()
    """Files that it is about to delete."""


class State(NamedTuple):
    """What is in the folder, and who is at work."""

    writers: tuple[Writer, ...] = (Writer(), Writer())
    manifests: Manifests = ()
    files: frozenset[tuple[str, frozenset[int]]] = frozenset()
    """Files that are there, with the changes in them."""
    told: int = 0
    """The last change of which a writer believes that it is committed."""
    spent: tuple[int, ...] = (0, 0, 0, 0, 0, 0)
    """How often there was a takeover, a lost reply, a merge, a whole manifest, a cleaning, a sweep."""


TAKEN, LOST, MERGED, WHOLE, CLEANED, SWEPT = range(6)


def order(manifests: Iterable[FileManifest]) -> Manifests:
    """Return manifests by their numbers."""
    return tuple(sorted(manifests, key=lambda each: each.number))


def find(manifests: Manifests, number: int) -> FileManifest | None:
    """Return the manifest with a number."""
    return next((each for each in manifests if each.number == number), None)


def read_chain(state: State) -> Manifests:
    """Return the manifests that a reader goes by, none where there is none; Violation where one is not there."""
    if not state.manifests:
        return ()
    newest = state.manifests[-1]
    chain = [find(state.manifests, each) for each in range(newest.base, newest.number + 1)]
    if None in chain:
        raise Violation(f"of manifests {newest.base} to {newest.number} one is not there")
    return tuple(each for each in chain if each)


def position_of(manifest: FileManifest | None) -> int:
    """Return the last change that a manifest has."""
    return manifest.position.version if manifest and manifest.position else 0


def follow(writer: Writer, name: str, **more: object) -> FileManifest:
    """Make the manifest that a writer creates next."""
    known = writer.known
    number = known.number + 1 if known else 0
    base = known.base if known else 0
    made = FileManifest(number, "", name, known is None, base, "", 0.0, known.position if known else None)
    made = replace(made, **more)  # type: ignore[arg-type]
    return replace(made, base=number) if made.whole else made


class Turn(NamedTuple):
    """One writer's turn."""

    state: State
    number: int
    bounds: Bounds
    how: Rules

    @property
    def writer(self) -> Writer:
        """Who it is."""
        return self.state.writers[self.number]

    @property
    def name(self) -> str:
        """Its name; each life of a process has one of its own."""
        return f"{'ab'[self.number]}{self.writer.claim}"

    def become(self, writer: Writer, spent: int | None = None, **more: object) -> State:
        """Return the state after a step."""
        writers = tuple(writer if at == self.number else each for at, each in enumerate(self.state.writers))
        state = self.state._replace(writers=writers, **more)  # type: ignore[arg-type]
        if spent is None:
            return state
        return state._replace(spent=tuple(each + (at == spent) for at, each in enumerate(state.spent)))

    def may(self, what: int, most: int) -> bool:
        """Return whether something may happen once more."""
        return self.state.spent[what] < most

    def live(self) -> dict[str, DataFile]:
        """Return the files that count, as this writer knows; it has read them when it took over, and kept count."""
        assert self.writer.known is not None
        known = [each for each in self.state.manifests if each.number <= self.writer.known.number]
        chain = [each for each in known if each.number >= self.writer.known.base]
        return list_counting_files(chain)

    def put(self, changes: frozenset[int]) -> tuple[Writer, DataFile, frozenset[tuple[str, frozenset[int]]]]:
        """Write a file."""
        writer = self.writer
        file = f"{writer.claim:010d}-{'ab'[self.number] * 8}-{writer.files:06d}.jsonl"
        return (
            writer._replace(files=writer.files + 1),
            DataFile(file, len(changes), 0, 0, 0.0),
            self.state.files | {(file, changes)},
        )


def idle(turn: Turn) -> Iterator[tuple[str, State]]:
    """Look which manifest is the newest, and be about to create the next one."""
    if not turn.may(TAKEN, turn.bounds.takeovers):
        return
    known = turn.state.manifests[-1] if turn.state.manifests else None
    claim = (known.number if known else -1) + 1
    writer = Writer("creating", claim, known)
    if known is not None and not turn.how.claims:
        writer = Writer("ready", claim, known)
        yield "takes over", turn.become(writer, TAKEN)
        return
    name = f"{'ab'[turn.number]}{claim}"
    yield "takes over", turn.become(writer._replace(next=follow(writer, name)), TAKEN)


def creating(turn: Turn) -> Iterator[tuple[str, State]]:
    """Create a manifest, for which there may be no reply."""
    writer, made = turn.writer, turn.writer.next
    assert made is not None
    there = find(turn.state.manifests, made.number)
    mine = there is not None and there.writer == made.writer
    if there is not None and turn.how.created and not (mine and turn.how.settled):
        yield "is fenced off", turn.become(Writer())
        return
    others = tuple(each for each in turn.state.manifests if each.number != made.number)
    manifests = turn.state.manifests if mine else order((*others, made))
    yield "creates", turn.become(writer._replace(at="looking"), manifests=manifests)
    if turn.may(LOST, turn.bounds.lost) and not mine:
        after = writer
        if not turn.how.settled:
            # Whoever takes it for not written does the same again, under the next number.
            behind = writer.known.position if writer.known else None
            after = writer._replace(at="ready", known=replace(made, position=behind), next=None)
        yield "gets no reply", turn.become(after, LOST, manifests=manifests)


def looking(turn: Turn) -> Iterator[tuple[str, State]]:
    """Look for the manifest before the one that was created; after the first one, for any later one."""
    writer, made = turn.writer, turn.writer.next
    assert made is not None
    first = made.number == writer.claim
    passed = find(turn.state.manifests, made.number - 1) is None and not first and turn.how.looks_behind
    if passed or (first and turn.how.looks_ahead and turn.state.manifests[-1].number > made.number):
        yield "has slept too long", turn.become(Writer())
        return
    told = max(turn.state.told, position_of(made))
    yield "goes on", turn.become(writer._replace(at="ready", known=made, next=None), told=told)


def ready(turn: Turn) -> Iterator[tuple[str, State]]:
    """Write the next change, or do a piece of upkeep."""
    yield "dies", turn.become(Writer())
    known = turn.writer.known
    if turn.how.created and known not in turn.state.manifests:
        # Others have gone on for so long that what it knows was deleted: whatever it creates, it will find that out.
        if position_of(known) < turn.bounds.changes:
            yield "writes late", turn.become(*write_change(turn))
        return
    if position_of(known) < turn.bounds.changes:
        after, files = write_change(turn)
        yield "writes a file", turn.become(after, files=files)
    yield from tidy(turn)


def write_change(turn: Turn) -> tuple[Writer, frozenset[tuple[str, frozenset[int]]]]:
    """Write the file of the next change."""
    change = position_of(turn.writer.known) + 1
    writer, file, files = turn.put(frozenset({change}))
    made = follow(writer, turn.name, added=(file,), position=SinkPosition("", change))
    return writer._replace(at="creating", next=made), files


def tidy(turn: Turn) -> Iterator[tuple[str, State]]:
    """Yield the pieces of upkeep that a writer may do."""
    live, content = turn.live(), dict(turn.state.files)
    if len(live) > 1 and turn.may(MERGED, turn.bounds.merges) and all(each in content for each in live):
        writer, file, files = turn.put(frozenset().union(*(content[each] for each in live)))
        made = follow(writer, turn.name, added=(file,), removed=tuple(sorted(live)))
        yield "merges", turn.become(writer._replace(at="creating", next=made), MERGED, files=files)
    if turn.may(WHOLE, turn.bounds.wholes):
        made = follow(turn.writer, turn.name, whole=True, added=tuple(live.values()))
        yield "lists all files", turn.become(turn.writer._replace(at="creating", next=made), WHOLE)
    if turn.may(CLEANED, turn.bounds.cleanings) and (old := list_old(turn)):
        yield "cleans", turn.become(turn.writer._replace(at="cleaning", old=old), CLEANED)
    if turn.may(SWEPT, turn.bounds.sweeps):
        yield "looks for files", turn.become(turn.writer._replace(at="listing"), SWEPT)


def list_old(turn: Turn) -> tuple[int, ...]:
    """List the manifests that are to be deleted, in the order in which they are."""
    newest = turn.writer.known
    assert newest is not None
    if not turn.how.to_the_base:
        newest = replace(newest, base=newest.number)
    old = list_unneeded_manifests({each.number: 1.0 for each in turn.state.manifests}, newest, 0.0)
    return tuple(old) if turn.how.in_order else tuple(reversed(old))


def cleaning(turn: Turn) -> Iterator[tuple[str, State]]:
    """Delete one more manifest, or die."""
    writer = turn.writer
    if not writer.old:
        yield "has cleaned", turn.become(writer._replace(at="ready"))
        return
    left = tuple(each for each in turn.state.manifests if each.number != writer.old[0])
    yield "deletes a manifest", turn.become(writer._replace(old=writer.old[1:]), manifests=left)


def listing(turn: Turn) -> Iterator[tuple[str, State]]:
    """List the files, of which some are unneeded; what was named, this writer knows from before."""
    assert turn.writer.known is not None
    kept = [each for each in turn.state.manifests if each.number <= turn.writer.known.number]
    claim = turn.writer.claim if turn.how.by_claim else ANY_CLAIM
    unneeded = list_unneeded_files(sorted(name for name, _ in turn.state.files), kept, claim)
    yield "lists files", turn.become(turn.writer._replace(at="sweeping", unneeded=tuple(unneeded)))


def sweeping(turn: Turn) -> Iterator[tuple[str, State]]:
    """Delete files."""
    left = frozenset(each for each in turn.state.files if each[0] not in turn.writer.unneeded)
    yield "deletes files", turn.become(turn.writer._replace(at="ready", unneeded=()), files=left)


STEPS = {
    "idle": idle,
    "creating": creating,
    "looking": looking,
    "ready": ready,
    "cleaning": cleaning,
    "listing": listing,
    "sweeping": sweeping,
}


def moves(state: State, bounds: Bounds, how: Rules) -> Iterator[tuple[str, State]]:
    """Yield what may happen next."""
    for number, writer in enumerate(state.writers):
        for label, after in STEPS[writer.at](Turn(state, number, bounds, how)):
            yield f"{'ab'[number]} {label}", after


def check(state: State) -> None:
    """Require that a reader finds each change up to the position once, and nothing that was told is taken back."""
    chain = read_chain(state)
    if not chain:
        return
    content = dict(state.files)
    found: list[int] = []
    for name in list_counting_files(chain):
        if name not in content:
            raise Violation(f"file {name} is not there")
        found += content[name]
    position = position_of(chain[-1])
    if sorted(found) != [*range(1, position + 1)]:
        raise Violation(f"changes {sorted(found)} are there at {position}")
    if state.told > position:
        raise Violation(f"change {state.told} was committed, and {position} is what there is")


def search(how: Rules, bounds: Bounds) -> Found:
    """Search every order of writes, takeovers, sleeps, lost replies and upkeep."""
    return explore(State(), lambda state: moves(state, bounds, how), check)
