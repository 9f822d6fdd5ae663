"""Whether the manifest accepts generations, births, flips and retirements, and the statements that say so."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType

from seamline.model.errors import Conflict, PublishRefused
from seamline.model.protocol.manifest import Act, Generation, How, Manifest, Statement
from seamline.model.protocol.seam import NOTHING

RED = "not certified"


@dataclass(frozen=True)
class Candidate:
    """A generation offered for publication."""

    generation: Generation
    """The generation."""
    certified: bool
    """Whether its certificate is green."""
    expected: str
    """The generation that the run saw published before, empty for none."""
    planned: int = NOTHING
    """The version of the manifest that the run was planned on."""
    provisional: bool = False
    """Whether it may be published though its interval is open."""
    waits: str = ""
    """Why a person must approve it, for how much it changes; empty where nobody need."""

    @property
    def good(self) -> bool:
        """Return whether it may be published without anybody's decision."""
        return self.certified or self.provisional

    @property
    def how(self) -> How:
        """Return how it comes to be served where nobody rolls back to it."""
        if self.certified:
            return How.CERTIFIED
        return How.PROVISIONAL if self.provisional else How.DESPITE


@dataclass(frozen=True)
class Decision:
    """What a person decides against the rule."""

    actor: str
    """Who decided."""
    reason: str
    """Why."""
    rollback: bool = False
    """Whether a lower cut may be served."""
    despite: bool = False
    """Whether what is not certified may be served."""
    approved: bool = False
    """Whether what changes answers by more than the definition lets it may be served."""


def plan_publication(
    manifest: Manifest,
    candidates: Iterable[Candidate],
    *,
    now: datetime,
    decision: Decision | None = None,
) -> list[Statement]:
    """Return the statements of one commit that publishes all candidates, or refuse (rule 10)."""
    return [accept_candidate(manifest, candidate, now=now, decision=decision) for candidate in candidates]


@dataclass(frozen=True)
class Offer:
    """What of a run may be published."""

    green: tuple[Candidate, ...]
    """What may be published."""
    held_back: Mapping[str, str] = field(default_factory=dict)
    """Why not, by interval id."""
    waiting: frozenset[str] = frozenset()
    """The ids of those of them that nothing holds back but a person's approval of how much they change."""


def select_publishable(
    manifest: Manifest, candidates: Iterable[Candidate], *, despite: bool = False, approved: bool = False
) -> Offer:
    """Part what may be published from the intervals held back: those of which any view may not be.

    The views of one interval are published together, so that they reflect the same log; days are not. What is not
    certified is held back (unless ``despite`` that), and so is what was rolled back since the run was planned, what
    does not reach its floor, and what changes answers by more than the definition lets it (unless ``approved``).
    """
    offered = list(candidates)
    held: dict[str, str] = {}
    waiting: dict[str, str] = {}
    for each in offered:
        interval = each.generation.interval.id
        stands = manifest.held.get((each.generation.view, interval))
        if stands and each.planned < stands.seq:
            held[interval] = f"{stands.actor} rolled it back after the run was planned: {stands.reason}"
        elif not each.good and not despite:
            held.setdefault(interval, RED)
        elif each.generation.cut < (floor := manifest.floor(each.generation.view, interval)):
            held.setdefault(
                interval, f"its cut {each.generation.cut} is below the floor {floor}: build it again"
            )
        elif each.waits and not approved:
            waiting.setdefault(interval, each.waits)
    whys = {**waiting, **held}
    green = tuple(each for each in offered if each.generation.interval.id not in whys)
    return Offer(green, dict(sorted(whys.items())), frozenset(waiting.keys() - held.keys()))


def accept_candidate(
    manifest: Manifest, candidate: Candidate, *, now: datetime, decision: Decision | None = None
) -> Statement:
    """Check one candidate against what is published."""
    rollback, despite = (decision.rollback, decision.despite) if decision else (False, False)
    new = candidate.generation
    place = (new.view, new.interval.id)
    current = manifest.published.get(place)
    name = f"Generation {new.id} of {new.view} {new.interval.id}"
    if (*place, new.id) in manifest.forgotten:
        raise PublishRefused(
            f"{name} is forgotten: its files are being deleted.", hint="build the interval again."
        )
    if (current.generation if current else "") != candidate.expected:
        raise Conflict(
            f"{name}: {current.generation if current else 'nothing'} is published, the run expected "
            f"{candidate.expected or 'nothing'}.",
            hint="another run published first; plan again.",
        )
    if new.view in manifest.retired:
        raise PublishRefused(
            f"{name}: {new.view} is retired.", hint="the run is older than the retirement; discard it."
        )
    if not candidate.good and not despite:
        raise PublishRefused(
            f"{name} has no passed certificate.", hint="fix what its certificate reports, then rebuild."
        )
    if new.cut < manifest.floor(*place):
        raise PublishRefused(
            f"{name}: its cut {new.cut} is below the floor {manifest.floor(*place)}.", hint="build it again."
        )
    if current and new.cut < current.epoch and not rollback:
        raise PublishRefused(
            f"{name}: its cut {new.cut} is below the published cut {current.epoch}.",
            hint="answers would go back: use seamline rollback if that is intended.",
        )
    return Statement(
        Act.PUBLISH,
        new.view,
        epoch=new.cut,
        interval=new.interval.id,
        generation=new.id,
        rows=new.rows,
        certified=candidate.certified,
        run=new.run,
        reason=decision.reason if decision else new.reason,
        at=now,
        restated=new.restated,
        actor=decision.actor if decision else "",
        how=How.ROLLBACK if rollback else candidate.how,
    )


