"""The generations of an interval: what became of each, which one a rollback serves, and when that may be."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from seamline.model.errors import BadRange, NotFound, PublishRefused
from seamline.model.protocol.certificate_checks import Certificate
from seamline.model.protocol.manifest import Act, Generation, How, Manifest, Statement
from seamline.model.protocol.restated_views import Restated
from seamline.plan.publish.publication import Candidate, Decision, accept_candidate


class Fate(StrEnum):
    """What became of a generation.

    SERVED: it answers now. STANDBY: it is published, of a version that is not served. SUPERSEDED: another was
    published in its place, ROLLED_BACK: by a person's choice. FORGOTTEN: it
    is deleted, or will be. HELD_BACK: its certificate is not green. WAITING: it
    is certified and nobody published it. UNJUDGED: it has no certificate.
    """

    SERVED = "served"
    STANDBY = "published, version not served"
    SUPERSEDED = "superseded"
    ROLLED_BACK = "rolled back"
    FORGOTTEN = "forgotten"
    HELD_BACK = "held back"
    WAITING = "never published"
    UNJUDGED = "never certified"


@dataclass(frozen=True)
class PastGeneration:
    """A generation and all that was stated of it."""

    generation: Generation
    """The generation."""
    fate: Fate
    """What became of it."""
    built: datetime | None
    """When it was built, None where no build is known of it."""
    seconds: float
    """Seconds of the whole attempt."""
    certificate: Certificate | None
    """Its certificate, None for none."""
    published: tuple[Statement, ...]
    """The statements that published it, oldest first."""
    held: int
    """Rows that its table has of it now."""

    @property
    def kept(self) -> bool:
        """Return whether all of it is still there."""
        return self.held == self.generation.rows

    @property
    def certified(self) -> bool:
        """Return whether its certificate is green, or it was published as certified once."""
        return any(each.certified for each in self.published) or bool(
            self.certificate and self.certificate.passed
        )


def fate_of(manifest: Manifest, generation: Generation, certificate: Certificate | None) -> Fate:
    """Return what became of a generation."""
    place = (generation.view, generation.interval.id)
    current = manifest.published.get(place)
    if current and current.generation == generation.id:
        served = manifest.serving.get(generation.view.partition("/")[0]) == generation.view
        return Fate.SERVED if served else Fate.STANDBY
    if (*place, generation.id) in manifest.forgotten:
        return Fate.FORGOTTEN
    following = find_replacement(manifest.history.get(place, ()), generation.id)
    if following:
        return Fate.ROLLED_BACK if following.how is How.ROLLBACK else Fate.SUPERSEDED
    if certificate is None:
        return Fate.UNJUDGED
    return Fate.WAITING if certificate.good else Fate.HELD_BACK


def find_replacement(history: Sequence[Statement], generation: str) -> Statement | None:
    """Return the publication that replaced the last one of a generation."""
    places = [at for at, each in enumerate(history) if each.generation == generation]
    return history[places[-1] + 1] if places and places[-1] + 1 < len(history) else None


def find_predecessor(
    history: Sequence[Statement], generation: str, forgotten: Collection[tuple[str, str, str]] = ()
) -> str:
    """Name the generation that was first published just before another; empty for the first of all.

    Those that are ``forgotten`` (view, interval, id) are passed over.
    """
    order = list(
        dict.fromkeys(
            each.generation
            for each in history
            if each.generation == generation or (each.view, each.interval, each.generation) not in forgotten
        )
    )
    return order[order.index(generation) - 1] if generation in order[1:] else ""


def find_generation(known: Sequence[PastGeneration], name: str) -> PastGeneration:
    """Find a generation by its id, or an unmistakable beginning of it; NotFound, BadRange."""
    found = [each for each in known if each.generation.id == name]
    found = found or [each for each in known if each.generation.id.startswith(name)]
    ids = ", ".join(each.generation.id for each in known) or "none"
    if not found:
        raise NotFound(f"There is no generation {name!r} of that interval.", hint=f"available: {ids}.")
    if len(found) > 1:
        raise BadRange(f"{name!r} matches {len(found)} generations.", hint=f"available: {ids}.")
    return found[0]


def select_main_generation(known: Sequence[PastGeneration]) -> PastGeneration | None:
    """Return the generation that is served, else the newest that has certificates, else the newest."""
    served = [each for each in known if each.fate is Fate.SERVED]
    judged = [each for each in known if each.certificate]
    return next(iter([*served, *reversed(judged), *reversed(known)]), None)


def roll_back(
    manifest: Manifest,
    place: tuple[str, str],
    known: Sequence[PastGeneration],
    *,
    to: str,
    decision: Decision,
    now: datetime,
    restated: Restated | None = None,
) -> Statement:
    """Return the statement that serves an earlier generation of a view version's interval, and holds it; or refuse.

    Without ``to`` it is the last that was published before the one that is, and is not forgotten. ``known`` are those
    of ``place``, which is (``name/fingerprint``, interval id).
    """
    current = manifest.published.get(place)
    if current is None:
        raise PublishRefused(
            f"No generation of {place[0]} {place[1]} is published.", hint="see `seamline history`."
        )
    name = to or find_predecessor(manifest.history[place], current.generation, manifest.forgotten)
    if not name:
        raise PublishRefused(
            f"No kept generation was published before {current.generation} of {place[0]} {place[1]}.",
            hint="name another with --to; seamline history lists them.",
        )
    wanted = find_generation(known, name)
    if wanted.generation.id == current.generation:
        raise PublishRefused(
            f"Generation {current.generation} of {place[0]} {place[1]} is already published.",
            hint="name another with --to; seamline history lists them.",
        )
    if not wanted.kept:
        raise PublishRefused(
            f"Generation {wanted.generation.id} of {place[0]} {place[1]} is gone: {wanted.held} of its "
            f"{wanted.generation.rows} rows are left.",
            hint="name one that is kept (seamline history), or build the interval again.",
        )
    lacking = (
        restated.list_joined_between(*place, wanted.generation.restated, current.restated) if restated else []
    )
    if lacking:
        raise PublishRefused(
            f"Generation {wanted.generation.id} of {place[0]} {place[1]} was built before look-up "
            f"{lacking[0].lookup} was restated, and what has been joined since is made with it.",
            hint=f"restate {lacking[0].lookup} with the former version (--version), and build the interval again.",
        )
    candidate = Candidate(wanted.generation, wanted.certified, current.generation)
    return accept_candidate(manifest, candidate, now=now, decision=decision)


def plan_release(
    manifest: Manifest, place: tuple[str, str], *, actor: str, reason: str, now: datetime
) -> Statement:
    """Return the statement that lets dirty runs build an interval again that was rolled back; or refuse."""
    if place not in manifest.held:
        raise PublishRefused(f"{place[0]} {place[1]} is not held.", hint="only a rollback holds an interval.")
    return Statement(Act.RELEASE, place[0], interval=place[1], actor=actor, reason=reason, at=now)
