"""What runs left that nobody needs: folders of builds that were killed, and reports of what is served no more."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from seamline.model.protocol.claims import Claim
from seamline.model.protocol.manifest import Manifest
from seamline.model.time.intervals import EPOCH

STAMP = "%Y%m%dT%H%M%S"
"""How a generation's id begins: the second in which its build began, UTC."""
BUILT_WITHIN = timedelta(days=1)
"""How long a build may take that has lost its claim; one that holds a claim may take any time."""
REPORTED = timedelta(days=30)
"""How long the report of a run is kept that has built nothing anybody may serve any more."""
SECOND = timedelta(seconds=1)


def parse_build_start(generation: str) -> int | None:
    """Return the second since 1970 in which a generation's build began; None where its id does not say."""
    try:
        at = datetime.strptime(generation.partition("-")[0], STAMP).replace(tzinfo=UTC)
    except ValueError:
        return None
    return (at - EPOCH) // SECOND


def find_last_abandoned_second(claims: Iterable[Claim], *, now: datetime) -> int:
    """Return the last second since 1970 of which no build is waited for: before any valid claim, and a day ago."""
    last = min([now - BUILT_WITHIN, *(claim.since for claim in claims)])
    return (last - EPOCH) // SECOND - 1


def find_killed_build(generation: str, until: int) -> datetime | None:
    """Return when a generation's build began if nobody waits for it any more: it was killed if it left no record."""
    at = parse_build_start(generation)
    return EPOCH + at * SECOND if at is not None and at <= until else None


def list_expired_reports(
    manifest: Manifest, built: Iterable[tuple[str, str, str, str, datetime]], *, now: datetime
) -> set[str]:
    """Name the runs whose report may go, of (run, view version, interval id, generation, when).

    What was ever published may be served again, and its report looked for, until it is forgotten.
    """
    places: dict[str, list[tuple[str, str, str, datetime]]] = {}
    for run, *place in built:
        places.setdefault(run, []).append(tuple(place))  # type: ignore[arg-type]
    return {
        run
        for run, some in places.items()
        if all(at < now - REPORTED and not is_servable(manifest, *place) for *place, at in some)
    }


def is_servable(manifest: Manifest, view: str, interval: str, generation: str) -> bool:
    """Return whether a generation is published, or was and is not forgotten."""
    known = (each.generation for each in manifest.history.get((view, interval), ()))
    return generation in known and (view, interval, generation) not in manifest.forgotten
