"""The log: every committed epoch, one by one or condensed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from seamline.lake.log.ledger import Ledger
from seamline.lake.log.ledger_files import Group, condense_ledger_files, groups_of
from seamline.lake.log.master import Master
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import read_cached_table
from seamline.model.protocol.condensed import condense_epochs
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.seam import NOTHING
from seamline.model.recent import Recent

LedgerRows = Callable[[int | None], list[Epoch]]
"""What reads a ledger's rows up to an epoch, all if None."""

_folded: Recent[str, tuple[tuple[Group, ...], list[Epoch]]] = Recent(256)
"""By the ledger's identity, its first files and what they are condensed to: of a longer ledger the rest is read."""


def known_epochs(layout: Layout) -> Sequence[Epoch]:
    """List every committed epoch, also those that the ledger lacks; none before the first.

    It takes memory and time for each of them: what can do with less asks ``each_epoch``, or ``read_condensed_log``.
    """
    return list(each_epoch(layout))


def each_epoch(layout: Layout) -> Iterator[Epoch]:
    """Iterate over every committed epoch: of packed files one row group at a time is in memory."""
    if not Table.exists(layout.table("master")):
        return
    groups = groups_of(Ledger.ensure(layout).table)
    # The master is opened after the ledger: an epoch in between is found in one of the two. A ledger may have kept what
    # the master has lost.
    master, last = Master.open(layout), NOTHING
    for group in groups:
        for each in group.iterate():
            if each.number <= master.epoch:
                last = each.number
                yield each
    yield from master.missing(last)


def read_condensed_log(layout: Layout, *, cuts: Iterable[int] = (), until: int | None = None) -> list[Epoch]:
    """Read the log condensed, as far as ``until`` (all if None); no sum crosses ``until`` or one of the ``cuts``.

    The newest epoch is a row of its own. What is read does not grow with the log, but by a few bytes for each of the
    ledger's packed files.
    """
    bounds = {*cuts, *([] if until is None else [until])}
    rows = join_ledger_and_master(
        up_to(lambda parts: ledger_rows(layout, parts), bounds),
        lambda held: list_epochs_above_ledger(layout, held),
    )
    if until is not None:
        return condense_epochs((row for row in rows if row.number <= until), bounds)
    return [*condense_epochs(rows[:-1], bounds), *rows[-1:]]


def condense_open_log(ledger: Ledger, master: Master) -> list[Epoch]:
    """Condense the log by a writer's handles, at the versions that they see: nothing is reopened."""
    rows = join_ledger_and_master(
        up_to(lambda parts: of_ledger(ledger.table, parts), ()),
        lambda held: (master.missing(held[-1].number if held else -1), master.epoch),
    )
    return [*condense_epochs(rows[:-1]), *rows[-1:]]


def up_to(read: Callable[[Collection[int]], list[Epoch]], bounds: Iterable[int]) -> LedgerRows:
    """Make of what reads a ledger condensed, with bounds that no sum crosses, what the join with the master asks."""

    def held(end: int | None) -> list[Epoch]:
        if end is None:
            return read({*bounds})
        return [row for row in read({*bounds, end - 1, end}) if row.number <= end]

    return held


def join_ledger_and_master(
    ledger: LedgerRows, above: Callable[[list[Epoch]], tuple[list[Epoch], int] | None]
) -> list[Epoch]:
    """Join the ledger's rows of committed epochs and the epochs above that the master alone has.

    ``ledger`` reads its rows up to an epoch, all if None, the last of them in any case; ``above`` is asked for what the
    master holds above them. The ledger may have kept what the master has lost, and lack what the master has of before
    that: both are of another line then.
    """
    held = ledger(None)
    while (found := above(held)) is not None:
        rows, end = found
        if not held or held[-1].number <= end:
            return [*held, *rows]
        held = ledger(end)
    return []