def plan_births(
    manifest: Manifest,
    definitions: Mapping[str, str],
    *,
    held: int,
    now: datetime,
    filled: str = "",
    later: Mapping[str, str] = MappingProxyType({}),
) -> list[Statement]:
    """Return the birth of every view version that the manifest does not know (rule 7).

    ``definitions`` are by ``name/fingerprint``; ``held`` is E, ``filled`` the last interval that has rows,
    ``later`` has that of versions which may have rows in a later one. The first version of a view is served at once.
    """
    statements = []
    for view, definition in definitions.items():
        if view in manifest.live:
            continue
        statements.append(
            Statement(
                Act.BIRTH,
                view,
                epoch=held + 1,
                interval=later.get(view, filled),
                definition=definition,
                at=now,
            )
        )
        if view.partition("/")[0] not in manifest.serving:
            statements.append(Statement(Act.FLIP, view, epoch=held + 1, at=now))
    return statements


HELD = (
    "a rollback holds it, and a dirty run leaves it out: build it with seamline run PIPELINE --from --to, "
    "or release it (seamline rollback ... --release)."
)


def plan_flip(
    manifest: Manifest,
    view_name: str,
    to_version: str,
    *,
    intervals_with_rows: Collection[str],
    frontiers: Mapping[str, int],
    now: datetime,
) -> list[Statement]:
    """Return the statement that serves another version of a view, none if it is served; or refuse (rule 7).

    ``to_version`` and the keys of ``frontiers``, which are W, are ``name/fingerprint``. Among the intervals are those
    without rows that its windows touch.
    """
    served = manifest.serving.get(view_name, "")
    if served == to_version:
        return []
    if to_version not in manifest.births:
        raise PublishRefused(f"{to_version} was never born.", hint="start the stream with its definition.")
    if to_version in manifest.retired:
        raise PublishRefused(
            f"{to_version} is retired: it has had no slices since.",
            hint="restore its definition and start the stream: it is born again.",
        )
    missing = sorted(each for each in intervals_with_rows if manifest.is_building(to_version, each))
    if missing:
        more = f", and {len(missing) - 1} more are not" if len(missing) > 1 else ""
        raise PublishRefused(
            f"{missing[0]} of {to_version} is not built to its floor "
            f"{manifest.floor(to_version, missing[0])}{more}.",
            hint=HELD
            if any(interval == missing[0] for _, interval in manifest.held)
            else "build them: seamline run PIPELINE --dirty; an open interval must close first.",
        )
    new, old = frontiers.get(to_version, NOTHING), frontiers.get(served, NOTHING)
    if new < old:
        raise PublishRefused(
            f"{to_version} has slices up to epoch {new}, {served} up to {old}.",
            hint="answers would go back: let the stream catch it up, then flip.",
        )
    for (view, interval), current in sorted(manifest.published.items()):
        if view == served and current.epoch > max(new, manifest.cut(to_version, interval)):
            raise PublishRefused(
                f"{interval} of {served} is built up to epoch {current.epoch}, of {to_version} there is less: "
                f"slices up to {new}, and a build up to {manifest.cut(to_version, interval)}.",
                hint="answers would go back: let the stream catch it up, or build it, then flip.",
            )
    return [Statement(Act.FLIP, to_version, epoch=new, reason=f"instead of {served or 'nothing'}", at=now)]


def plan_retirement(
    manifest: Manifest, version: str, own: Collection[str], *, reason: str, now: datetime
) -> list[Statement]:
    """Return the statement that lets a version run no more, none if it is retired; or refuse.

    ``version`` and ``own``, the definition's versions, are ``name/fingerprint``. Its tables stay.
    """
    if version in manifest.retired:
        return []
    if version == manifest.serving.get(version.partition("/")[0]):
        raise PublishRefused(f"{version} is served.", hint="flip the view to another version first.")
    if version in own:
        raise PublishRefused(
            f"{version} is what the definition declares.", hint="remove it from the definition first."
        )
    return [Statement(Act.RETIRE, version, reason=reason, at=now)]
