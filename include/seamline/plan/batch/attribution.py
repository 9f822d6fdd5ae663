"""Why a batch answers otherwise than what was answered before it: each difference has a cause, or is an alarm."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from seamline.model.protocol.comparison import Comparison


class ChangeCause(StrEnum):
    """Why a number changes when a generation is published."""

    DUPLICATE = "duplicates removed"
    """Records whose event id an earlier one bears: the speed layer counts them, a generation does not."""
    BEHIND = "view was behind"
    """Records of epochs that the view's slices did not have yet."""
    RESTATED = "look-up corrected"
    """A person has decided that records are to be reprocessed by another version of a look-up."""
    VERSION = "judged again by another definition"
    """Records of an earlier record version were reprocessed since the generation before."""
    SKETCH = "sketch error"
    """As many records, and only measures that estimate differ."""
    NONE = "unattributed"
    """Nothing explains it."""


@dataclass(frozen=True)
class DifferingPlace:
    """A key and pane at which two answers differ."""

    before: int
    """Records counted by the earlier answer."""
    after: int
    """Records counted by the later answer."""
    spare: int
    """Records whose event id had been there: not counted before, or no more."""
    unsliced: int
    """Records that no slice has: not counted before, or no more."""
    measures: Collection[str]
    """Names of the measures that differ."""


@dataclass(frozen=True)
class KnownChanges:
    """What was done to records of an interval since the earlier answer."""

    restated: bool = False
    """Whether records of the interval were restated since the earlier answer."""
    judged_again: bool = False
    """Whether records of the interval were reprocessed since the earlier answer."""
    behind: bool = False
    """Whether slices of emitted rows were missing: of those nobody can say how many rows they would have changed."""


def find_difference_causes(
    place: DifferingPlace, known: KnownChanges, estimates: Collection[str]
) -> tuple[ChangeCause, ...]:
    """Return why a place differs; ``estimates`` are the measures that are not exact.

    Where records were reprocessed any number may change. Else the records must add up to the last one.
    """
    said = {
        ChangeCause.RESTATED: known.restated,
        ChangeCause.VERSION: known.judged_again,
        ChangeCause.BEHIND: known.behind,
    }
    if any(said.values()):
        return tuple(cause for cause, holds in said.items() if holds)
    if place.after != place.before + place.unsliced - place.spare:
        return (ChangeCause.NONE,)
    found = {ChangeCause.DUPLICATE: place.spare > 0, ChangeCause.BEHIND: place.unsliced > 0}
    if any(found.values()):
        return tuple(cause for cause, holds in found.items() if holds)
    return (ChangeCause.SKETCH,) if set(place.measures) <= set(estimates) else (ChangeCause.NONE,)


def count_causes(attributed: Iterable[tuple[ChangeCause, ...]]) -> Mapping[str, int]:
    """Count places by cause; one that has two causes is counted with each."""
    found: dict[str, int] = {}
    for some in attributed:
        for cause in some:
            found[cause.value] = found.get(cause.value, 0) + 1
    return found


def format_comparison(found: Comparison) -> Iterator[str]:
    """Describe a comparison: how much differs and why, and each measure's largest change."""
    former = f"generation {found.former} and slices" if found.former else "slices"
    yield f"{found.view} {found.interval} {found.generation} to epoch {found.cut}, before it {former}:"
    yield f"  {found.equal} equal, {found.changed} changed, {found.missing} gone, {found.extra} new"
    for cause, count in sorted(found.causes.items()):
        yield f"  {count} {cause}"
    for name, change in found.measures.items():
        if change.count:
            most = "" if change.most is None else f", at most {change.most:+.2%}"
            yield f"  {name}: {change.count} changed{most}"
    if found.alarm:
        yield f"  ALARM unattributed: {found.alarm}"