def ledger_rows(layout: Layout, cuts: Collection[int]) -> list[Epoch]:
    """Read what the ledger has, condensed."""
    parts = frozenset(cuts)
    return (
        read_cached_table(layout.table("ledger"), ("condensed", parts), lambda table: of_ledger(table, parts))
        or []
    )


def list_epochs_above_ledger(layout: Layout, held: Sequence[Epoch]) -> tuple[list[Epoch], int] | None:
    """List the committed epochs above those of the ledger, and E; None without a master.

    The master is looked at after the ledger: an epoch in between is found in one of the two.
    """
    last = held[-1].number if held else -1
    return read_cached_table(
        layout.table("master"),
        ("beyond", last),
        lambda table: (Master(table).missing(last), Master(table).epoch),
    )


def newest_epochs(layout: Layout, count: int) -> list[Epoch]:
    """List the newest ``count`` committed epochs, in order; fewer if there are fewer."""

    def held(end: int | None) -> list[Epoch]:
        return (
            read_cached_table(
                layout.table("ledger"), ("newest", count, end), lambda it: last_of(it, count, end)
            )
            or []
        )

    return join_ledger_and_master(held, lambda rows: list_epochs_above_ledger(layout, rows))[-count:]


def list_accepting_epochs(layout: Layout, intervals: Collection[str]) -> list[Epoch]:
    """List the epochs that brought rows of some intervals, in order; row groups that have none are not read."""
    wanted = frozenset(intervals)

    def held(end: int | None) -> list[Epoch]:
        key = ("bringing", wanted, end)
        return (
            read_cached_table(
                layout.table("ledger"), key, lambda it: read_accepting_ledger_rows(it, wanted, end)
            )
            or []
        )

    return [
        each
        for each in join_ledger_and_master(held, lambda rows: list_epochs_above_ledger(layout, rows))
        if has_accepted_rows(each, wanted)
    ]


def read_accepting_ledger_rows(table: Table, intervals: Collection[str], until: int | None) -> list[Epoch]:
    """Read those of a ledger up to an epoch, all if None, and the last one in any case."""
    held = [
        epoch
        for group in groups_of(table)
        if any(has_accepted_rows(row, intervals) for row in group.condense())
        for epoch in group.groups_with_rows(intervals)
        if has_accepted_rows(epoch, intervals) and (until is None or epoch.number <= until)
    ]
    return [*held, *(each for each in last_of(table, 1, until) if not has_accepted_rows(each, intervals))]


def has_accepted_rows(epoch: Epoch, intervals: Collection[str]) -> bool:
    """Return whether an epoch accepted rows of some intervals."""
    return not epoch.accepted.keys().isdisjoint(intervals)


def last_of(table: Table, count: int, until: int | None = None) -> list[Epoch]:
    """Read the last epochs of a ledger, up to one if not None; of a packed file its last row groups."""
    found: list[Epoch] = []
    for group in reversed(groups_of(table)):
        if until is None or group.last <= until:
            rows = group.read_newest(count - len(found))
        elif group.first <= until:
            rows = [each for each in group.iterate() if each.number <= until]
        else:
            continue
        found = [*rows, *found]
        if len(found) >= count:
            break
    return found[-count:]


def of_ledger(table: Table, cuts: Iterable[int] = ()) -> list[Epoch]:
    """Return what a ledger has, condensed, the newest epoch as a row of its own."""
    groups, bounds = groups_of(table), sorted(cuts)
    if bounds or not groups:
        rows = list(condense_ledger_files(groups, bounds))
        return [*condense_epochs(rows[:-1], bounds), *rows[-1:]]
    before, known = _folded.get(table.id) or ((), [])
    if groups[: len(before)] != before or len(before) == len(groups):
        before, known = (), []
    known = condense_epochs([*known, *condense_ledger_files(groups[len(before) : -1], (), newest=False)])
    _folded[table.id] = groups[:-1], known
    rows = list(condense_ledger_files(groups[-1:], ()))
    return [*condense_epochs([*known, *rows[:-1]]), *rows[-1:]]
