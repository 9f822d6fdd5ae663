"""Which generations may be deleted: the interlock that says why the others may not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from seamline.model.protocol.manifest import Act, Manifest, Statement

Place = tuple[str, str]
"""A view version (``name/fingerprint``) and the id of an interval."""


@dataclass(frozen=True)
class StoredGeneration:
    """A generation that is there."""

    view: str
    """The view version, ``name/fingerprint``."""
    interval: str
    """The interval's id."""
    generation: str
    """Its id."""
    rows: int
    """Its rows."""
    built: datetime | None
    """When it was built, None where no build is known of it."""

    @property
    def place(self) -> Place:
        """The view version and interval that it is of."""
        return self.view, self.interval


@dataclass(frozen=True)
class RetentionVerdict:
    """Whether a generation may be deleted."""

    kept: StoredGeneration
    """The generation."""
    why: str
    """Why it must stay; empty where it may go."""

    @property
    def free(self) -> bool:
        """True if it may be deleted."""
        return not self.why


def decide_retention(
    manifest: Manifest,
    held: Iterable[StoredGeneration],
    *,
    keep: int,
    older_than: timedelta | None = None,
    now: datetime,
) -> list[RetentionVerdict]:
    """Say of every generation whether it may be deleted.

    What is published stays, of every version; so do the last ``keep`` that were published before it and are not
    forgotten, for a rollback; so does what was built after it, which its run may still publish; and what was replaced
    (or built, if nobody ever published it) less than ``older_than`` ago.
    """
    places: dict[Place, list[StoredGeneration]] = {}
    for each in held:
        places.setdefault(each.place, []).append(each)
    return [
        RetentionVerdict(each, find_retention_reason(manifest, each, some, keep, older_than, now))
        for _, some in sorted(places.items())
        for each in sorted(some, key=lambda one: one.generation)
    ]


def find_retention_reason(
    manifest: Manifest,
    each: StoredGeneration,
    beside: Sequence[StoredGeneration],
    keep: int,
    older_than: timedelta | None,
    now: datetime,
) -> str:
    """Say why a generation must stay; empty if it may go."""
    current = manifest.published.get(each.place)
    if current is None:
        return "nothing is published of its interval"
    if each.generation == current.generation:
        return "it is published"
    history = manifest.history[each.place]
    order = list(dict.fromkeys(one.generation for one in history))
    if each.generation in order:
        before = [
            name
            for name in order
            if name != current.generation and (*each.place, name) not in manifest.forgotten
        ]
        back = before[-keep:] if keep else []
        if each.generation in back:
            return f"a rollback may go to it: it is of the last {keep} that were published"
        since = find_replacement_time(history, each.generation)
    else:
        published = next((one.built for one in beside if one.generation == current.generation), None)
        if each.built is None or published is None or each.built > published:
            return "its run may still publish it: it is newer than what is published"
        since = each.built
    if older_than is not None and (since is None or now - since < older_than):
        return f"it was {'replaced' if each.generation in order else 'built'} less than {format_days(older_than)} ago"
    return ""


def find_replacement_time(history: Sequence[Statement], generation: str) -> datetime | None:
    """Return when another generation was last published in a generation's place."""
    last = max(at for at, each in enumerate(history) if each.generation == generation)
    return history[last + 1].at if last + 1 < len(history) else None


def format_days(span: timedelta) -> str:
    """Write a span of days."""
    days = span / timedelta(days=1)
    return f"{days:g} day{'s' * (days != 1)}"


def plan_forgetting(
    verdicts: Iterable[RetentionVerdict], *, actor: str, reason: str, now: datetime
) -> list[Statement]:
    """Return the statements after which nobody publishes what may be deleted (rule 8)."""
    return [
        Statement(
            Act.FORGET,
            each.kept.view,
            interval=each.kept.interval,
            generation=each.kept.generation,
            rows=each.kept.rows,
            actor=actor,
            reason=reason,
            at=now,
        )
        for each in verdicts
        if each.free
    ]
