"""Whether the manifest accepts generations, and the statements that publish them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from seamline.model.errors import Conflict, PublishRefused
from seamline.model.manifest import Act, Generation, Manifest, Statement


@dataclass(frozen=True)
class Candidate:
    """A generation offered for publication and the generation that the run saw published before it."""

    generation: Generation
    certified: bool
    expected: str


def publish(
    manifest: Manifest, candidates: Iterable[Candidate], *, now: datetime, rollback: bool = False
) -> list[Statement]:
    """Give the statements of one commit that publishes all candidates, or refuse (rule 10)."""
    return [accept(manifest, candidate, now=now, rollback=rollback) for candidate in candidates]


def accept(manifest: Manifest, candidate: Candidate, *, now: datetime, rollback: bool) -> Statement:
    """Check one candidate against what is published."""
    new = candidate.generation
    place = (new.view, new.interval.id)
    current = manifest.published.get(place)
    name = f"Generation {new.id} of {new.view} {new.interval.id}"
    if (current.generation if current else "") != candidate.expected:
        raise Conflict(
            f"{name}: {current.generation if current else 'nothing'} is published, the run expected "
            f"{candidate.expected or 'nothing'}.",
            hint="another run published first; plan again.",
        )
    if not candidate.certified:
        raise PublishRefused(f"{name} has no passed certificate.", hint="see its certificate, mend, rebuild.")
    if new.cut < manifest.floor(*place):
        raise PublishRefused(
            f"{name}: its cut {new.cut} is below the floor {manifest.floor(*place)}.", hint="build it again."
        )
    if current and new.cut < current.epoch and not rollback:
        raise PublishRefused(
            f"{name}: its cut {new.cut} is below the published cut {current.epoch}.",
            hint="answers would go back; ask for a rollback if that is meant.",
        )
    return Statement(
        Act.PUBLISH,
        new.view,
        epoch=new.cut,
        interval=new.interval.id,
        generation=new.id,
        rows=new.rows,
        certified=True,
        run=new.run,
        reason=new.reason,
        at=now,
    )


def born(manifest: Manifest, definitions: Mapping[str, str], *, held: int, now: datetime) -> list[Statement]:
    """Give the birth of every view version that the manifest does not know (rule 7).

    ``definitions`` are by ``name/fingerprint``; ``held`` is E. The first version of a view is served at once.
    """
    statements = []
    for view, definition in definitions.items():
        if view in manifest.births:
            continue
        statements.append(Statement(Act.BIRTH, view, epoch=held + 1, definition=definition, at=now))
        if view.partition("/")[0] not in manifest.serving:
            statements.append(Statement(Act.FLIP, view, epoch=held + 1, at=now))
    return statements
