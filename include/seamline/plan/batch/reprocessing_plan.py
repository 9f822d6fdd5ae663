"""Which epochs another record version validated, and what the log says once they are reprocessed by this one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType

from seamline.model.compile.evolution import Timed, is_compatible_version
from seamline.model.protocol.condensed import first_of
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.manifest import Act, Manifest, Statement
from seamline.model.protocol.seam import NOTHING
from seamline.model.time.intervals import Grid
from seamline.model.time.reached_intervals import Spanning, find_span_end, list_shown_intervals
from seamline.model.time.zone_clock import MICROSECOND


@dataclass(frozen=True)
class Verdict:
    """How the records of one epoch are validated by a record version that did not read them."""

    epoch: int
    """The epoch."""
    attempt: str
    """The attempt whose rows count."""
    accepted: Mapping[str, int] = field(default_factory=dict)
    """Accepted rows, by interval id."""
    refused: Mapping[str, int] = field(default_factory=dict)
    """Refused records, by reason; with the accepted ones every record of the epoch."""
    lookups: Mapping[str, str] = field(default_factory=dict)
    """The versions of pinned look-ups, by name."""
    restated: int = 0
    """How many restatements had been decided by then."""


def list_foreign_epochs(epochs: Iterable[Epoch], version: str) -> Iterator[Epoch]:
    """Return the epochs with records that another record version validated."""
    return (each for each in epochs if is_foreign(each, version))


def is_foreign(epoch: Epoch, version: str) -> bool:
    """Return whether an epoch has records, and another record version validated them."""
    return bool(epoch.accepted or epoch.refused) and not is_compatible_version(epoch.record_version, version)


def list_outdated_epochs(
    epochs: Iterable[Epoch], version: str, judged: Collection[int], *, until: int | None = None
) -> list[Epoch]:
    """List the foreign epochs up to ``until`` (any if None) that were not reprocessed yet."""
    return [
        each
        for each in list_foreign_epochs(epochs, version)
        if each.number not in judged and (until is None or each.number <= until)
    ]


def list_rounded_epochs(
    epochs: Iterable[Epoch], version: str, before: str, judged: Collection[int]
) -> list[Epoch]:
    """List the epochs not reprocessed yet that were read by ``before``, when decimals went through a double."""
    return [
        each
        for each in list_outdated_epochs(epochs, version, judged)
        if before and is_compatible_version(each.record_version, before)
    ]


def split_epochs(epochs: Iterable[Epoch], records: int) -> list[tuple[Epoch, ...]]:
    """Part epochs into runs of about so many records, one epoch at least."""
    found: list[tuple[Epoch, ...]] = []
    block: list[Epoch] = []
    count = 0
    for epoch in epochs:
        if block and count + records_of(epoch) > records:
            found.append(tuple(block))
            block, count = [], 0
        block.append(epoch)
        count += records_of(epoch)
    return [*found, tuple(block)] if block else found


def records_of(epoch: Epoch) -> int:
    """Count the records that an epoch read."""
    return epoch.rows + sum(epoch.refused.values())


def apply_verdicts(epochs: Iterable[Epoch], version: str, verdicts: Mapping[int, Verdict]) -> Iterator[Epoch]:
    """Return the log as a record version has it: foreign epochs as they were reprocessed, where they were.

    What was late is not known of those.
    """
    for each in epochs:
        again = each.number in verdicts and is_foreign(each, version)
        yield apply_epoch_verdict(each, version, verdicts[each.number]) if again else each


def apply_epoch_verdict(epoch: Epoch, version: str, verdict: Verdict) -> Epoch:
    """Return an epoch with the counts of its verdict."""
    return replace(
        epoch,
        record_version=version,
        accepted=verdict.accepted,
        refused=verdict.refused,
        lookups=verdict.lookups,
        late={},
        very_late={},
    )


def drop_foreign_watermarks(epochs: Iterable[Epoch], timed: Timed) -> Iterator[Epoch]:
    """Return the log without the watermarks of another clock."""
    for each in epochs:
        foreign_mark = each.watermark is not None and not timed.is_of_clock(each)
        yield replace(each, watermark=None) if foreign_mark else each


def last_filled_interval(epochs: Iterable[Epoch], version: str, grid: Grid, *, below: int) -> str:
    """Return the last interval that has rows of epochs below one, the one before the first of all where none has.

    Empty while some of them wait to be reprocessed by a record version: any interval may get rows of those.
    """
    # Where no row was ever accepted a version lacks none: the interval before the first stands for that.
    last = grid.of(grid.start - grid.length).id
    for each in epochs:
        if first_of(each) < below:
            if is_foreign(each, version):
                return ""
            last = max([last, *each.accepted])
    return last


def list_later_intervals(
    epochs: Iterable[Epoch], last: str, grid: Grid, spanning: Spanning, *, below: int
) -> dict[str, str]:
    """List the last interval in which each of some versions may have shown something in epochs below one.

    ``last`` is the last that has rows. Timers fire where no row is, as far as the watermark has come: behind it slices
    show all that there is.
    """
    marks = [each.watermark for each in epochs if first_of(each) < below and each.watermark]
    if not last or not marks or grid.named(last).end <= grid.start:
        return {}
    reached = grid.of(max(marks))
    return {
        id: max(last, min(reached.id, grid.of(find_span_end(grid.named(last), view) - MICROSECOND).id))
        for id, view in spanning.items()
    }


def find_birth_marks(
    epochs: Iterable[Epoch], births: Mapping[str, int], views: Collection[str]
) -> dict[str, datetime]:
    """Find the watermark at the births of versions, where there was one; ``epochs`` are parted there."""
    marks = [(first_of(each), each.watermark) for each in epochs if each.watermark]
    known = {view: [mark for number, mark in marks if number < births.get(view, NOTHING)] for view in views}
    return {view: max(found) for view, found in known.items() if found}


def list_open_births(manifest: Manifest, views: Iterable[str]) -> list[str]:
    """List the views whose birth was stated before it was known which intervals have rows of before (rule 7).

    A view that was born before the first epoch has lost none.
    """
    return [
        view
        for view in views
        if view in manifest.live and view not in manifest.filled and manifest.births[view] > NOTHING + 1
    ]


def complete_births(
    manifest: Manifest,
    views: Iterable[str],
    epochs: Sequence[Epoch],
    version: str,
    grid: Grid,
    spanning: Spanning = MappingProxyType({}),
    *,
    now: datetime,
) -> list[Statement]:
    """State the births again that did not know which intervals have rows of before, once that is known (rule 7).

    ``epochs`` are the log as the record version validates it, each of them or parted at the births. An interval without
    rows of before has lost none: its floor may fall.
    """
    found = []
    for view in list_open_births(manifest, views):
        birth = manifest.births[view]
        last = last_filled_interval(epochs, version, grid, below=birth)
        last = list_later_intervals(epochs, last, grid, spanning, below=birth).get(view, last)
        told = Statement(Act.BIRTH, view, birth, last, reason="reprocessed", at=now)
        found += [replace(told, definition=manifest.definitions[view])] if last else []
    return found


def plan_raised_floors(
    manifest: Manifest,
    views: Iterable[str],
    verdicts: Mapping[int, Verdict],
    grid: Grid,
    spanning: Spanning = MappingProxyType({}),
    marks: Mapping[str, datetime] = MappingProxyType({}),
    *,
    now: datetime,
) -> list[Statement]:
    """Return the floors that verdicts raise (rule 7): intervals with rows of before a version's birth must be built.

    The birth knew those by the counts of another record version, which may have refused a whole interval. Of folds
    timers may have fired up to the watermark at the birth, which ``marks`` has by version.
    """
    firsts: dict[str, int] = {}
    for number, verdict in sorted(verdicts.items()):
        for interval in verdict.accepted:
            firsts.setdefault(interval, number)
    found = []
    for view in views:
        before = manifest.births.get(view, NOTHING + 1) - 1
        older = (interval for interval, first in firsts.items() if first <= before)
        found += [
            Statement(Act.FLOOR, view, epoch=before, interval=interval, reason="reprocessed", at=now)
            for interval in sorted(list_shown_intervals(grid, spanning.get(view), older, marks.get(view)))
            if manifest.floor(view, interval) < before
        ]
    return found
